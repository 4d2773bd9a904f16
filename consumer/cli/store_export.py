"""``dupwatch store export``: everything a store holds, as JSON lines."""

from typing import Annotated

import typer

from consumer.cli import render
from consumer.cli.options import ConfigOption, SetOption, StoreOption, configured
from consumer.cli.results import results, write
from consumer.store_tools.export import exported
from consumer.wiring.stores import opened_store


def export(
    store: StoreOption = None,
    bodies: Annotated[
        bool, typer.Option("--bodies/--no-bodies", help="With the articles' texts, where the store keeps them.")
    ] = True,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Write everything that a store holds to standard output: versions, verdicts and tombstones, one a line.

    May be run while consumers judge; what they write meanwhile may be there or not.
    """
    chosen = configured(config, settings, store__url=store)
    with opened_store(chosen, readonly=True) as opened, render.progress(render.console(stderr=True)) as bar, results():
        task = bar.add_task("exporting", total=None)
        for line in exported(opened, bodies=bodies):
            write(line + b"\n")
            bar.advance(task)
