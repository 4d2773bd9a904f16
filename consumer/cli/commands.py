"""The commands by name. Each is imported on first use, because importing all takes longer than most commands run."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

from consumer.text.redaction import without_arguments

GROUPS: Final = {
    "Judge a feed": {
        "run": "runs.run",
        "demo": "runs.demo",
        "backfill": "runs.backfill",
        "produce": "runs.produce",
        "bank": "banks.bank",
    },
    "Look things up, and undo flags": {
        "show": "articles.show",
        "explain": "articles.explain",
        "query": "articles.query",
        "compare": "articles.compare",
        "fingerprint": "articles.fingerprint",
        "release": "articles.release",
    },
    "Evaluate": {
        "evaluate": "evaluation.evaluate",
        "replay": "runs.replay",
        "reviews": "people.reviews",
        "idf": "articles.idf",
    },
    "Operate": {
        "size": "operations.size",
        "stress": "runs.stress",
        "config": "operations.config",
        "doctor": "operations.doctor",
        "top": "operations.top",
        "health": "operations.health",
        "store": "operations.store",
        "topics": "operations.topics",
        "dead-letters": "operations.dead_letters",
        "poison": "operations.poison",
        "migrate": "runs.migrate",
    },
    "Console and service": {
        "console": "runs.serve",
        "serve": "runs.serve",
        "people": "people.people",
        "tokens": "people.tokens",
    },
}
"""The module of each command, by task, in the order in which --help lists them."""
MODULES: Final = {name: module for commands in GROUPS.values() for name, module in commands.items()}
NAMES: Final = tuple(MODULES)
_ARGUMENTS: Final = "dupwatch.arguments"
_LINE_BREAK: Final = re.compile(r"(?<!\n)\n(?!\n)")


class CommandGroup(TyperGroup):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # Typer's options of a group
        super().__init__(**options)
        self.commands = _CommandModules()  # type: ignore[assignment]  # no command is added

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # Typer's own type is not public
        """Parse the options of the group. Keep a copy of all arguments first, because parsing consumes them."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        with _without_secrets(tuple(args)):
            return list(super().parse_args(ctx, args))

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # as above
        """Return the options of the group."""
        return _with_untyped_flags(super().get_params, ctx)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # as above
        """Run the command. Remove secrets from the messages of usage errors, which quote arguments."""
        with _without_secrets(ctx.meta[_ARGUMENTS]):
            return super().invoke(ctx)


@contextmanager
def _without_secrets(arguments: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Only usage errors have this method; Typer does not export their class.
        format_message = getattr(error, "format_message", None)
        if format_message is not None:
            # A command may be named like a secret setting, but the argument after it is not a secret.
            checked = arguments[1:] if arguments and arguments[0] in NAMES else arguments
            message = without_arguments(format_message(), checked)
            error.format_message = lambda: message  # type: ignore[attr-defined]
        raise


class _CommandModules(Mapping[str, Any]):
    """Commands by name. The module of a command has a function with its name, or an ``app`` with subcommands."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # Typer's own type of commands is not public
        if name not in NAMES:
            raise KeyError(name)
        return _load_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@cache
def _load_command(name: str) -> Any:  # noqa: ANN401  # as above
    module = import_module(f"consumer.cli.{MODULES[name]}")
    subcommands = getattr(module, "app", None)
    if isinstance(subcommands, typer.Typer):
        group = typer.main.get_group(subcommands)
        group.name = name
        return _assign_panel(name, group)
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name)(getattr(module, name.replace("-", "_")))
    return _assign_panel(name, typer.main.get_command(app))


def _assign_panel(name: str, command: Any) -> Any:  # noqa: ANN401  # as above
    """Assign the command to its panel in ``--help``, and return it."""
    command.rich_help_panel = next(group for group, commands in GROUPS.items() if name in commands)
    return _with_plain_help(command)


def _with_plain_help(command: Any) -> Any:  # noqa: ANN401  # as above
    """Let the terminal wrap the help of a command and its subcommands, hide the types of flags, and return the command.

    Without this, Typer keeps the line breaks of docstrings.
    """
    command.help = command.help and _LINE_BREAK.sub(" ", command.help)
    command.get_params = partial(_with_untyped_flags, command.get_params)
    for subcommand in getattr(command, "commands", {}).values():
        _with_plain_help(subcommand)
    return command


def _with_untyped_flags(get_params: Callable[[Any], list[Any]], ctx: Any) -> list[Any]:  # noqa: ANN401  # as above
    """Return the parameters of a command, including ``--help``, without the type ``<bool>`` of flags."""
    parameters = get_params(ctx)
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
