"""Releases and events of the console, to the topics of the sink or to a file beside it; releases in the store first."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

import msgspec
from typing_extensions import override

from consumer.config.config import Config
from consumer.console.intake.event_sending import EventPort
from consumer.console.intake.sending import PendingRelease, ReleasePort
from consumer.files.line_file import LineFile, WholeLines
from consumer.files.sinks import NO_CHECKPOINT, FileSink
from consumer.judge.events import storable_reference
from consumer.kafka.client_settings import admin_settings, parse_prefix
from consumer.kafka.opening import topic_sink
from consumer.kafka.sink.topic_sink import KafkaSink
from consumer.kafka.topics import missing
from consumer.model.errors import ConfigError, SinkError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.ports import ReleasingSink
from consumer.model.record import RawRecord
from consumer.reviews.outbox.events import FOR_SINK, EventKind
from consumer.reviews.outbox.sink_events import StoredEvent
from consumer.service.answering import AnsweringSink
from consumer.store_tools.released_record import RecordOrigins, ReturnObstacle
from consumer.store_tools.releases import FlaggedVersion, FlagReversal, releasable_versions
from consumer.wiring import components
from consumer.wiring.console_feed import console_file
from consumer.wiring.console_store import StoreAccess, unwritable_path
from consumer.wiring.feeds import sink_opening
from consumer.wiring.kafka_parts import sink_topics
from consumer.wiring.release_run import FlagReleaser, ReleasePlan
from consumer.wiring.source_records import SourceRecords
from storage.clock import Clock
from storage.files import FileWriting
from storage.interface import Store

log = logging.getLogger("dupwatch")

GATHER_S: Final = 0.5
"""How long records are gathered before their releases are carried out together."""
_WHOLE_EVENTS: Final = WholeLines(b'{"schema":"dupwatch.', "the console's events")
BROKERS_S: Final = 20.0
"""How long brokers may take to accept an event, before its release is tried again from the beginning."""


class EventSink(EventPort, Protocol):
    """Where the console's own events go, and those of releases."""

    def opened(self) -> AbstractContextManager[ReleasingSink]:
        """Open it for some releases. Raises ``SinkError`` where it cannot be written."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class ConsoleFile(EventSink):
    """A file of the console's own, beside that of a run. It is opened for a few events at a time, and always durable.

    What is left of an event during whose writing a process was killed is cut off then. Used by several threads.
    """

    streams: Sequence[frozenset[EventKind]] = (FOR_SINK,)

    def __init__(self, path: Path, mode: int) -> None:
        self._path = path
        self._writing = FileWriting(durable=True, mode=mode)
        self._lock = threading.Lock()

    @override
    @contextmanager
    def opened(self) -> Iterator[ReleasingSink]:
        with self._lock, closing(FileSink(self._path, _WHOLE_EVENTS, self._writing)) as sink:
            yield sink

    @override
    def send(self, events: Sequence[StoredEvent]) -> None:
        with (
            self._lock,
            closing(LineFile(self._path, _WHOLE_EVENTS, self._writing, NO_CHECKPOINT)) as file,
        ):
            file.write([event.payload for event in events])
            file.sync()

    @override
    def close(self) -> None:
        """Do nothing: it is closed after each use."""


class _MessageKey(msgspec.Struct):
    """The member of an event that is the key of its message."""

    original: str


class TopicEventSink(EventSink):
    """The topics of consumers, through one producer, which is made when it is needed, and made anew after an error.

    ``proceed`` is called while brokers are waited for. For one thread.
    """

    # Apart: a topic may be missing where an earlier version made the others.
    streams: Sequence[frozenset[EventKind]] = tuple(frozenset({kind}) for kind in sorted(FOR_SINK))

    def __init__(self, config: Config, hooks: Hooks, proceed: Callable[[], None]) -> None:
        self._config = config
        self._hooks = hooks
        self._proceed = proceed
        self._place = parse_prefix(config.sink.url)
        self._topics = sink_topics(config)
        self._own: dict[EventKind, str] = {"story": self._topics.stories_topic, "flood": self._topics.floods_topic}
        self._sink: KafkaSink | None = None
        self._found: set[str] = set()
        """Topics that were there when this producer was made, or later."""
        self._until_s = 0.0

    @override
    @contextmanager
    def opened(self) -> Iterator[KafkaSink]:
        """Yield the producer. Raises ``SinkError`` where a topic is missing, which would be waited for silently."""
        with self._used(*self._topics.written) as sink:
            yield sink

    @override
    def send(self, events: Sequence[StoredEvent]) -> None:
        with self._used(*{self._own[event.kind] for event in events}) as sink:
            for event in events:
                key = msgspec.json.decode(event.payload, type=_MessageKey).original
                sink.announce(self._own[event.kind], key, event.payload)
            sink.flush()

    @override
    def close(self) -> None:
        self._found.clear()
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    @contextmanager
    def _used(self, *topics: str) -> Iterator[KafkaSink]:
        """Yield the producer once the brokers have these topics. Raises ``SinkError`` where one is missing."""
        self._until_s = time.monotonic() + BROKERS_S
        url = self._config.sink.url
        if not self._found.issuperset(topics):
            gone = missing(admin_settings(self._place.brokers, components.kafka_options(self._config)), topics)
            if gone:
                raise SinkError(
                    f"there is no topic {', '.join(gone)}: create it with dupwatch topics init --sink {url}"
                )
            self._found.update(topics)
            # The answer may have come late.
            self._waited()
        if self._sink is None:
            self._sink = topic_sink(url, replace(sink_opening(self._config, self._hooks, url), proceed=self._waited))
        try:
            yield self._sink
        except SinkError:
            self.close()
            raise

    def _waited(self) -> None:
        self._proceed()
        if time.monotonic() > self._until_s:
            raise SinkError(f"{self._config.sink.url} did not accept an event within {BROKERS_S:g} s")


def event_sinks(config: Config, hooks: Hooks, proceed: Callable[[], None]) -> tuple[EventSink, EventSink]:
    """Return where releases go, and where other events do, each for a thread of its own.

    ``proceed`` is called while brokers are waited for.
    """
    own = console_file(config)
    if own is None:
        return TopicEventSink(config, hooks, proceed), TopicEventSink(config, hooks, proceed)
    file = ConsoleFile(own, config.files.bits)
    return file, file


def unwritable_file(config: Config) -> Path | None:
    """Return the file of the console's own events where this process may not write it; None over topics."""
    return unwritable_path(lambda: None, console_file(config))


