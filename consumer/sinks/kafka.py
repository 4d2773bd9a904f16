"""Verdicts, the clean feed and dead letters to topics, at least once.

What goes where is decided by pure functions (``answered``, ``rejected``), which the transactional sink uses too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from consumer.errors import SinkError
from consumer.message_headers import CUT_OF_BYTES, Headers
from consumer.ports import Answer, Rejection, SinkWatcher
from consumer.sinks.producing import Outgoing, Producing, Waiting, refused
from consumer.topics import SinkTopics

Dress = Callable[[Answer], Headers]
LetterHeaders = Callable[[Rejection], Headers]


def answered(answer: Answer, topics: SinkTopics, dress: Dress) -> Iterator[Outgoing]:
    """The messages that one answer makes."""
    outcome, key = answer.verdict.outcome, answer.verdict.id.encode()
    if outcome == "duplicate" or topics.verdicts:
        headers = dress(answer)
        if outcome == "duplicate":
            yield Outgoing(topics.duplicates_topic, key, answer.event, headers)
        if topics.verdicts:
            yield Outgoing(topics.verdicts_topic, key, answer.event, headers)
    if topics.unique:
        yield from _clean(answer, topics.unique_topic)


def _clean(answer: Answer, topic: str) -> Iterator[Outgoing]:
    """The clean feed: the record of a unique version as it came, and a tombstone for every other verdict.

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
            yield Outgoing(topic, own, record.data, list(message.headers), max(message.timestamp_ms, 0))
    elif message is None or message.key in {None, key}:
        yield Outgoing(topic, key, None, [])


def released(answer: Answer, topics: SinkTopics, dress: Dress) -> Iterator[Outgoing]:
    """The messages that a release makes. The article itself is not sent again: its record is not at hand."""
    key, headers = answer.verdict.id.encode(), dress(answer)
    yield Outgoing(topics.duplicates_topic, key, answer.event, headers)
    if topics.verdicts:
        yield Outgoing(topics.verdicts_topic, key, answer.event, headers)


def rejected(rejection: Rejection, topics: SinkTopics, letter_headers: LetterHeaders) -> Outgoing:
    """The message that a dead letter makes: the record as it came, its own headers before those that say why.

    Of a record that was over the limit only the first bytes are there; a header has the size of the whole.
    """
    record = rejection.record
    message = record.message
    headers = [] if message is None else list(message.headers)
    if len(record.data) < record.size_bytes:
        headers.append((CUT_OF_BYTES, str(record.size_bytes).encode()))
    headers += letter_headers(rejection)
    if message is None:
        return Outgoing(topics.dead_letters_topic, None, record.data, headers)
    value = None if message.null_value else record.data
    return Outgoing(topics.dead_letters_topic, message.key, value, headers, max(message.timestamp_ms, 0))


class KafkaSink:
    """Sends to the topics of one prefix. ``flush`` returns when everything is acknowledged by all replicas in sync.

    ``settings`` are of ``clients.producer_settings``, not transactional: the messages of a partition stay in order, and
    while the brokers are away nothing is given up. ``dress`` makes the headers of events, ``letter_headers`` those of
    dead letters. While it waits ``give_up`` is asked several times a second, and what it raises ends the waiting.
    Raises ``SinkError`` where a message can never be taken, and ``ConfigError`` where the settings are wrong.

    Memory: at most queue.buffering.max.kbytes, beside the batch that is being sent.
    """

    def __init__(  # each is another part of the run
        self,
        settings: Mapping[str, Any],
        topics: SinkTopics,
        dress: Dress,
        letter_headers: LetterHeaders,
        watcher: SinkWatcher,
        give_up: Callable[[], None],
    ) -> None:
        self._topics = topics
        self._dress = dress
        self._letter_headers = letter_headers
        self._producing: Producing | None = Producing(settings, Waiting(watcher, give_up))

    def emit(self, answers: Sequence[Answer]) -> None:
        """As the port says."""
        for answer in answers:
            for message in answered(answer, self._topics, self._dress):
                self._send(message)

    def release(self, answer: Answer) -> None:
        """Hand over the event of a release: whoever reads the flags has to hear that one of them is undone."""
        for message in released(answer, self._topics, self._dress):
            self._send(message)

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """As the port says."""
        for rejection in rejections:
            self._send(rejected(rejection, self._topics, self._letter_headers))

    def flush(self) -> None:
        """As the port says; waits for brokers that are away."""
        producing = self._open()
        failed = producing.flush()
        if failed is not None:
            raise refused(failed)
        if producing.ended:
            why = "a message was lost" if producing.fatal is None else producing.fatal.str()
            raise SinkError(f"the producer cannot go on: {why}; what was not acknowledged is judged and sent again")

    def marks(self) -> None:
        """Nothing: a topic cannot be cut back."""

    def close(self) -> None:
        """Let go of the client; what was not flushed may be lost, and is judged again."""
        if self._producing is not None:
            self._producing.close()
            self._producing = None

    def _send(self, message: Outgoing) -> None:
        failed = self._open().send(message)
        if failed is not None:
            raise refused(failed)

    def _open(self) -> Producing:
        if self._producing is None:
            raise ValueError("the sink was closed")
        return self._producing
