"""Command lines that documentation shows: which there are, and whether dupwatch accepts their commands and options."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import typer
from typer.core import TyperGroup

from consumer.cli.main import app

SHELL_LANGUAGES: Final = frozenset({"sh", "bash", "shell", "console"})
_COMMAND: Final = re.compile(r"(?:^ {4}|^\$ |`)dupwatch ([a-z][a-z-]*\b(?!:).*?)(?:`|  +#|\||\\$|;|$)", re.MULTILINE)
_FENCED: Final = re.compile(r"^( *)```(\w*)( [\w ]*)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INDENTED: Final = re.compile(r"(?<=\n\n)(?: {4}\S.*\n)+")
_CONTINUED: Final = re.compile(r"\\\n")
_PROMPT: Final = "$ "
_EXIT_CODE: Final = re.compile(r"#.*\bexit code (\d+)")


class ShellLine(NamedTuple):
    """A command line as a shell takes it, with its continuations, and the exit code that its comment names."""

    text: str
    code: int = 0


class ShellBlock(NamedTuple):
    """A block of command lines in a page, which begins at ``row`` (1, 2, …); ``runs`` says that it is marked `run`."""

    row: int
    runs: bool
    lines: tuple[ShellLine, ...]


def shell_blocks(page: str, *, indented: bool = False) -> list[ShellBlock]:
    """Return the fenced blocks of a page in the language of a shell, or also its ``indented`` ones, in their order."""
    blocks = [
        ShellBlock(_row(page, found), "run" in (found[3] or "").split(), tuple(_lines(found[4], found[2])))
        for found in _FENCED.finditer(page)
        if found[2] in SHELL_LANGUAGES
    ]
    if indented:
        others = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), page)
        blocks += [
            ShellBlock(_row(others, found), runs=False, lines=tuple(_lines(found[0], "sh")))
            for found in _INDENTED.finditer(others)
        ]
    return sorted(blocks)


def commands_of(page: str) -> list[str]:
    """Return the arguments of each ``dupwatch`` command that a page shows as code."""
    return _COMMAND.findall(_FENCED.sub(_indented, page))


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


def _row(page: str, found: re.Match[str]) -> int:
    return page.count("\n", 0, found.start()) + 1


def _lines(text: str, language: str) -> Iterator[ShellLine]:
    """Yield the command lines of a block; in a ``console`` block the others are output."""
    for line in _CONTINUED.sub("\0", text).split("\n"):
        command = line.strip()
        if language == "console":
            if not command.startswith(_PROMPT):
                continue
            command = command.removeprefix(_PROMPT)
        if command and not command.startswith("#"):
            code = _EXIT_CODE.search(command)
            yield ShellLine(command.replace("\0", "\\\n"), int(code[1]) if code else 0)


def _indented(found: re.Match[str]) -> str:
    """Write a fenced block of a shell as an indented one, and leave others as they are."""
    if found[2] not in SHELL_LANGUAGES:
        return found[0]
    return "".join(f"    {line.text}\n" for line in _lines(found[4], found[2]))
