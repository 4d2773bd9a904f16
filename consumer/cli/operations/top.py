"""``dupwatch top``: watch running consumers live."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.live import Live

from consumer.cli import render
from consumer.cli.operations.top_view import frame
from consumer.cli.options import ConfigOption, SetOption, command_config
from consumer.cli.results import results
from consumer.config.config import Config
from consumer.doctor.pages_client import ClientAccess, PagesClient, configured_url, with_own_certificate
from consumer.doctor.watching import ConsumerStatus, WatchedConsumer, look_at_all
from consumer.model.errors import ConfigError, SourceError
from consumer.text.redaction import remember

WAIT_S: Final = 3.0
"""Time limit for one page of a consumer."""
URLS_MAX: Final = 64
_UNLIMITED_CHARS: Final = 10_000


def top(
    urls: Annotated[
        list[str] | None,
        typer.Argument(help="Consumers: http://HOST:PORT; default: the configured http.listen.", metavar="URL"),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one snapshot after one interval, and exit.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between updates.")] = 2.0,
    user: Annotated[str | None, typer.Option(help="User name for the pages.", metavar="NAME")] = None,
    password_file: Annotated[
        Path | None, typer.Option(help="File with the password for the pages.", metavar="FILE")
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option("--ca", help="CA certificates for https:// consumers, as PEM.", metavar="FILE"),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    r"""Watch running consumers: articles per second, lag, latency, time per stage, and the latest flags.

    Several consumers are listed with a row of totals. A consumer that does not answer is shown as unreachable. Ctrl-C
    quits. User, password and certificates default to those of \[http] in the configuration. With --once, the exit code
    is 3 if no consumer answers.
    """
    chosen = command_config(config, overrides)
    access = _access(chosen, user, password_file, ca)
    if not urls and ca is None:
        access = with_own_certificate(access, chosen)
    consumer_urls = urls or [configured_url(chosen)]
    if len(consumer_urls) > URLS_MAX:
        raise ConfigError(f"cannot watch {len(consumer_urls)} consumers at once; the maximum is {URLS_MAX}")
    watched = [WatchedConsumer(url.rstrip("/"), PagesClient(url, access, WAIT_S)) for url in consumer_urls]
    with ThreadPoolExecutor(len(watched), thread_name_prefix="top") as pool:
        if once:
            _print_once(watched, pool, interval)
        else:
            with suppress(KeyboardInterrupt):
                _watch(watched, pool, interval)


def _print_once(watched: Sequence[WatchedConsumer], pool: ThreadPoolExecutor, interval_s: float) -> None:
    look_at_all(watched, pool)
    time.sleep(interval_s)
    statuses = look_at_all(watched, pool)
    console = _console()
    with results():
        console.print(frame(statuses, _headline(statuses, f"in the last {interval_s:g} s"), console.width))
    if all(consumer.away is not None for consumer in statuses):
        raise SourceError("no consumer answers; check that one is running, and that the URL is its http.listen")


def _watch(watched: Sequence[WatchedConsumer], pool: ThreadPoolExecutor, interval_s: float) -> None:
    console = _console()
    frames = (
        frame(statuses, _headline(statuses, f"every {interval_s:g} s" if number else "since start"), console.width)
        for number, statuses in enumerate(_statuses(watched, pool, interval_s))
    )
    if not console.is_terminal:
        # In a file or a pipe, each frame follows the previous one.
        for each in frames:
            with results():
                console.print(each)
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for each in frames:
            live.update(each, refresh=True)


def _console() -> Console:
    """Return a console. Without a terminal, its width is so large that no text is cut."""
    console = render.console()
    if not console.is_terminal:
        console.width = _UNLIMITED_CHARS
    return console


def _statuses(
    watched: Sequence[WatchedConsumer], pool: ThreadPoolExecutor, interval_s: float
) -> Iterator[list[ConsumerStatus]]:
    """Yield the statuses once per interval, or later if fetching them takes longer."""
    while True:
        due_s = time.monotonic() + interval_s
        yield look_at_all(watched, pool)
        time.sleep(max(due_s - time.monotonic(), 0.0))


def _headline(statuses: Sequence[ConsumerStatus], period: str) -> str:
    answering = sum(consumer.away is None for consumer in statuses)
    return f"dupwatch top: {answering} of {len(statuses)} consumers, {time.strftime('%H:%M:%S')}, {period}"


def _access(config: Config, user: str | None, password_file: Path | None, ca: Path | None) -> ClientAccess:
    section = config.http.model_dump()
    if user is None:
        user, password = section.get("user"), section.get("password")
        password_file = password_file or (Path(file) if (file := section.get("password_file")) else None)
    else:
        password = None
    if password_file is not None:
        try:
            password = password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise ConfigError(f"cannot read the password from {password_file}: {reason}") from error
        remember(password)
    return ClientAccess(user, password, None if ca is None else str(ca))
