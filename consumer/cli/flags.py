"""Flags, parts and texts that had ended, printed as they are found."""

from collections.abc import Sequence

from rich.console import Console

from consumer.cli import render
from consumer.model.verdict import EndedBefore, Verdict
from consumer.store_tools.inspection import titles
from storage.interface import Store


def show_flags(console: Console, store: Store, verdicts: Sequence[Verdict]) -> None:
    """Print the duplicates among the verdicts, with the titles from the store.

    Of unique ones print those that share a part, and those that repeat what was retracted or replaced.
    """
    flags = [verdict for verdict in verdicts if verdict.outcome == "duplicate"]
    for verdict, (title, other_title) in zip(flags, titles(store, flags), strict=True):
        console.print(render.flag(verdict, title, other_title))
    for verdict in verdicts:
        if verdict.outcome == "unique" and isinstance(verdict.parts, tuple):
            console.print(render.parts(verdict.id, verdict.parts))
        if isinstance(verdict.ended_before, EndedBefore):
            console.print(render.ended(verdict.id, verdict.ended_before))
