"""Flags as they come, for people."""

from collections.abc import Sequence

from rich.console import Console

from consumer.cli import render
from consumer.model.verdict import Verdict
from consumer.store_tools.inspection import titles
from storage.interface import Store


def show_flags(console: Console, store: Store, verdicts: Sequence[Verdict]) -> None:
    """Print the duplicates among these, with the titles that the store has."""
    flags = [verdict for verdict in verdicts if verdict.outcome == "duplicate"]
    for verdict, (title, other_title) in zip(flags, titles(store, flags), strict=True):
        console.print(render.flag(verdict, title, other_title))
