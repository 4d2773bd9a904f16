"""The commands by name, each imported when it is asked for.

To import all of them takes longer than most of them take to run.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

NAMES: Final = (
    "run", "backfill", "demo", "produce", "replay", "migrate", "doctor", "top", "health", "show", "explain",
    "query", "release", "evaluate", "fingerprint", "compare", "idf", "store", "dead-letters", "poison", "topics",
    "config",
)  # fmt: skip
"""In the order in which --help has them."""


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # whatever Typer gives a group
        super().__init__(**options)
        self.commands = _Imported()  # type: ignore[assignment]  # nobody adds a command


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