class SinkReleases(ReleasePort):
    """Releases in the store, and tells the readers of the configured sink. For one thread.

    ``proceed`` is called while brokers are waited for. ``has_times``: they find an offset by its time.
    """

    def __init__(  # what it takes to release
        self,
        config: Config,
        access: StoreAccess,
        clock: Clock,
        sink: EventSink,
        proceed: Callable[[], None],
        *,
        has_times: bool = True,
    ) -> None:
        self._access = access
        self._clock = clock
        self._proceed = proceed
        self._sink = sink
        self._records = SourceRecords(config, proceed=proceed, has_times=has_times)
        self._coming: Sequence[tuple[str, str]] = ()
        self._known: RecordOrigins | None = None

    def prepare(self, versions: Sequence[tuple[str, str]]) -> None:
        """Note what comes next, so that the first of them without an origin is searched for together with the rest."""
        self._coming, self._known = versions, None

    def release(self, wanted: Sequence[PendingRelease]) -> list[ConfigError | SourceError | None]:
        """Release versions, and send what readers have to know."""
        store, read_at_s = self._access(), time.monotonic()
        versions = releasable_versions(store, [(each.article_id, each.version) for each in wanted])
        if all(isinstance(version, ConfigError) for version in versions):
            return [version for version in versions if isinstance(version, ConfigError)]
        with self._sink.opened() as sink:
            outcomes, plans = self._gathered(store, wanted, versions)
            if plans:
                FlagReleaser(store, AnsweringSink(sink), self._clock).release(plans, read_at_s)
        return outcomes

    def _gathered(
        self, store: Store, wanted: Sequence[PendingRelease], versions: Sequence[FlaggedVersion | ConfigError]
    ) -> tuple[list[ConfigError | SourceError | None], list[ReleasePlan]]:
        """Find the records of the first releases; return what became of these, and which of them to carry out."""
        outcomes: list[ConfigError | SourceError | None] = []
        plans: dict[bytes, ReleasePlan] = {}
        until_s = time.monotonic() + GATHER_S
        for each, version in zip(wanted, versions, strict=True):
            if outcomes and time.monotonic() > until_s:
                break
            self._proceed()
            if isinstance(version, ConfigError):
                outcomes.append(version)
                continue
            if version.reference in plans:
                # The next call finds it released.
                break
            back = self._way_back(store, version)
            if each.is_patient and isinstance(back, ReturnObstacle) and back.is_passing:
                outcomes.append(SourceError(f"{each.article_id!r} cannot be sent to the clean feed yet: {back.why}"))
                # It may have waited for long, as the others might.
                break
            outcomes.append(None)
            plans[version.reference] = ReleasePlan(FlagReversal(version, each.attribution), back)
        return outcomes, list(plans.values())

    def _way_back(self, store: Store, version: FlaggedVersion) -> RawRecord | ReturnObstacle | None:
        if version.stored.record.origin is None:
            self._look_for_coming(store)
        return self._records.record_of(version, self._known)

    def close(self) -> None:
        """Close the clients."""
        self._records.close()
        self._sink.close()

    def _look_for_coming(self, store: Store) -> None:
        """Find out where the records of coming versions without an origin are, for all at once."""
        coming, self._coming = self._coming, ()
        if not coming:
            return
        references = [reference for pair in coming if (reference := storable_reference(*pair)) is not None]
        stored = [version for version in store.read(references) if version is not None]
        try:
            self._known = self._records.origins_of(stored)
        except SourceError as error:
            # Each release looks for its own then, and says what became of it.
            log.warning(
                "The records of released articles could not be found all at once, so each is looked for alone: %s",
                error,
            )
