"""Dead letters to a topic: each is the rejected record itself, with headers that say why it was rejected."""

from collections.abc import Callable, Sequence

from typing_extensions import override

from consumer.kafka.event_headers import CUT_OF_BYTES
from consumer.kafka.letter_headers import letter_headers
from consumer.kafka.outgoing import Outgoing, time_of
from consumer.model.ports import DeadLetterSink, Rejection
from consumer.model.record import Headers
from consumer.sinks.outbox import Outbox, OutboxOutput


class TopicDeadLetters(OutboxOutput, DeadLetterSink):
    """Sends letters to one topic.

    With the outbox of the verdicts, letters are in the same transaction as verdicts and offsets. ``headers_of`` makes
    all headers of a letter, the record's own included.
    """

    def __init__(self, outbox: Outbox, topic: str, headers_of: Callable[[Rejection], Headers] = letter_headers) -> None:
        super().__init__(outbox)
        self._topic = topic
        self._headers_of = headers_of

    @override
    def reject(self, rejections: Sequence[Rejection]) -> None:
        for rejection in rejections:
            self._outbox.send(self._letter(rejection))

    def _letter(self, rejection: Rejection) -> Outgoing:
        """Return the record unchanged, with its own headers before those of the letter.

        Of a record over the limit only the first bytes are kept; a header has the size of the whole.
        """
        record = rejection.record
        message = record.message
        headers = self._headers_of(rejection)
        if len(record.data) < record.size_bytes:
            headers.append((CUT_OF_BYTES, str(record.size_bytes).encode()))
        if message is None:
            return Outgoing(self._topic, None, record.data, headers)
        value = None if message.null_value else record.data
        return Outgoing(self._topic, message.key, value, headers, time_of(message))
