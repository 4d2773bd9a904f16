"""Sends the console's releases and events to the sink's topics, or to a file next to the sink's file."""

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
from consumer.kafka.topics import missing_topics
from consumer.model.errors import ConfigError, SinkError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.ports import ReleasingSink
from consumer.model.record import RawRecord
from consumer.reviews.outbox.events import SINK_KINDS, EventKind
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
from storage.files import WriteOptions
from storage.interface import Store

log = logging.getLogger("dupwatch")

GATHER_S: Final = 0.5
"""How long records are gathered before their releases are made together."""
_WHOLE_EVENTS: Final = WholeLines(b'{"schema":"dupwatch.', "the console's events")
BROKERS_S: Final = 20.0
"""The time limit for brokers to accept events. A release that exceeds it is tried again from the beginning."""


class EventSink(EventPort, Protocol):
    """A sink of the console's own events and of releases."""

    def opened(self) -> AbstractContextManager[ReleasingSink]:
        """Open the sink for some releases. Raises ``SinkError`` if it cannot be written."""
        ...

    def close(self) -> None:
        """Close its file or its producer."""
        ...


class ConsoleFile(EventSink):
    """The console's own file, next to the file of the run. It is opened for a few events at a time, and always durable.

    Opening the file cuts off an incomplete event that a killed process left. Used by several threads.
    """

    streams: Sequence[frozenset[EventKind]] = (SINK_KINDS,)

    def __init__(self, path: Path, mode: int) -> None:
        self._path = path
        self._writing = WriteOptions(durable=True, mode=mode)
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
        """Do nothing, because the file is closed after each use."""


class _MessageKey(msgspec.Struct):
    """The member of an event that is the key of its message."""

    original: str


class TopicEventSink(EventSink):
    """The topics of consumers, through one producer, which is created when needed and replaced after a ``SinkError``.

    ``proceed`` is called during waits for brokers. For one thread.
    """

    # One stream for each kind, because one topic may be missing if an earlier version created the others.
    streams: Sequence[frozenset[EventKind]] = tuple(frozenset({kind}) for kind in sorted(SINK_KINDS))

    def __init__(self, config: Config, hooks: Hooks, proceed: Callable[[], None]) -> None:
        self._config = config
        self._hooks = hooks
        self._proceed = proceed
        self._address = parse_prefix(config.sink.url)
        self._topics = sink_topics(config)
        self._kind_topics: dict[EventKind, str] = {
            "story": self._topics.stories_topic,
            "flood": self._topics.floods_topic,
        }
        self._sink: KafkaSink | None = None
        self._existing: set[str] = set()
        """Topics that are known to exist."""
        self._deadline_s = 0.0

    @override
    @contextmanager
    def opened(self) -> Iterator[KafkaSink]:
        """Yield the sink. Raises ``SinkError`` if a topic is missing; the client would silently wait for it."""
        with self._sink_for(*self._topics.written_topics) as sink:
            yield sink

    @override
    def send(self, events: Sequence[StoredEvent]) -> None:
        with self._sink_for(*{self._kind_topics[event.kind] for event in events}) as sink:
            for event in events:
                key = msgspec.json.decode(event.payload, type=_MessageKey).original
                sink.announce(self._kind_topics[event.kind], key, event.payload)
            sink.flush()

    @override
    def close(self) -> None:
        self._existing.clear()
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    @contextmanager
    def _sink_for(self, *topics: str) -> Iterator[KafkaSink]:
        """Yield the sink after checking that these topics exist. Raises ``SinkError`` if one is missing."""
        self._deadline_s = time.monotonic() + BROKERS_S
        url = self._config.sink.url
        if not self._existing.issuperset(topics):
            options = components.kafka_options(self._config)
            missing = missing_topics(admin_settings(self._address.brokers, options), topics)
            if missing:
                raise SinkError(
                    f"there is no topic {', '.join(missing)}: create it with dupwatch topics init --sink {url}"
                )
            self._existing.update(topics)
            # The answer may have come late.
            self._check_deadline()
        if self._sink is None:
            opening = replace(sink_opening(self._config, self._hooks, url), proceed=self._check_deadline)
            self._sink = topic_sink(url, opening)
        try:
            yield self._sink
        except SinkError:
            self.close()
            raise

    def _check_deadline(self) -> None:
        self._proceed()
        if time.monotonic() > self._deadline_s:
            raise SinkError(f"{self._config.sink.url} did not accept an event within {BROKERS_S:g} s")


