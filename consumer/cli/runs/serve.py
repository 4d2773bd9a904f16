"""``dupwatch serve`` and ``dupwatch console``: HTTP servers that run until they are stopped."""

import logging
from typing import Annotated, Any, Final, Literal

import typer

from consumer.cli import render
from consumer.cli.options import ConfigOption, SetOption, StoreOption, command_config
from consumer.cli.results import standard_error, standard_output
from consumer.kafka.time_limits import ENDING_S
from consumer.lifecycle.stopping import StopSignal
from consumer.model.hooks import Hooks
from consumer.model.program_version import program_version
from consumer.pipeline.feed_kind import Streams
from consumer.telemetry import logs
from consumer.telemetry.health import enforce_stop
from consumer.text.install_advice import CONSOLE_PACKAGES, import_extra

log = logging.getLogger("dupwatch")

_SERVICE_PACKAGES: Final = frozenset({"fastapi", "starlette", "uvicorn"})


def serve(
    store: StoreOption = None,
    sink: Annotated[
        str | None,
        typer.Option(
            help="Where verdicts on stored articles go: FILE, -, kafka://HOST:PORT/PREFIX, or nowhere:",
            metavar="SINK",
        ),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Serve the HTTP API until SIGTERM or SIGINT: check what articles would repeat, and judge and store articles.

    Consumers may judge into the same store, and any number of services may serve it. The service listens at
    service.listen; docs/use/http_api.md describes the requests.
    """
    service = import_extra("consumer.wiring.service", _SERVICE_PACKAGES, "serve", "dupwatch serve")
    chosen = command_config(config, overrides, store__url=store, sink__url=sink)
    logs.set_up(chosen.log.format, chosen.log.level, is_service=True)
    stopping, streams = StopSignal(interrupts=False), Streams(standard_output(), standard_error())
    with stopping.handle_signals(), service.prepared_service(chosen, streams, Hooks(), stopping) as ready:
        where = chosen.store.url
        _run(ready, stopping, chosen.service.drain_s, f"Serving {render.plain(where)} at", "Serving", store=where)


def console(
    store: StoreOption = None,
    sink: Annotated[
        str | None,
        typer.Option(
            help="Where the run, the service or consumers write verdicts: FILE, or kafka://HOST:PORT/PREFIX.",
            metavar="SINK",
        ),
    ] = None,
    rebuild: Annotated[
        Literal["sink", "topic", "store"] | None,
        typer.Option(
            help="Read all flags again; nothing in the database is deleted. sink: from the sink, with the near misses "
            "of topics; stop all other consoles of the group first. topic: the same as sink. store: from the store, "
            "which has no near misses.",
        ),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Serve the moderators' console until SIGTERM or SIGINT: show flags, and carry out decisions.

    Flags come from the sink as it grows: a file, or PREFIX.duplicates, with near misses in PREFIX.near-misses. Texts
    come from the store. Releases change the store, and go to FILE.console.jsonl or to the topics. The console listens
    at console.listen, and its database is console.database. Add the first person with dupwatch people add NAME --role
    admin; docs/use/console.md says more.
    """
    wiring = import_extra("consumer.wiring.console", CONSOLE_PACKAGES, "console", "dupwatch console")
    chosen = command_config(config, overrides, store__url=store, sink__url=sink)
    logs.set_up(chosen.log.format, chosen.log.level, is_service=True)
    stopping, rebuild_from = StopSignal(interrupts=False), "sink" if rebuild == "topic" else rebuild
    with stopping.handle_signals(), wiring.prepared_console(chosen, Hooks(), stopping, rebuild=rebuild_from) as ready:
        _run(ready, stopping, chosen.console.drain_s, "The console is at", "Console")


def _run(ready: Any, stopping: StopSignal, drain_s: float, sentence: str, title: str, **fields: str) -> None:  # noqa: ANN401  # of an extra
    """Print or log the address of a server, and run it until it is stopped."""
    enforce_stop(stopping, ready.stop, drain_s + ENDING_S)
    if logs.tells_people():
        render.console(stderr=True).print(f"{sentence} {ready.url}")
    else:
        log.info(title, extra={"version": program_version(), **fields, "url": ready.url})
    ready.run()
