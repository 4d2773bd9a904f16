"""``dupwatch demo``: the Kafka consumer with a mock cluster, in one process without a server."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
from rich.console import Console

from consumer.banks.bank import Bank
from consumer.banks.exchange import lines_of
from consumer.cli import render
from consumer.cli.options import ConfigOption, SetOption, StoreOption, command_config
from consumer.cli.results import standard_error, standard_output
from consumer.cli.runs.demo_feed import DemoFeed
from consumer.cli.runs.feed_report import show_flags
from consumer.config.config import Config
from consumer.decode.codecs import formats_for_help
from consumer.kafka.mock_cluster import mock_cluster
from consumer.kafka.time_limits import ENDING_S
from consumer.kafka.topics import SinkTopics
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.pipeline.feed_kind import Streams
from consumer.telemetry.health import enforce_stop
from consumer.text.install_advice import CONSOLE_PACKAGES, import_extra
from consumer.text.sample_feed import sample_feed
from consumer.wiring import components
from consumer.wiring.lasting_run import LastingRun, prepared_lasting_run
from storage.interface import Store

TOPIC: Final = "articles"
PREFIX: Final = "dupwatch"
_TOPICS: Final = SinkTopics(PREFIX, unique=True, verdicts=True, near_misses=True, bank_matches=True)
PERSON: Final = "demo"
"""The person who decides in the console of the demo, without signing in."""
_DEFAULTS: Final = (
    "console.listen=127.0.0.1:0",
    "http.listen=127.0.0.1:0",
    "kafka.unique=true",
    # The demo feed is JSON, whatever format the configuration sets for a real feed.
    "kafka.value_format=json",
    "sink.emit=all",
    "store.durability=process",
)
"""Free ports, so that a demo can run next to a consumer; all topics; a store that need not survive power loss."""
_REMINDER_FLAGS: Final = 5
"""The address is printed again after this many flags, which fill a small terminal window."""
_NEAR_MISSES: Final = "kafka.near_miss_share=1"
"""Sends all near misses, since the sample feed has few."""
_BANKS: Final = (
    Bank(bank="spam", action="deny", note="Texts that moderators have seen before"),
    Bank(bank="notices", action="allow", note="Notices that everybody may repeat"),
)


class _EndOfFeed(StopSignal):
    """A stop signal that is also given at the end of the feed."""

    def __init__(self) -> None:
        super().__init__(interrupts=False)

    def end_feed(self) -> None:
        """Stop the run, because the feed has ended."""
        if self.requested_by is None:
            self.requested_at_s = time.monotonic()
            self.requested_by = signal.SIGTERM


class _Reminder:
    """Prints where to look at flags: at the start, when the address may have scrolled away, and at the end."""

    def __init__(self, console: Console, stopping: StopSignal) -> None:
        self._console = console
        self._stopping = stopping
        self._where: str | None = None
        self._flags = 0
        self._end_announced = False

    def begin(self, where: str) -> None:
        """Print where to look at flags."""
        self._where = where
        self._print()

    def count_flags(self, flags: int) -> None:
        """Count printed flags, and print the address again if it may have scrolled away."""
        self._flags += flags
        if self._flags >= _REMINDER_FLAGS:
            self._print()

    def announce_end(self) -> None:
        """On the first call, print that the demo remains open.

        Later calls follow batches from other clients. They print the address if flags were printed in between.
        """
        if self._stopping.requested():
            return
        if not self._end_announced:
            self._end_announced = True
            self._console.print("The feed has ended. The demo remains open until Ctrl-C.")
            self._print()
        elif self._flags:
            self._print()

    def _print(self) -> None:
        self._flags = 0
        if self._where is not None:
            self._console.print(self._where, style="bold")


class _Watcher:
    """Prints every flag, counts dead letters, and passes the number of answered records to ``count_answers``."""

    def __init__(self, console: Console, reminder: _Reminder, count_answers: Callable[[int], None]) -> None:
        self._console = console
        self._reminder = reminder
        self._count_answers = count_answers
        self.store: Store | None = None
        self.dead_letters = 0

    def listen(self, hooks: Hooks) -> None:
        """Follow commits from now on. Flags are printed once ``store`` is set, because the store has their titles."""
        hooks.on(BatchCommitted, self._committed)

    def _committed(self, batch: BatchCommitted) -> None:
        self.dead_letters += len(batch.letters)
        if self.store is not None:
            show_flags(self._console, self.store, batch.verdicts)
            self._reminder.count_flags(sum(verdict.outcome == "duplicate" for verdict in batch.verdicts))
        self._count_answers(len(batch.verdicts) + len(batch.letters))


def demo(
    feed: Annotated[
        Path | None,
        typer.Option(help=f"Articles as {formats_for_help()}; default: the sample feed."),
    ] = None,
    rate: Annotated[float, typer.Option(help="Articles per second.", min=0.01)] = 50.0,
    forever: Annotated[bool, typer.Option("--forever", help="Keep running after the feed ends, until Ctrl-C.")] = False,
    store: StoreOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Try the Kafka consumer without a server: judge a feed at a steady rate, and print flags as they are found.

    A mock Kafka cluster, a producer of the feed, the real consumer and the moderators' console run in this one process.
    Other clients can read and write the topics while it runs. On a terminal it continues after the end of the feed,
    until Ctrl-C. Decisions are deleted at the end, and so is the store unless --store names one.
    """
    console = render.console(stderr=True)
    stopping = _EndOfFeed()
    with ExitStack() as stack:
        stack.enter_context(stopping.handle_signals())
        address = stack.enter_context(mock_cluster([TOPIC, *_topic_names()]))
        folder = stack.enter_context(TemporaryDirectory(prefix="dupwatch-demo-"))
        chosen = _demo_config(
            config,
            [*_DEFAULTS, f"console.database=sqlite:///{folder}/console.db"],
            overrides or (),
            # The user's own store should not get the layout of a store with banks.
            _bank_file(Path(folder)) if store is None else None,
            source__url=f"kafka://{address}/{TOPIC}",
            sink__url=f"kafka://{address}/{PREFIX}",
            store__url=store or f"lmdb:{folder}/store",
        )
        # Looking at the console takes longer than the feed lasts.
        stays_open = forever or (sys.stdin.isatty() and console.is_terminal)
        reminder = _Reminder(console, stopping)
        at_end = reminder.announce_end if stays_open else stopping.end_feed
        with _opened_feed(chosen, feed or sample_feed(), address, rate, at_end) as demo_feed:
            watcher = _Watcher(console, reminder, demo_feed.count_answered)
            streams = Streams(standard_output(), standard_error())
            with prepared_lasting_run(chosen, streams, Hooks(watcher), stopping) as ready:
                watcher.store = ready.store
                enforce_stop(stopping, ready.health.note_stopping, chosen.kafka.drain_s + ENDING_S)
                _show_addresses(console, address, ready)
                with _serve_console(console, reminder, chosen, ready, stopping):
                    demo_feed.start(lambda: not ready.health.unready_reasons())
                    ready.pipeline.run()
                    seconds = demo_feed.seconds()
        console.print(render.summary(ready.tally, watcher.dead_letters, seconds, ready.engine))