def event_sinks(config: Config, hooks: Hooks, proceed: Callable[[], None]) -> tuple[EventSink, EventSink]:
    """Return the sink of releases and the sink of other events, each for its own thread.

    ``proceed`` is called during waits for brokers.
    """
    own = console_file(config)
    if own is None:
        return TopicEventSink(config, hooks, proceed), TopicEventSink(config, hooks, proceed)
    file = ConsoleFile(own, config.files.bits)
    return file, file


def unwritable_file(config: Config) -> Path | None:
    """Return the file of the console's events if this process may not write it; None if it may, or if there is none."""
    return unwritable_path(lambda: None, console_file(config))


class SinkReleases(ReleasePort):
    """Releases in the store, whose events go to the readers of the configured sink. For one thread.

    ``proceed`` is called during waits for brokers. ``has_times`` says whether the brokers can find an offset by
    its time.
    """

    def __init__(
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
        self._upcoming: Sequence[tuple[str, str]] = ()
        self._origins: RecordOrigins | None = None

    def prepare(self, versions: Sequence[tuple[str, str]]) -> None:
        """Note the next versions, so that one search finds the records of all versions without an origin."""
        self._upcoming, self._origins = versions, None

    def release(self, releases: Sequence[PendingRelease]) -> list[ConfigError | SourceError | None]:
        """Release versions, and send their events to readers. Return the outcomes, as ``ReleasePort`` says."""
        store, read_at_s = self._access(), time.monotonic()
        versions = releasable_versions(store, [(release.article_id, release.version) for release in releases])
        outcomes, plans = self._gather(store, releases, versions)
        if plans:
            # Opened last, because its time limit for brokers begins now, and the search may have taken longer.
            with self._sink.opened() as sink:
                FlagReleaser(store, AnsweringSink(sink), self._clock).release(plans, read_at_s)
        return outcomes

    def _gather(
        self, store: Store, releases: Sequence[PendingRelease], versions: Sequence[FlaggedVersion | ConfigError]
    ) -> tuple[list[ConfigError | SourceError | None], list[ReleasePlan]]:
        """Find the records of the first releases. Return their outcomes, and the plans to carry out."""
        outcomes: list[ConfigError | SourceError | None] = []
        plans: dict[bytes, ReleasePlan] = {}
        until_s = time.monotonic() + GATHER_S
        for release, version in zip(releases, versions, strict=True):
            if outcomes and time.monotonic() > until_s:
                break
            self._proceed()
            if isinstance(version, ConfigError):
                outcomes.append(version)
                continue
            if version.reference in plans:
                # Requested twice; the next call finds it released.
                break
            clean_record = self._record_to_return(store, version)
            if release.is_patient and isinstance(clean_record, ReturnObstacle) and clean_record.is_temporary:
                outcomes.append(
                    SourceError(f"{release.article_id!r} cannot be sent to the clean feed yet: {clean_record.reason}")
                )
                # The search may have taken a long time, and so may searches for the others.
                break
            outcomes.append(None)
            plans[version.reference] = ReleasePlan(FlagReversal(version, release.attribution), clean_record)
        return outcomes, list(plans.values())

    def _record_to_return(self, store: Store, version: FlaggedVersion) -> RawRecord | ReturnObstacle | None:
        if version.stored.record.origin is None:
            self._find_upcoming_origins(store)
        return self._records.record_of(version, self._origins)

    def close(self) -> None:
        """Close the clients."""
        self._records.close()
        self._sink.close()

    def _find_upcoming_origins(self, store: Store) -> None:
        """Find the records of upcoming versions without an origin, all in one search."""
        upcoming, self._upcoming = self._upcoming, ()
        if not upcoming:
            return
        references = [reference for pair in upcoming if (reference := storable_reference(*pair)) is not None]
        stored = [version for version in store.read(references) if version is not None]
        try:
            self._origins = self._records.origins_of(stored)
        except SourceError as error:
            # Each release then searches for its own record, and reports the outcome.
            log.warning(
                "The records of released articles are searched for one by one, because searching for all failed: %s",
                error,
            )
