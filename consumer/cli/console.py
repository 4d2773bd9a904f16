"""``dupwatch console``: the pages on which people look at flags and decide about them."""

import logging
from importlib import metadata
from typing import Annotated, Literal

import typer

from consumer.cli import render
from consumer.cli.extras import CONSOLE_PACKAGES, imported
from consumer.cli.options import ConfigOption, SetOption, StoreOption, configured
from consumer.config.time_limits import ENDING_S
from consumer.lifecycle.stopping import Stopping
from consumer.model.hooks import Hooks
from consumer.telemetry import logs
from consumer.telemetry.watchdog import enforce

log = logging.getLogger("dupwatch")

SinkOption = Annotated[
    str | None,
    typer.Option("--sink", help="The topics that consumers write to: kafka://HOST:PORT/PREFIX.", metavar="SINK"),
]


def console(
    store: StoreOption = None,
    sink: SinkOption = None,
    rebuild: Annotated[
        Literal["topic", "store"] | None,
        typer.Option(
            help="Read all flags again: those in the topic, and near misses in theirs, while no other console of the "
            "group runs; or those in the store, which has no near misses. What is known stays as it is.",
        ),
    ] = None,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Show flags to people, and carry out what they decide, until SIGTERM or SIGINT.

    Flags come from PREFIX.duplicates, near misses from PREFIX.near-misses, texts from the consumers' store. Where it
    listens is console.listen, its database console.database. Add the first person with dupwatch people add NAME --role
    admin; docs/console.md says more.
    """
    wiring = imported("consumer.wiring.console", CONSOLE_PACKAGES, "console", "dupwatch console")
    chosen = configured(config, settings, store__url=store, sink__url=sink)
    logs.set_up(chosen.log.format, chosen.log.level, is_service=True)
    stopping = Stopping(interrupts=False)
    with stopping.listening(), wiring.prepared_console(chosen, Hooks(), stopping, rebuild=rebuild) as ready:
        enforce(stopping, ready.stop, chosen.console.drain_s + ENDING_S)
        if logs.tells_people():
            render.console(stderr=True).print(f"The console is at {ready.url}")
        else:
            log.info("Console", extra={"version": metadata.version("dupwatch"), "url": ready.url})
        ready.run()
