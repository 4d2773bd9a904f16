"""A sink that discards everything: for runs whose result is what they leave in the store."""

from collections.abc import Sequence

from typing_extensions import override

from consumer.model.ports import Answer, DeadLetterSink, Rejection, ReleasingSink


class Nowhere(ReleasingSink, DeadLetterSink):
    """Accepts verdicts and dead letters, and writes neither."""

    @override
    def emit(self, answers: Sequence[Answer]) -> None: ...

    @override
    def release(self, answer: Answer) -> None: ...

    @override
    def reject(self, rejections: Sequence[Rejection]) -> None: ...

    @override
    def flush(self) -> None: ...

    @override
    def size_bytes(self) -> None: ...

    @override
    def close(self) -> None: ...
