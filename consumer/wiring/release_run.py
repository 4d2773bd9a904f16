"""Releases, built and wired: the event goes to readers of flags, the article back to the clean feed if there is one."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from consumer.config.config import Config
from consumer.feeds.kinds import sink_of
from consumer.judge.versions import ArrivedAt
from consumer.kafka.client_settings import (
    TopicsAddress,
    consumer_settings,
    parse_kafka,
    parse_prefix,
)
from consumer.kafka.clients import waiting_for_brokers
from consumer.kafka.offset_range import Bound, OffsetRange
from consumer.kafka.source.range_source import RangeSource
from consumer.model.errors import BadRecord, SinkError, SourceError
from consumer.model.ports import Answer
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent
from consumer.service.answering import AnsweringSink
from consumer.store_tools.released_record import NoWayBack, Origins, RecordId, RecordSearch
from consumer.store_tools.releases import Attribution, is_last, releasable, release
from consumer.wiring import components, feeds, stores
from consumer.wiring.kafka_parts import sink_topics
from storage.clock import Clock
from storage.interface import Store
from storage.records import Stored

_RELEASE_S: Final = 30.0
NO_RECORD: Final = RawRecord(0, 0, b"", 0, None, None)
"""The record of a release whose article does not return to the clean feed."""

log = logging.getLogger("dupwatch")


def way_back(
    config: Config, stored: Stored, *, has_times: bool = True, known: Origins | None = None
) -> RawRecord | NoWayBack | None:
    """Return the record to send to the clean feed again when this version is released; None without such a feed.

    Without ``has_times``, of brokers that find no offset by its time, the whole topic of flags is read. What is
    ``known`` (``known_origins``) need not be looked for.
    """
    search = _search(config, lambda: None, has_times=has_times)
    return None if search is None else search.record_of(stored, known)


def known_origins(
    config: Config, versions: Sequence[Stored], proceed: Callable[[], None], *, has_times: bool = True
) -> Origins | None:
    """Return where the records of many versions are, in one reading of the topic of flags; None without a clean feed.

    ``proceed`` is called meanwhile, and may raise. Raises ``SourceError``.
    """
    search = _search(config, proceed, has_times=has_times)
    return None if search is None else search.origins_of(versions)


def send_release(config: Config, event: bytes, record: RawRecord | None) -> None:
    """Send the event of a release to the configured sink, and the record to the clean feed if there is one.

    Raises ``SinkError`` if no broker accepts them in time.
    """
    url = config.sink.url
    until_s = time.monotonic() + _RELEASE_S

    def proceed() -> None:
        if time.monotonic() > until_s:
            raise SinkError(
                f"{url} did not accept the event within {_RELEASE_S:g} s. The article is released "
                "nevertheless; rerun the command to send the event"
            )

    opening = replace(feeds.sink_opening(config, feed=url), proceed=proceed)
    kind = sink_of(url)
    kind.check_there(url, opening)
    sink = kind.open(url, opening).sink
    try:
        with waiting_for_brokers(parse_prefix(url).brokers):
            sink.release(Answer(record or NO_RECORD, VerdictEvent.read(event)))
            sink.flush()
    finally:
        sink.close()


def _search(config: Config, proceed: Callable[[], None], *, has_times: bool) -> RecordSearch | None:
    if not feeds.is_followed(config) or not config.kafka.unique:
        return None
    flags = TopicsAddress(parse_prefix(config.sink.url).brokers, (sink_topics(config).duplicates_topic,))
    return RecordSearch(
        flags_topic=flags.names[0],
        flags_since=lambda time_ms: _read(
            config, flags, OffsetRange(Bound(time_ms=time_ms) if has_times else Bound(offset=0)), proceed
        ),
        record_at=partial(_record_at, config),
        is_version=partial(_is_version, config),
    )


def _record_at(config: Config, record_id: RecordId) -> RawRecord | None:
    topic, partition, offset = record_id
    # If the configuration names no topics to read, they are on the brokers of the sink.
    url = config.source.url if feeds.source_side(config).is_shared else config.sink.url
    source = TopicsAddress(parse_kafka(url).brokers, (topic,))
    settings = consumer_settings(source.brokers, components.kafka_options(config))
    ranges = {(topic, partition): (offset, offset + 1)}
    with closing(RangeSource(settings, source.names, components.read_limits(config), ranges, only_held=True)) as held:
        return next((record for batch in held.batches() for record in batch.records), None)


def _read(
    config: Config, place: TopicsAddress, offsets: OffsetRange, proceed: Callable[[], None]
) -> Iterator[RawRecord]:
    settings = consumer_settings(place.brokers, components.kafka_options(config))
    with closing(RangeSource(settings, place.names, components.read_limits(config), offsets)) as source:
        for batch in source.batches():
            proceed()
            yield from batch.records


def _is_version(config: Config, record: RawRecord, stored: Stored) -> bool:
    try:
        article = components.message_decoder(config)(record)
    except BadRecord:
        return False
    if article.id != stored.record.id or article.body is None:
        return False
    lexicon = components.lexicon_of(config)
    settings = components.judge_settings(config, lexicon)
    # A reference does not depend on the secret of a store.
    bound = stores.unstored_binding(config, settings)
    fingerprints = components.engine(config, bound, lexicon).fingerprint([article.body], [article.lang])
    (version,) = components.version_builder(bound).versions([article], [ArrivedAt(0, 0)], fingerprints)
    return version.record.reference == stored.record.reference


@dataclass(frozen=True, slots=True)
class Releasing:
    """Undoes flags in a store, and tells the sink of a run that judges into it."""

    config: Config
    store: Store
    sink: AnsweringSink
    clock: Clock
    has_times: bool = True
    """Whether the brokers find an offset by its time."""
    is_patient: bool = False
    """Whether the caller would rather try again than do without the clean feed."""
    known: Origins | None = None
    """Where the records of versions are, as far as that was looked for before."""

    def release(self, article_id: str, version: str | None, attribution: Attribution) -> bytes:
        """Undo a flag, and return the event, once the sink has it; the article returns to the clean feed if it can.

        Raises ``ConfigError`` where there is nothing to undo, ``SinkError``, ``Abandoned`` and the store's errors; and
        ``SourceError`` if it is patient. After an error it may be called again.
        """
        flagged = releasable(self.store, article_id, version)
        reference = flagged.record.reference
        back = way_back(self.config, flagged, has_times=self.has_times, known=self.known)
        if self.is_patient and isinstance(back, NoWayBack) and back.is_passing:
            raise SourceError(f"{article_id!r} cannot be sent to the clean feed yet: {back.why}")
        event = release(self.store, reference, attribution, self.clock)
        record = back if isinstance(back, RawRecord) and is_last(self.store, reference) else None
        self.sink.release(Answer(record or NO_RECORD, VerdictEvent.read(event)))
        if isinstance(back, NoWayBack):
            log.warning("%r was released, but is not sent to the clean feed: %s", article_id, back.why)
        elif back is not None and (record is None or not is_last(self.store, reference)):
            log.warning(
                "A newer version of %r arrived during its release: compare its last message in the clean feed with its "
                "source, and send it again if they differ",
                article_id,
            )
        return event
