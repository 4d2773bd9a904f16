"""``dupwatch serve``: answer over HTTP what articles would repeat, and store those that are sent."""

import logging
from importlib import metadata
from typing import Annotated, Final

import typer

from consumer.cli import render
from consumer.cli.extras import imported
from consumer.cli.options import ConfigOption, SetOption, StoreOption, configured
from consumer.cli.results import standard_error, standard_output
from consumer.config.time_limits import ENDING_S
from consumer.lifecycle.stopping import Stopping
from consumer.model.hooks import Hooks
from consumer.telemetry import logs
from consumer.telemetry.watchdog import enforce
from consumer.wiring.components import Streams

log = logging.getLogger("dupwatch")

_PACKAGES: Final = frozenset({"fastapi", "starlette", "uvicorn"})


SinkOption = Annotated[
    str | None,
    typer.Option(
        "--sink",
        help="Where verdicts on stored articles go: FILE, -, kafka://HOST:PORT/PREFIX, or nowhere:",
        metavar="SINK",
    ),
]


def serve(
    store: StoreOption = None, sink: SinkOption = None, config: ConfigOption = None, settings: SetOption = None
) -> None:
    """Answer over HTTP what articles would repeat, judge and store those that are sent, until SIGTERM or SIGINT.

    Consumers may judge into the same store, and any number of services may serve it. Where it listens is
    service.listen; docs/http_api.md has the requests.
    """
    service = imported("consumer.wiring.service", _PACKAGES, "serve", "dupwatch serve")
    chosen = configured(config, settings, store__url=store, sink__url=sink)
    logs.set_up(chosen.log.format, chosen.log.level, is_service=True)
    stopping, streams = Stopping(interrupts=False), Streams(standard_output(), standard_error())
    with stopping.listening(), service.prepared_service(chosen, streams, Hooks(), stopping) as ready:
        enforce(stopping, ready.stop, chosen.service.drain_s + ENDING_S)
        if logs.tells_people():
            render.console(stderr=True).print(f"Serving {render.plain(chosen.store.url)} at {ready.url}")
        else:
            log.info(
                "Serving",
                extra={"version": metadata.version("dupwatch"), "store": chosen.store.url, "url": ready.url},
            )
        ready.run()
