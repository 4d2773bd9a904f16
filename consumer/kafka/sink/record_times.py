"""Decides which times the copies of records may have in the sink's topics.

Dead letters and the clean feed keep their record's time. A broker refuses times that are too far from its own
(``message.timestamp.before.max.ms``; ``message.timestamp.after.max.ms``, an hour by default since Kafka 4.0), and would
refuse the same batch every time. So a time that is too far ahead, or that a topic has refused, is moved into a header,
and the copy gets the time of sending. A topic's limit is learned from its refusals, because a producer may lack the
permission to read the topic's configuration.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from confluent_kafka import KafkaError

from consumer.kafka.sink.letter_headers import TIMESTAMP
from consumer.kafka.sink.outgoing import OutgoingMessage
from consumer.kafka.sink.producing import FailedMessage
from consumer.model.hooks import Hooks
from consumer.model.record import Headers
from storage.clock import Clock

_TIME_REFUSALS: Final = frozenset(
    {
        KafkaError.INVALID_TIMESTAMP,
        # The client reports only this for a batch with several such records.
        KafkaError.INVALID_RECORD,
    }
)


class _Bounds(NamedTuple):
    """The accepted distance from our clock: up to ``ahead_ms`` ahead, and less than ``behind_ms`` behind if known."""

    behind_ms: int | None
    ahead_ms: int


class RecordTimeMoved(NamedTuple):
    """A copy of a record was sent with the time of sending, and with the record's own time in a header."""


class RecordTimes:
    """The times that each topic accepts, as learned from its refusals."""

    def __init__(self, clock: Clock, ahead_ms_max: int, hooks: Hooks) -> None:
        self._clock = clock
        self._initial_bounds = _Bounds(None, ahead_ms_max)
        self._hooks = hooks
        self._bounds: dict[str, _Bounds] = {}

    def with_accepted_time(self, message: OutgoingMessage) -> OutgoingMessage:
        """Return the message to send: its time, if it has one, may be moved into a header."""
        if message.timestamp_ms is None or self._accepts(message.topic, message.timestamp_ms):
            return message
        self._hooks.report(RecordTimeMoved())
        return message._replace(timestamp_ms=None, headers=_with_time(message.headers, message.timestamp_ms))

    def learn(self, failures: Iterable[FailedMessage]) -> bool:
        """Narrow the bounds by refused messages. Return whether any message would now be sent with another time."""
        learned = False
        for failed in failures:
            if failed.timestamp_ms is None or failed.error.code() not in _TIME_REFUSALS:
                continue
            bounds = self._bounds.get(failed.topic, self._initial_bounds)
            ahead_ms = failed.timestamp_ms - self._clock()
            if ahead_ms > 0:
                # The distance shrinks with every attempt, so only 0 is safe.
                bounds = bounds._replace(ahead_ms=0)
            else:
                known_ms = -ahead_ms if bounds.behind_ms is None else bounds.behind_ms
                bounds = bounds._replace(behind_ms=min(known_ms, -ahead_ms))
            self._bounds[failed.topic] = bounds
            learned = True
        return learned

    def _accepts(self, topic: str, time_ms: int) -> bool:
        if time_ms <= 0:
            # The client takes 0 as the time of sending, and no record is older than 1970.
            return False
        bounds = self._bounds.get(topic, self._initial_bounds)
        ahead_ms = time_ms - self._clock()
        if ahead_ms > 0:
            return ahead_ms <= bounds.ahead_ms
        return bounds.behind_ms is None or -ahead_ms < bounds.behind_ms


def _with_time(headers: Headers, time_ms: int) -> Headers:
    time = (TIMESTAMP, b"%d" % time_ms)
    return headers if time in headers else [*headers, time]
