"""A sink whose flush waits, or fails, while a test says so."""

import threading
from collections.abc import Sequence

from typing_extensions import override

from consumer.model.errors import SinkError
from consumer.model.ports import JudgedRecord, ReleasingSink
from tests.unit.service.serving import WAIT_S


def answer_of(events: Sequence[bytes]) -> bytes:
    """The answer that has these events, of long texts."""
    kinds = b",".join([b'"long"'] * len(events))
    return b'{"results":[' + b",".join(events) + b'],"text_kinds":[' + kinds + b"]}"


class KeptSink(ReleasingSink):
    """Keeps what it gets; ``flushed`` is what counts as written."""

    def __init__(self) -> None:
        self.flushed: list[bytes] = []
        self.batches: list[int] = []
        self.is_broken = False
        self._emitted: list[bytes] = []
        self._open = threading.Event()
        self._open.set()
        self._held = threading.Event()

    def hold(self) -> None:
        """Have flushes wait from now on."""
        self._open.clear()

    def let_go(self) -> None:
        """Let them return."""
        self._open.set()

    def wait_held(self) -> None:
        """Wait until a flush waits."""
        assert self._held.wait(WAIT_S)

    @override
    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        self._emitted += [answer.event.encoded for answer in answers]
        self.batches.append(len(answers))

    @override
    def release(self, answer: JudgedRecord) -> None:
        self._emitted.append(answer.event.encoded)

    @override
    def flush(self) -> None:
        if not self._open.is_set():
            self._held.set()
        assert self._open.wait(WAIT_S)
        if self.is_broken:
            raise SinkError("the disk is full")
        self.flushed += self._emitted
        self._emitted = []

    @override
    def size_bytes(self) -> None: ...

    @override
    def close(self) -> None: ...
