"""Reads the records of released versions from their topics, so that they can be sent to the clean feed again."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from consumer.config.config import Config
from consumer.fingerprint import Engine
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.kafka.client_settings import TopicsAddress, consumer_settings, parse_kafka, parse_prefix
from consumer.kafka.offset_range import Bound, OffsetRange
from consumer.kafka.source.offset_reader import OffsetReader
from consumer.kafka.source.range_source import RangeSource
from consumer.model.article import Article
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord
from consumer.store_tools.released_record import RecordOrigins, RecordPosition, RecordSearch, ReturnObstacle
from consumer.store_tools.releases import FlaggedVersion
from consumer.wiring import components, feeds, stores
from consumer.wiring.kafka_parts import sink_topics
from storage.records import StoredVersion, stretch_reference


class VersionParts(NamedTuple):
    """The parts that make a version from a record."""

    decode: Callable[[RawRecord], Article]
    engine: Engine
    builder: VersionBuilder


def version_parts(config: Config) -> VersionParts:
    """Build the parts that make versions from messages. Raises ``ConfigError``."""
    lexicon = components.lexicon_of(config)
    settings = components.judge_settings(config, lexicon)
    # A reference does not depend on the secret of a store.
    bound = stores.unstored_binding(config, settings)
    engine = components.engine(config, bound, lexicon)
    return VersionParts(components.message_decoder(config), engine, components.version_builder(bound))


class VersionCheck:
    """A check of whether a record has the id, title and text of a version. Any thread may use it.

    ``build`` is called once, for the first record.
    """

    def __init__(self, build: Callable[[], VersionParts]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._parts: VersionParts | None = None

    def is_version(self, record: RawRecord, stored: StoredVersion) -> bool:
        """Decode a record, and return whether it is this version, no matter how often its content had ended before."""
        with self._lock:
            if self._parts is None:
                self._parts = self._build()
            decode, engine, builder = self._parts
            try:
                article = decode(record)
            except BadRecord:
                return False
            if article.id != stored.record.id or article.body is None:
                return False
            fingerprints = engine.fingerprint([article.body], [article.lang])
            (version,) = builder.versions([article], [ArrivalTime(0, 0)], fingerprints)
        return stretch_reference(version.record.reference, stored.record.stretch or 0) == stored.record.reference


class SourceRecords:
    """A finder of the records of released versions. Any thread may use it.

    The first read creates the client for single records, which stays open until ``close``. Without ``has_times`` (the
    brokers cannot find an offset by its time) a search reads the whole topic of flags. ``proceed`` is called during a
    search, and may raise. ``build`` is that of ``VersionCheck``.
    """

    def __init__(
        self,
        config: Config,
        *,
        proceed: Callable[[], None] = lambda: None,
        has_times: bool = True,
        build: Callable[[], VersionParts] | None = None,
    ) -> None:
        self._config = config
        self._proceed = proceed
        self._has_times = has_times
        self._check = VersionCheck(build or partial(version_parts, config))
        self._lock = threading.Lock()
        self._reader: OffsetReader | None = None
        self._search = self._build_search()

    def record_of(
        self, flagged: FlaggedVersion, known: RecordOrigins | None = None
    ) -> RawRecord | ReturnObstacle | None:
        """Return the record to send to the clean feed when this version is released, or the obstacle to sending it.

        Returns None without a clean feed. Positions in ``known`` are tried before the topic of flags is searched.
        """
        return None if self._search is None else self._search.record_of(flagged, known)

    def origins_of(self, versions: Sequence[StoredVersion]) -> RecordOrigins | None:
        """Find the records of versions without an origin, in one reading of the topic of flags.

        Returns None without a clean feed. Raises ``SourceError``.
        """
        return None if self._search is None else self._search.origins_of(versions)

    def close(self) -> None:
        """Close the client."""
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _build_search(self) -> RecordSearch | None:
        config = self._config
        if not feeds.is_followed(config) or not config.kafka.unique:
            return None
        flags = TopicsAddress(parse_prefix(config.sink.url).brokers, (sink_topics(config).duplicates_topic,))
        return RecordSearch(
            flags_topic=flags.names[0],
            flags_since=partial(self._flags, flags),
            record_at=self._record_at,
            is_version=self._check.is_version,
        )

    def _record_at(self, position: RecordPosition) -> RawRecord | None:
        topic, partition, offset = position
        return self._open_reader().read((topic, partition), offset)

    def _open_reader(self) -> OffsetReader:
        config = self._config
        with self._lock:
            if self._reader is None:
                # Without configured source topics, the sink's brokers have the records.
                url = config.source.url if feeds.source_side(config).is_shared else config.sink.url
                settings = consumer_settings(parse_kafka(url).brokers, components.kafka_options(config))
                self._reader = OffsetReader(settings, components.read_limits(config).record_bytes_max)
            return self._reader

    def _flags(self, flags: TopicsAddress, time_ms: int) -> Iterator[RawRecord]:
        settings = consumer_settings(flags.brokers, components.kafka_options(self._config))
        offsets = OffsetRange(Bound(time_ms=time_ms) if self._has_times else Bound(offset=0))
        limits = components.read_limits(self._config)
        with closing(RangeSource(settings, flags.names, limits, offsets)) as source:
            for batch in source.batches():
                self._proceed()
                yield from batch.records
