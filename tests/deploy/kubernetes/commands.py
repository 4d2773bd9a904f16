"""The program's commands, read as its users give them, and not run."""

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from consumer.cli.main import app


def read_command(words: Sequence[str]) -> dict[str, Any]:
    """The parameters of the command that these words are. Raises an exception of click's where they are none."""
    command = typer.main.get_command(app)
    context = command.make_context("dupwatch", list(words))
    while isinstance(command, TyperGroup):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        command, context = found, found.make_context(name, rest, parent=context)
    return context.params
