"""How files are read and written in a run: where progress is kept, and what an earlier run left."""

from pathlib import Path
from typing import NamedTuple

from consumer.decode.article import FieldMap
from consumer.files.checkpoint import Checkpoint
from consumer.model.ports import Emit, Marks
from consumer.pipeline.poison_limit import PoisonLimit
from storage.files import FileWriting


class FileOptions(NamedTuple):
    """The options of files and standard input as sources.

    ``checkpoint`` is the file that keeps progress, None for a run that cannot be resumed; ``before`` is what is in it.
    ``settings``, ``emit`` and ``store`` are kept there too. ``limit`` ends a run with too many bad records, and
    ``fields`` help to say why they are bad. The articles of an ``archive`` arrived when they were published.
    """

    checkpoint: Path | None = None
    before: Checkpoint | None = None
    settings: str = ""
    emit: Emit = "all"
    store: str | None = None
    writing: FileWriting = FileWriting(durable=True)
    limit: PoisonLimit = PoisonLimit(0.5, 100)
    fields: FieldMap = FieldMap()
    archive: bool = False


class Continuation(NamedTuple):
    """How a run that may be resumed continues a file as its sink.

    ``marks`` say how much of earlier runs to keep, None where the run begins with empty files; ``why_not_append`` is
    why it then cannot append to a file that is not empty, as a clause of the error. A sink that is opened without a
    continuation keeps all whole lines: nobody cuts it back.
    """

    marks: Marks | None
    why_not_append: str

    @property
    def verdicts_bytes(self) -> int | None:
        """How much of the file of verdicts to keep."""
        return None if self.marks is None else self.marks.verdicts_bytes

    @property
    def dead_letters_bytes(self) -> int | None:
        """How much of the dead letters to keep."""
        return None if self.marks is None else self.marks.dead_letters_bytes
