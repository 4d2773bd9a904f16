"""Verdicts and the clean feed to topics."""

from collections.abc import Sequence

from typing_extensions import override

from consumer.model.ports import Answer, ReleasingSink
from consumer.sinks.kafka_messages import Messages
from consumer.sinks.outbox import Outbox, OutboxOutput


class KafkaSink(OutboxOutput, ReleasingSink):
    """Sends verdicts to the topics of one prefix; how often each arrives is up to the outbox."""

    def __init__(self, outbox: Outbox, messages: Messages) -> None:
        super().__init__(outbox)
        self._messages = messages

    @override
    def emit(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            for message in self._messages.answered(answer):
                self._outbox.send(message)

    @override
    def release(self, answer: Answer) -> None:
        for message in self._messages.released(answer):
            self._outbox.send(message)
