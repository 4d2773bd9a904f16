"""Which messages an answer, a release and a dead letter make."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from consumer.kafka.event_headers import CUT_OF_BYTES, origin_headers
from consumer.kafka.letter_headers import TIMESTAMP
from consumer.kafka.topics import SinkTopics
from consumer.model.ports import Answer, Rejection
from consumer.model.record import NO_TIME_MS, Headers, Message


class Outgoing(NamedTuple):
    """A message to be sent; ``timestamp_ms`` is the time of the record it copies, None where the client sets it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Messages:
    """What goes to which of the topics.

    ``dress`` makes the headers of events, ``letter_headers`` all headers of dead letters, the records' own included.
    """

    topics: SinkTopics
    dress: Callable[[Answer], Headers]
    letter_headers: Callable[[Rejection], Headers]

    def answered(self, answer: Answer) -> Iterator[Outgoing]:
        """The messages that one answer makes."""
        topics, outcome, key = self.topics, answer.verdict.outcome, answer.verdict.id.encode()
        if outcome == "duplicate" or topics.verdicts:
            headers = self.dress(answer)
            if outcome == "duplicate":
                yield Outgoing(topics.duplicates_topic, key, answer.event, headers)
            if topics.verdicts:
                yield Outgoing(topics.verdicts_topic, key, answer.event, headers)
        if topics.unique:
            yield from _clean(answer, topics.unique_topic)

    def released(self, answer: Answer) -> Iterator[Outgoing]:
        """The messages that a release makes; where its record is at hand the article goes back to the clean feed."""
        key, headers = answer.verdict.id.encode(), self.dress(answer)
        yield Outgoing(self.topics.duplicates_topic, key, answer.event, headers)
        if self.topics.verdicts:
            yield Outgoing(self.topics.verdicts_topic, key, answer.event, headers)
        if self.topics.unique and answer.record.message is not None:
            yield from _clean(answer, self.topics.unique_topic)

    def rejected(self, rejection: Rejection) -> Outgoing:
        """The message that a dead letter makes: the record as it came, its own headers before those that say why.

        Of a record that was over the limit only the first bytes are there; a header has the size of the whole.
        """
        record = rejection.record
        message = record.message
        headers = self.letter_headers(rejection)
        if len(record.data) < record.size_bytes:
            headers.append((CUT_OF_BYTES, str(record.size_bytes).encode()))
        if message is None:
            return Outgoing(self.topics.dead_letters_topic, None, record.data, headers)
        value = None if message.null_value else record.data
        return Outgoing(self.topics.dead_letters_topic, message.key, value, headers, _time_of(message))


def _time_of(message: Message) -> int | None:
    return None if message.timestamp_ms == NO_TIME_MS else message.timestamp_ms


def _clean(answer: Answer, topic: str) -> Iterator[Outgoing]:
    """The clean feed: the record of a unique version as it came, and a tombstone for every other verdict.

    The record's time is in a header as well: a topic that the brokers date has no other place for it.

    Every duplicate makes a tombstone, not only a new version of an article that was in the feed before. Only the store
    knows which ids those are, and a retry or a second consumer must say the same: the last message of an id has to be
    right whoever wrote it. A tombstone for an id that was never there is a message that a reader passes over, and that
    compaction removes; one that is missing would be a duplicate in the feed for ever.

    Where the record has a key that is not the id (``id_from = "value"``), no tombstone is sent: it would take away
    another article that has the same key.
    """
    record, key = answer.record, answer.verdict.id.encode()
    message = record.message
    if answer.verdict.outcome == "unique":
        if message is None:
            yield Outgoing(topic, key, record.data, [])
        else:
            own = key if message.key is None else message.key
            # Where a header is not as it came, a reader has to be able to find the original.
            headers = [*message.headers, *(origin_headers(message) if message.headers_lost else ())]
            time_ms = _time_of(message)
            if time_ms is not None:
                headers.append((TIMESTAMP, b"%d" % time_ms))
            yield Outgoing(topic, own, record.data, headers, time_ms)
    elif message is None or message.key in {None, key}:
        yield Outgoing(topic, key, None, [])
