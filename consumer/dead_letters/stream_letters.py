"""Dead letters to a stream, standard error most often. They cannot be read back."""

from collections.abc import Sequence
from typing import BinaryIO

from typing_extensions import override

from consumer.model.dead_letter import encode
from consumer.model.ports import DeadLetterSink, Rejection
from consumer.sinks.streams import write_lines


class StreamDeadLetters(DeadLetterSink):
    """Writes letters to a stream as lines of JSON, and flushes it with every batch."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    @override
    def reject(self, rejections: Sequence[Rejection]) -> None:
        write_lines(self._stream, "dead letters", [encode(rejection.letter) for rejection in rejections])

    @override
    def flush(self) -> None:
        """Do nothing: the stream is flushed with every call."""

    @override
    def size_bytes(self) -> None:
        """Return None: a stream cannot be cut back."""

    @override
    def close(self) -> None:
        """Do nothing: the stream belongs to the caller that opened it."""
