"""``dupwatch produce``: send a file of articles to a topic."""

import time
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer
from rich.progress import Progress

from consumer.cli import render
from consumer.cli.options import ConfigOption, SetOption, command_config
from consumer.cli.runs.feed_report import show_blank_lines
from consumer.config.config import Config
from consumer.decode.codecs import formats_for_help
from consumer.files.source import FileSource
from consumer.kafka.client_settings import TopicsAddress, parse_kafka, producer_settings
from consumer.kafka.clients import waiting_for_brokers
from consumer.kafka.feed_sender import FeedSender
from consumer.kafka.sink.outgoing import ANY_PARTITION
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, StopSignal
from consumer.model.errors import ConfigError
from consumer.text.counts import counted
from consumer.text.sample_feed import sample_feed
from consumer.wiring import components
from storage.clock import MS_PER_S

_SLICE_S: Final = 0.1
_TIMEOUT: Final = "message.timeout.ms"


def produce(
    feed: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|-",
            help=f"Articles as {formats_for_help()}; - for standard input; default: the sample feed.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(help="kafka://HOST:PORT/TOPIC; default: the configured source.", metavar="TOPIC"),
    ] = None,
    rate: Annotated[float, typer.Option(help="Articles per second.", min=0.01)] = 50.0,
    in_order: Annotated[
        bool,
        typer.Option(
            "--in-order", help="Send all articles to the first partition, so that they are judged in feed order."
        ),
    ] = False,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for the brokers to accept a record.", min=0.1, max=86_400)
    ] = 30.0,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Send articles to a topic, to try out a consumer.

    Each line is sent unchanged, or a row of CSV or TSV as JSON, with the article's id as the key. An invalid record is
    sent without a key and becomes a dead letter.
    """
    chosen = command_config(config, overrides, source__url=to)
    place = _topic(chosen)
    console = render.console(stderr=True)
    stopping = StopSignal()
    source = components.feed_file(chosen, sample_feed() if feed is None else feed)
    try:
        sender = FeedSender(
            _settings(chosen, place, wait),
            place.names[0],
            components.file_decoder(chosen),
            0 if in_order else ANY_PARTITION,
        )
        began_s = time.monotonic()
        with stopping.handle_signals(), render.progress(console) as progress:
            sender.send(stopping.until_requested(source.batches()), rate, _wait_function(stopping, progress, source))
            with waiting_for_brokers(place.brokers):
                sender.finish()
    finally:
        source.close()
    console.print(f"Sent to {place.names[0]}: {counted(sender.sent, 'record')} in {time.monotonic() - began_s:.1f} s")
    show_blank_lines(console, source)
    if stopping.requested_by is not None:
        raise typer.Exit(SIGNAL_EXIT_BASE + stopping.requested_by)


def _topic(config: Config) -> TopicsAddress:
    place = parse_kafka(config.source.url)
    if len(place.names) != 1:
        raise ConfigError(f"{config.source.url} names {len(place.names)} topics; name one with --to")
    return place


def _settings(config: Config, place: TopicsAddress, wait_s: float) -> dict[str, Any]:
    # A consumer waits for its brokers indefinitely, but a person waits for this command.
    defaults = {_TIMEOUT: int(wait_s * MS_PER_S)}
    return producer_settings(place.brokers, components.kafka_options(config), transactional=False, defaults=defaults)


def _wait_function(stopping: StopSignal, progress: Progress, source: FileSource) -> Callable[[float], bool]:
    """Return a function that shows the progress, and waits between two records."""
    update = render.follow(progress, "sending", source.progress)

    def wait(seconds: float) -> bool:
        """Wait in short slices, and return whether the command was told to stop."""
        update()
        until_s = time.monotonic() + seconds
        while not stopping.requested() and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _SLICE_S))
        return stopping.requested()

    return wait
