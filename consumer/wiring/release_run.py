"""A release over topics, built and wired: its event goes to the readers of flags, its article back to the clean feed.

A flag leaves a tombstone in ``PREFIX.unique``. To undo that takes the record itself, and the store has no copy of it.
The flag's event in ``PREFIX.duplicates`` says in its headers where the record is. If the record there is not the
released version any more, nothing is sent.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from consumer.config.config import Config
from consumer.judge.events import version_name
from consumer.judge.versions import ArrivedAt
from consumer.kafka.broker_wait import waiting_for_brokers
from consumer.kafka.client_settings import (
    KafkaPlace,
    consumer_settings,
    is_kafka,
    parse_kafka,
    parse_prefix,
    producer_settings,
)
from consumer.kafka.event_headers import ORIGIN_OFFSET, ORIGIN_PARTITION, ORIGIN_TOPIC
from consumer.kafka.offset_range import Bound, Ranges, Stretch
from consumer.model.errors import BadRecord, SinkError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.ports import Answer
from consumer.model.record import Message, Position, RawRecord
from consumer.model.verdict import Released, Verdict, decode_verdict
from consumer.sinks.at_least_once import AtLeastOnceOutbox
from consumer.sinks.kafka import KafkaSink
from consumer.sinks.kafka_messages import Messages
from consumer.sources.stretch import StretchSource
from consumer.wiring import parts
from consumer.wiring.kafka_parts import check_topics, headers_of, message_decoder, record_times, sink_topics
from storage.clock import MS_PER_S
from storage.records import Stored

_RELEASE_S: Final = 30.0
_EARLIER_MS: Final = 600_000
"""A flag is sent after it was decided, but the clock that dates its topic may be behind by this much."""
_NOTHING: Final = RawRecord(0, 0, b"", 0, None, None, Position())


class NoWayBack(NamedTuple):
    """Why an article cannot go back to the clean feed, in a clause."""

    why: str


Place = tuple[str, int, int]
"""Topic, partition and offset."""


def way_back(config: Config, stored: Stored) -> RawRecord | NoWayBack | None:
    """Return the record to send to the clean feed again when this version is released; None without such a feed."""
    if not is_kafka(config.sink.url) or not config.kafka.unique:
        return None
    if stored.ends_at is not None:
        return NoWayBack("a later version or a retraction has arrived since, and the topic keeps the last one")
    found: RawRecord | NoWayBack | None = None
    try:
        for place in _origins(config, stored):
            if isinstance(found := _record(config, place, stored), RawRecord):
                return found
    except SourceError as error:
        return NoWayBack(str(error))
    return found or NoWayBack(f"no flag of it in {sink_topics(config).duplicates_topic} says where its record is")


def send_release(config: Config, event: bytes, record: RawRecord | None) -> None:
    """Send the event of a release to the configured sink, and the record to the clean feed if there is one.

    Raises ``SinkError`` if no broker accepts them in time.
    """
    brokers, topics = parse_prefix(config.sink.url).brokers, sink_topics(config)
    check_topics(config, brokers, topics)
    settings = producer_settings(brokers, parts.kafka_options(config), transactional=False)
    until_s = time.monotonic() + _RELEASE_S

    def proceed() -> None:
        if time.monotonic() > until_s:
            raise SinkError(
                f"{config.sink.url} did not accept the event within {_RELEASE_S:g} s. The article is released "
                "nevertheless; rerun the command to send the event"
            )

    hooks = Hooks()
    outbox = AtLeastOnceOutbox(settings, record_times(config, hooks), hooks, proceed)
    sink = KafkaSink(outbox, Messages(topics, headers_of(config, config.sink.url)))
    try:
        with waiting_for_brokers(brokers):
            sink.release(Answer(record or _NOTHING, event, decode_verdict(event)))
            sink.flush()
    finally:
        sink.close()


def _origins(config: Config, stored: Stored) -> Iterator[Place]:
    """Yield where the flags of this version say that its record is. Raises ``SourceError``."""
    if stored.verdict is None:
        return
    topics, brokers = sink_topics(config), parse_prefix(config.sink.url).brokers
    article_id, version = stored.record.id, version_name(stored.record.reference)
    since = Bound(time_ms=_flagged_ms(decode_verdict(stored.verdict)) - _EARLIER_MS)
    seen: set[Place] = set()
    for record in _read(config, KafkaPlace(brokers, (topics.duplicates_topic,)), Stretch(since)):
        message = record.message
        if message is None or message.key != article_id.encode() or not _is_flag(record.data, version):
            continue
        origin = _origin(message)
        if origin is not None and origin not in seen:
            seen.add(origin)
            yield origin


def _record(config: Config, place: Place, stored: Stored) -> RawRecord | NoWayBack:
    """Return the record at a place, if it is still there and is this version."""
    topic, partition, offset = place
    where = f"{topic} [{partition}] offset {offset}"
    # If the configuration names no topics to read, they are on the brokers of the sink.
    url = config.source.url if is_kafka(config.source.url) else config.sink.url
    source = KafkaPlace(parse_kafka(url).brokers, (topic,))
    try:
        record = next(_read(config, source, {(topic, partition): (offset, offset + 1)}), None)
    except SourceError as error:
        return NoWayBack(f"its record at {where} cannot be read: {error}")
    if record is None:
        return NoWayBack(f"its record at {where} no longer exists")
    if not _is_version(config, record, stored):
        return NoWayBack(f"the record at {where} is not this version, as decoded with these settings")
    return record


def _read(config: Config, place: KafkaPlace, stretch: Stretch | Ranges) -> Iterator[RawRecord]:
    settings = consumer_settings(place.brokers, parts.kafka_options(config))
    with closing(StretchSource(settings, place.names, parts.read_limits(config), stretch)) as source:
        for batch in source.batches():
            yield from batch.records


def _is_version(config: Config, record: RawRecord, stored: Stored) -> bool:
    """Return whether a record is this version: the same id, title and text."""
    try:
        article = message_decoder(config)(record)
    except BadRecord:
        return False
    if article.id != stored.record.id or article.body is None:
        return False
    lexicon = parts.lexicon_of(config)
    settings = parts.judge_settings(config, lexicon)
    fingerprints = parts.fingerprinter(settings, lexicon).fingerprint([article.body], [article.lang])
    (version,) = parts.version_builder(settings).versions([article], [ArrivedAt(0, 0)], fingerprints)
    return version.record.reference == stored.record.reference


def _is_flag(data: bytes, version: str) -> bool:
    try:
        verdict = decode_verdict(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Anybody may write to a topic.
        return False
    return verdict.outcome == "duplicate" and verdict.version == version


def _origin(message: Message) -> Place | None:
    headers: Mapping[str, bytes | None] = dict(message.headers)
    topic, partition, offset = (headers.get(name) or b"" for name in (ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET))
    if not topic or not partition.isdigit() or not offset.isdigit():
        return None
    return topic.decode(errors="replace"), int(partition), int(offset)


def _flagged_ms(verdict: Verdict) -> int:
    flagged_at = verdict.released.flagged_at if isinstance(verdict.released, Released) else verdict.decided_at
    return int(datetime.fromisoformat(flagged_at).timestamp() * MS_PER_S)
