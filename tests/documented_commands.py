"""Command lines that documentation shows, and whether dupwatch accepts their commands and options."""

import re
from typing import Final

import typer
from typer.core import TyperGroup

from consumer.cli.main import app

_COMMAND: Final = re.compile(r"(?:^ {4}|^\$ |`)dupwatch ([a-z][a-z-]*\b(?!:).*?)(?:`|  +#|\||\\$|;|$)", re.MULTILINE)


def commands_of(page: str) -> list[str]:
    """Return the arguments of each ``dupwatch`` command that a page shows as code."""
    return _COMMAND.findall(page)


def what_is_unknown(arguments: str) -> set[str]:
    """Return the words of a command line that name no command or option; the name of a group alone is known."""
    words = arguments.split()
    command = typer.main.get_command(app)
    while isinstance(command, TyperGroup) and words:
        if words[0] not in command.commands:
            return {words[0]}
        command = command.commands[words.pop(0)]
    options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    return {word.partition("=")[0] for word in words if word.startswith("--")} - options
