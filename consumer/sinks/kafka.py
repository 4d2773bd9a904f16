"""Verdicts, the clean feed and dead letters to topics, at least once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from consumer.errors import SinkError
from consumer.ports import Answer, Rejection, SinkWatcher
from consumer.sinks.messages import Messages, Outgoing
from consumer.sinks.producing import Producing, Waiting, refused


class KafkaSink:
    """Sends to the topics of one prefix. ``flush`` returns when everything is acknowledged by all replicas in sync.

    ``settings`` are of ``clients.producer_settings``, not transactional: the messages of a partition stay in order, and
    while the brokers are away nothing is given up. While it waits ``give_up`` is asked several times a second, and what
    it raises ends the waiting.
    Raises ``SinkError`` where a message can never be taken, and ``ConfigError`` where the settings are wrong.

    Memory: at most queue.buffering.max.kbytes, beside the batch that is being sent.
    """

    def __init__(
        self, settings: Mapping[str, Any], messages: Messages, watcher: SinkWatcher, give_up: Callable[[], None]
    ) -> None:
        self._messages = messages
        self._producing: Producing | None = Producing(settings, Waiting(watcher, give_up))

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