def _demo_config(
    config: Path | None, defaults: Sequence[str], overrides: Sequence[str], banks: Path | None, **flags: str
) -> Config:
    """Return the configuration, with near misses and the file of ``banks``.

    Both are left out with plain SimHash, which refuses them. The banks are also left out if ``banks`` is None, if the
    configuration names other banks, or if it has workers, which may be processes that know no banks.
    """
    chosen = command_config(config, [*defaults, *overrides], **flags)
    if not chosen.judge.verify:
        return chosen
    of_banks = [] if banks is None or chosen.banks.url is not None or chosen.workers else [f"banks.url={banks}"]
    return command_config(config, [*defaults, _NEAR_MISSES, *of_banks, *overrides], **flags)


def _bank_file(folder: Path) -> Path:
    """Write the banks that the console of the demo shows, and return the path of their file."""
    path = folder / "banks.jsonl"
    path.write_bytes(lines_of(_BANKS))
    return path


def _topic_names() -> list[str]:
    return [
        _TOPICS.duplicates_topic,
        _TOPICS.unique_topic,
        _TOPICS.verdicts_topic,
        _TOPICS.dead_letters_topic,
        _TOPICS.floods_topic,
        _TOPICS.stories_topic,
        _TOPICS.near_misses_topic,
        _TOPICS.bank_matches_topic,
    ]


@contextmanager
def _serve_console(
    console: Console, reminder: _Reminder, config: Config, run: LastingRun, stopping: StopSignal
) -> Iterator[None]:
    """Serve the moderators' console on a thread until the end of the block.

    If its packages are missing, print how to install them, and how to see the latest flags of the run.
    """
    try:
        wiring = import_extra("consumer.wiring.console", CONSOLE_PACKAGES, "console", "The console of the demo")
    except ConfigError as error:
        console.print(f"{error}")
        if run.address:
            reminder.begin(f"The latest flags: dupwatch top {run.address}")
        yield
        return
    with wiring.prepared_console(config, Hooks(), stopping, demo=wiring.Demo(run.store, PERSON)) as ready:
        thread = threading.Thread(target=ready.run, name="console", daemon=True)
        thread.start()
        reminder.begin(f"The moderators' console (no sign-in needed): {ready.url}/")
        try:
            yield
        finally:
            ready.stop()
            thread.join()


@contextmanager
def _opened_feed(
    config: Config, feed: Path, address: str, rate: float, at_end: Callable[[], None]
) -> Iterator[DemoFeed]:
    source = components.feed_file(config, feed)
    demo_feed = DemoFeed(source, components.file_decoder(config), (address, TOPIC), rate, at_end)
    try:
        yield demo_feed
        demo_feed.close()
    finally:
        source.close()


def _show_addresses(console: Console, address: str, ready: LastingRun) -> None:
    console.print(f"Kafka, during the demo: {address}  (topics {TOPIC}, {', '.join(_topic_names())})")
    if ready.address:
        console.print(f"Health and metrics: {ready.address}/readyz  {ready.address}/metrics")
