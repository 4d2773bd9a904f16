"""Verdicts, the clean feed and dead letters to topics, at least once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks
from consumer.model.ports import Answer, Rejection
from consumer.sinks.kafka_messages import Messages, Outgoing
from consumer.sinks.producing import Producing, Waiting, blamed, refused
from consumer.sinks.record_times import RecordTimes


class KafkaSink:
    """Sends to the topics of one prefix. ``flush`` returns when everything is acknowledged by all replicas in sync.

    ``settings`` are of ``producer_settings``, not transactional: the messages of a partition stay in order, and
    while the brokers are away nothing is given up. While it waits ``give_up`` is asked several times a second, and what
    it raises ends the waiting.
    Raises ``SinkError`` where a message can never be taken, and ``ConfigError`` where the settings are wrong.

    ``times`` decides which messages keep their record's time; where a topic refuses one, what was sent since the last
    flush is sent again.

    Memory: at most queue.buffering.max.kbytes, beside the batch that is being sent.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        messages: Messages,
        times: RecordTimes,
        hooks: Hooks,
        give_up: Callable[[], None],
    ) -> None:
        self._messages = messages
        self._times = times
        self._sent: list[Outgoing] = []
        self._producing: Producing | None = Producing(settings, Waiting(hooks, give_up))

    def emit(self, answers: Sequence[Answer]) -> None:
        """As the port says."""
        for answer in answers:
            for message in self._messages.answered(answer):
                self._send(message)

    def release(self, answer: Answer) -> None:
        """Hand over the event of a release: whoever reads the flags has to hear that one of them is undone."""
        for message in self._messages.released(answer):
            self._send(message)

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """As the port says."""
        for rejection in rejections:
            self._send(self._messages.rejected(rejection))

    def flush(self) -> None:
        """As the port says; waits for brokers that are away."""
        producing = self._open()
        while producing.flush():
            failures = producing.settle()
            if producing.ended or not self._times.learn(failures):
                raise refused(blamed(failures))
            self._send_again(producing)
        if producing.ended:
            why = "a message was lost" if producing.fatal is None else producing.fatal.str()
            raise SinkError(f"the producer cannot go on: {why}; what was not acknowledged is judged and sent again")
        self._sent.clear()

    def marks(self) -> None:
        """Nothing: a topic cannot be cut back."""

    def close(self) -> None:
        """Let go of the client; what was not flushed may be lost, and is judged again."""
        if self._producing is not None:
            self._producing.close()
            self._producing = None

    def _send_again(self, producing: Producing) -> None:
        """Send all since the last flush once more: what was refused alone would come behind what was sent after it."""
        producing.forget_failed()
        sent, self._sent = self._sent, []
        for message in sent:
            self._send(message)

    def _send(self, message: Outgoing) -> None:
        self._sent.append(message)
        failed = self._open().send(self._times.dated(message))
        if failed is not None:
            raise refused(failed)

    def _open(self) -> Producing:
        if self._producing is None:
            raise ValueError("the sink was closed")
        return self._producing
