"""A sink that writes the records of unique articles to a stream, in addition to a sink of verdicts."""

from collections.abc import Callable, Sequence
from typing import BinaryIO

from typing_extensions import override

from consumer.files.sinks import write_bytes
from consumer.model.ports import JudgedRecord, ReleasingSink


class CleanFeed(ReleasingSink):
    """A sink that writes the records of unique articles to ``out``, byte for byte and in order.

    Verdicts go to ``verdicts``.

    ``header`` returns the bytes before the first record, such as the header of a table. A stream cannot be cut back, so
    the records of a batch that is judged again after a crash are written again.
    """

    def __init__(self, verdicts: ReleasingSink, out: BinaryIO, header: Callable[[], bytes]) -> None:
        self._verdicts = verdicts
        self._out = out
        self._header = header

    @override
    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        self._verdicts.emit(answers)
        unique = (answer.record for answer in answers if answer.event.verdict.outcome == "unique")
        # The header is written once: ``bytes()`` is empty.
        header, self._header = self._header, bytes
        records = b"".join(record.data + record.line_end for record in unique)
        write_bytes(self._out, "articles", header() + records)

    @override
    def release(self, answer: JudgedRecord) -> None:
        self._verdicts.release(answer)

    @override
    def flush(self) -> None:
        self._verdicts.flush()

    @override
    def size_bytes(self) -> int | None:
        return self._verdicts.size_bytes()

    @override
    def close(self) -> None:
        self._verdicts.close()
