"""``dupwatch store export``: the contents of a store as JSON lines."""

from typing import Annotated

import typer

from consumer.cli import render
from consumer.cli.options import ConfigOption, LastingStoreOption, SetOption, configured
from consumer.cli.results import results, write
from consumer.store_tools.export import exported
from consumer.wiring.stores import opened_store


def export(
    store: LastingStoreOption = None,
    bodies: Annotated[
        bool, typer.Option("--bodies/--no-bodies", help="Include the texts of articles, if the store keeps them.")
    ] = True,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Write the contents of a store to standard output as JSON lines: versions with their verdicts, and tombstones.

    Consumers may be running; what they write during the export may be missing from it.
    """
    chosen = configured(config, settings, store__url=store)
    with opened_store(chosen, readonly=True) as opened, render.progress(render.console(stderr=True)) as bar, results():
        task = bar.add_task("exporting", total=None)
        for line in exported(opened, bodies=bodies):
            write(line + b"\n")
            bar.advance(task)
