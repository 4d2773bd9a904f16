"""The commands by name, each imported when it is asked for.

To import all of them takes longer than most of them take to run.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

from consumer.text.redaction import without_arguments

NAMES: Final = (
    "run", "backfill", "demo", "produce", "replay", "migrate", "doctor", "top", "health", "show", "explain",
    "query", "release", "evaluate", "fingerprint", "compare", "idf", "store", "dead-letters", "poison", "topics",
    "config",
)  # fmt: skip
"""In the order in which --help has them."""
_GIVEN: Final = "dupwatch.arguments"


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # whatever Typer gives a group
        super().__init__(**options)
        self.commands = _Imported()  # type: ignore[assignment]  # nobody adds a command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # Typer's own type is not public
        """Read the options of the group, and keep all that was given: parsing takes it apart."""
        ctx.meta[_GIVEN] = tuple(args)
        with _without_secrets(tuple(args)):
            return list(super().parse_args(ctx, args))

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # as above
        """Run the command that was named. A usage error quotes arguments, and one of them may hold a secret."""
        with _without_secrets(ctx.meta[_GIVEN]):
            return super().invoke(ctx)


@contextmanager
def _without_secrets(arguments: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Only a usage error has this, of a class that Typer does not publish.
        shown = getattr(error, "format_message", None)
        if shown is not None:
            message = without_arguments(shown(), arguments)
            error.format_message = lambda: message  # type: ignore[attr-defined]
        raise


class _Imported(Mapping[str, Any]):
    """Commands by name. ``consumer.cli.NAME`` has a function of that name or, where there are several, an ``app``."""

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
    function = name.replace("-", "_")
    module = import_module(f"consumer.cli.{function}")
    several = getattr(module, "app", None)
    if isinstance(several, typer.Typer):
        group = typer.main.get_group(several)
        group.name = name
        return group
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name)(getattr(module, function))
    return typer.main.get_command(app)
