"""Verdicts to a file of JSON lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from typing_extensions import override

from consumer.model.ports import Answer, ReleasingSink
from consumer.model.verdict import SCHEMA
from consumer.sinks.emit import Emit, released_events, selected_events
from consumer.sinks.line_file import LineFile, WholeLines
from storage.files import FileWriting

NO_CHECKPOINT: Final = "there is no checkpoint beside it that records which run wrote it"
"""Why a run does not append to a file that has something in it."""
WHOLE_VERDICTS: Final = WholeLines(f'{{"schema":"{SCHEMA}"'.encode(), "verdicts")
"""Keeps all verdicts of a file that has no checkpoint."""


class FileSink(ReleasingSink):
    """Appends verdicts to the file at ``path``, which one process at a time may do.

    ``keep_bytes`` comes from the checkpoint of an earlier run: what lies beyond belongs to a batch that was not
    committed, and is cut off because that batch is judged again. Without a checkpoint (None) the file must be empty;
    ``why_not_append`` completes the error for a file that is not. With ``WHOLE_VERDICTS`` every verdict in the file is
    kept, and what is left of one that was being written when a process was killed is cut off. ``flush`` waits for the
    disk if ``writing`` says so. ``emit`` selects the verdicts. They are compressed where the name ends with .gz. Raises
    ``SinkError``, and then leaves no file behind that it created.
    """

    def __init__(
        self,
        path: Path,
        keep_bytes: int | WholeLines | None,
        writing: FileWriting,
        *,
        emit: Emit = "all",
        why_not_append: str = NO_CHECKPOINT,
    ) -> None:
        self._durable = writing.durable
        self._emit = emit
        self._file = LineFile(path, keep_bytes, writing, why_not_append)

    @override
    def emit(self, answers: Sequence[Answer]) -> None:
        self._file.write(selected_events(answers, self._emit))

    @override
    def release(self, answer: Answer) -> None:
        self._file.write(released_events(answer, self._emit))

    @override
    def flush(self) -> None:
        if self._durable:
            self._file.sync()

    @override
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @override
    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        """Close the file, and remove it if it was created here: nothing was written, and the run does not begin."""
        self._file.discard()
