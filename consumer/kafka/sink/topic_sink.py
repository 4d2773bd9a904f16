"""Writes verdicts and the clean feed to topics: the messages of a judged record and of a release."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from typing_extensions import override

from consumer.kafka.sink.event_headers import origin_headers, side_headers
from consumer.kafka.sink.letter_headers import TIMESTAMP
from consumer.kafka.sink.outbox import Outbox, OutboxOutput
from consumer.kafka.sink.outgoing import OutgoingMessage, time_of
from consumer.kafka.sink.topic_letters import TopicDeadLetters
from consumer.kafka.topics import SinkTopics
from consumer.model.bank_match import SCHEMA as BANK_MATCH
from consumer.model.bank_match import bank_match
from consumer.model.near_miss import SCHEMA as NEAR_MISS
from consumer.model.ports import JudgedRecord, ReleasingSink
from consumer.model.record import Headers
from consumer.model.verdict import BankMention


@dataclass(frozen=True, slots=True)
class MessageRouting:
    """The choice of messages for each event, and of the topics that they go to.

    ``headers_of`` returns the headers of a verdict, ``side_headers_of`` those of another event, given its schema.
    """

    topics: SinkTopics
    headers_of: Callable[[JudgedRecord], Headers]
    side_headers_of: Callable[..., Headers] = side_headers

    def verdict_messages(self, answer: JudgedRecord) -> Iterator[OutgoingMessage]:
        """Yield the messages of one judged record."""
        topics, outcome, key = self.topics, answer.event.verdict.outcome, answer.event.verdict.id.encode()
        if outcome == "duplicate" or topics.verdicts:
            headers = self.headers_of(answer)
            if outcome == "duplicate":
                yield OutgoingMessage(topics.duplicates_topic, key, answer.event.encoded, headers)
            if topics.verdicts:
                yield OutgoingMessage(topics.verdicts_topic, key, answer.event.encoded, headers)
        if topics.unique:
            yield from _clean_feed_messages(answer, topics.unique_topic)
        if topics.near_misses and answer.event.near_miss is not None:
            headers = self.side_headers_of(answer, NEAR_MISS)
            yield OutgoingMessage(topics.near_misses_topic, key, answer.event.near_miss, headers)
        matched = None if answer.match_withheld or not topics.bank_matches else bank_match(answer.event.verdict)
        if matched is not None:
            yield OutgoingMessage(topics.bank_matches_topic, key, matched, self.side_headers_of(answer, BANK_MATCH))

    def release_messages(self, answer: JudgedRecord) -> Iterator[OutgoingMessage]:
        """Yield the messages of a release; if its record is available, the article returns to the clean feed."""
        key, headers = answer.event.verdict.id.encode(), self.headers_of(answer)
        yield OutgoingMessage(self.topics.duplicates_topic, key, answer.event.encoded, headers)
        if self.topics.verdicts:
            yield OutgoingMessage(self.topics.verdicts_topic, key, answer.event.encoded, headers)
        if self.topics.unique and answer.record.partition is not None:
            yield from _clean_feed_messages(answer, self.topics.unique_topic)

    def match_message(self, answer: JudgedRecord, mention: BankMention, match: bytes) -> OutgoingMessage:
        """Return the message with the event ``match``, about a stored article that repeats an item added later."""
        headers = self.side_headers_of(answer, BANK_MATCH, about=f"{mention.bank}/{mention.item}")
        return OutgoingMessage(self.topics.bank_matches_topic, answer.event.verdict.id.encode(), match, headers)


class KafkaSink(OutboxOutput, ReleasingSink):
    """A sink of verdicts in the topics of one prefix; the outbox decides how often each verdict is delivered."""

    def __init__(self, outbox: Outbox, messages: MessageRouting) -> None:
        super().__init__(outbox)
        self._messages = messages

    @override
    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        for answer in answers:
            for message in self._messages.verdict_messages(answer):
                self.outbox.send(message)

    @override
    def release(self, answer: JudgedRecord) -> None:
        for message in self._messages.release_messages(answer):
            self.outbox.send(message)

    def announce(self, topic: str, key: str, event: bytes) -> None:
        """Send an event of the console."""
        self.outbox.send(OutgoingMessage(topic, key.encode(), event, []))

    def report_match(self, answer: JudgedRecord, mention: BankMention, match: bytes) -> None:
        """Send the event ``match``, about a stored article that repeats an item added later."""
        self.outbox.send(self._messages.match_message(answer, mention, match))

    def dead_letters(self) -> TopicDeadLetters:
        """Return the sink of dead letters for the same prefix."""
        return TopicDeadLetters(self.outbox, self._messages.topics.dead_letters_topic)


def _clean_feed_messages(answer: JudgedRecord, topic: str) -> Iterator[OutgoingMessage]:
    """Yield the message for the clean feed: the unchanged record of a unique version, else a tombstone.

    A header repeats the record's time, because a topic with LogAppendTime replaces it.

    Every duplicate makes a tombstone, not only a new version of an article that was in the feed before. Only the store
    knows which ids were in the feed. A retry or a second consumer must send the same message, because the last message
    of an id has to be right whichever process wrote it. Readers ignore a tombstone for an unknown id, and compaction
    removes it. A missing tombstone would leave a duplicate in the feed for ever.

    If the record has a key that is not the id (``id_from = "value"``), no tombstone is sent: it would remove another
    article with the same key.
    """
    record, key = answer.record, answer.event.verdict.id.encode()
    if answer.event.verdict.outcome == "unique":
        # If a header was lost, readers need the position to find the original.
        headers = [*record.headers, *(origin_headers(record) if record.headers_lost else ())]
        time_ms = time_of(record)
        if time_ms is not None:
            headers.append((TIMESTAMP, b"%d" % time_ms))
        yield OutgoingMessage(topic, key if record.key is None else record.key, record.data, headers, time_ms)
    elif record.key in {None, key}:
        yield OutgoingMessage(topic, key, None, [])
