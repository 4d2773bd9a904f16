"""The commands by name, each imported when it is used: importing all of them takes longer than most take to run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

from consumer.text.redaction import without_arguments

MODULES: Final = {
    "run": "runs.run",
    "serve": "runs.serve",
    "console": "runs.serve",
    "backfill": "runs.backfill",
    "demo": "runs.demo",
    "produce": "runs.produce",
    "replay": "runs.replay",
    "migrate": "runs.migrate",
    "doctor": "operations.doctor",
    "top": "operations.top",
    "health": "operations.health",
    "show": "articles.show",
    "explain": "articles.explain",
    "query": "articles.query",
    "release": "articles.release",
    "bank": "banks.bank",
    "evaluate": "evaluation.evaluate",
    "fingerprint": "articles.fingerprint",
    "compare": "articles.compare",
    "idf": "articles.idf",
    "store": "operations.store",
    "dead-letters": "operations.dead_letters",
    "poison": "operations.poison",
    "topics": "operations.topics",
    "tokens": "people.tokens",
    "people": "people.people",
    "reviews": "people.reviews",
    "config": "operations.config",
}
"""Where each command is, in the order in which --help lists them."""
NAMES: Final = tuple(MODULES)
_ARGUMENTS: Final = "dupwatch.arguments"
_LINE_BREAK: Final = re.compile(r"(?<!\n)\n(?!\n)")


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # whatever Typer gives a group
        super().__init__(**options)
        self.commands = _Imported()  # type: ignore[assignment]  # nobody adds a command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # Typer's own type is not public
        """Parse the options of the group, and remember all arguments: parsing consumes them."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        with _without_secrets(tuple(args)):
            return list(super().parse_args(ctx, args))

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # as above
        """Run the command. A usage error quotes arguments, and one of them may contain a secret."""
        with _without_secrets(ctx.meta[_ARGUMENTS]):
            return super().invoke(ctx)


@contextmanager
def _without_secrets(arguments: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Only usage errors have this method; Typer does not export their class.
        shown = getattr(error, "format_message", None)
        if shown is not None:
            # The name of a command may resemble that of a secret setting, and what follows it is no secret.
            given = arguments[1:] if arguments and arguments[0] in NAMES else arguments
            message = without_arguments(shown(), given)
            error.format_message = lambda: message  # type: ignore[attr-defined]
        raise


class _Imported(Mapping[str, Any]):
    """Commands by name. The module of a command has a function of its name, or an ``app`` if it has subcommands."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # Typer's own type of commands is not public
        if name not in NAMES:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@cache
def _command(name: str) -> Any:  # noqa: ANN401  # as above
    module = import_module(f"consumer.cli.{MODULES[name]}")
    several = getattr(module, "app", None)
    if isinstance(several, typer.Typer):
        group = typer.main.get_group(several)
        group.name = name
        return _reflowed(group)
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name)(getattr(module, name.replace("-", "_")))
    return _reflowed(typer.main.get_command(app))


def _reflowed(command: Any) -> Any:  # noqa: ANN401  # as above
    """Let the terminal wrap the help of a command and its subcommands: Typer keeps the line breaks of docstrings."""
    command.help = command.help and _LINE_BREAK.sub(" ", command.help)
    for subcommand in getattr(command, "commands", {}).values():
        _reflowed(subcommand)
    return command
