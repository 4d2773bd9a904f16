"""The checkpoint of a run over a file: how far it got, and what it needs to resume.

It is next to the sink, and is written when the run begins and after each batch, once the sink is flushed. So the sink
may have more than the checkpoint says, but never less; ``FileSink`` cuts off the rest.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from typing_extensions import override

from consumer.files.lines import Position
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import ConfigError, SinkError
from consumer.model.ports import Emit, OutputSizes
from consumer.model.record import End
from consumer.model.verdict import Verdict
from consumer.pipeline.feed_kind import Outputs
from consumer.pipeline.journal import Journal
from storage.files import WriteOptions, replace_file

SCHEMA: Final = "dupwatch.checkpoint/1"
SUFFIX: Final = ".checkpoint.json"
HEAD_BYTES_MAX: Final = 64 * 1024


Beginning = Callable[[int], bytes]
"""Returns at most this many of the first bytes of the input on disk. Raises ``SourceError``."""


class FileHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identity of a file: the hex SHA-256 of its first bytes on disk, and their number."""

    size_bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()


class OutcomeCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of records by outcome, in all runs over this source.

    Their sum is the number of records, plus the dead letters of compressed data that ended early or was damaged.
    """

    unique: int = 0
    duplicate: int = 0
    retracted: int = 0
    dead_letters: int = 0

    @property
    def articles(self) -> int:
        """The number of articles and retractions that were judged."""
        return self.unique + self.duplicate + self.retracted


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The saved progress of a run.

    ``began_ms`` is the record time of the run's records, in milliseconds since 1970; records of an archive may have
    their own. ``marks`` are the sizes of the outputs. ``settings`` is a digest of all settings that affect verdicts.
    ``finished`` is true once the source was read to its end. ``emit`` says which verdicts the sink has, ``store`` which
    store a backfill fills; earlier versions wrote neither.
    """

    schema: Literal["dupwatch.checkpoint/1"] = SCHEMA
    source: str
    head: FileHead = FileHead()
    position: Position = Position()
    began_ms: int
    marks: OutputSizes = OutputSizes()
    settings: str
    finished: bool = False
    counts: OutcomeCounts = OutcomeCounts()
    emit: Emit | None = None
    store: str | None = None


def checkpoint_path(sink: Path) -> Path:
    """Return the path of the checkpoint of a sink."""
    return sink.parent / (sink.name + SUFFIX)


def temporary_path(path: Path) -> Path:
    """Return the path where a checkpoint is written before it replaces the previous one."""
    return path.with_name(path.name + ".tmp")


def save(path: Path, checkpoint: Checkpoint, writing: WriteOptions) -> None:
    """Replace the file atomically: a reader sees the old checkpoint or the new one. Raises ``SinkError``."""
    try:
        replace_file(path, temporary_path(path), encode_checkpoint(checkpoint), writing)
    except OSError as error:
        raise SinkError(f"cannot write the checkpoint {path}: {error.strerror}") from error


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Return the content of the file: one line of JSON."""
    return msgspec.json.encode(checkpoint) + b"\n"


def load(path: Path) -> Checkpoint | None:
    """Return the checkpoint in a file, or None without one. Raises ``ConfigError`` if it is unreadable or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read the checkpoint {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(
            f"{path} is damaged, or was written by another version ({error}); "
            "to start over, remove it together with the verdicts and dead letters next to it"
        ) from error


def head_of(beginning: Beginning, position: Position, before: FileHead) -> FileHead:
    """Return the identity of the file after it was read up to ``position``; ``before`` is its previous identity.

    Only bytes that were read count, so that a growing feed remains the same feed. ``beginning`` reads them from the
    open file, since another file may have taken its name. Raises ``SourceError``.
    """
    size_bytes = min(HEAD_BYTES_MAX, position.offset)
    if size_bytes <= before.size_bytes:
        return before
    data = beginning(size_bytes)
    return FileHead(len(data), hashlib.sha256(data).hexdigest())


def check_source(checkpoint: Checkpoint, name: str, beginning: Beginning) -> None:
    """Raise ``ConfigError`` unless the first bytes of the file match the checkpoint's ``head``.

    The file's name may have changed. The errors of ``beginning`` propagate.
    """
    head = checkpoint.head
    if hashlib.sha256(beginning(head.size_bytes)).hexdigest() != head.sha256:
        raise ConfigError(
            f"{name} is not the file that the checkpoint of this sink belongs to ({checkpoint.source}), or it was "
            "changed; resume with the original file, or choose another sink"
        )


def check_settings(checkpoint: Checkpoint, settings: str) -> None:
    """Raise ``ConfigError`` unless earlier runs used these settings."""
    if checkpoint.settings != settings:
        raise ConfigError(
            "the verdicts in this sink were judged with other settings; "
            "use those settings, or choose another sink and another store"
        )


def check_emit(checkpoint: Checkpoint, emit: str, sink: str) -> None:
    """Raise ``ConfigError`` if the sink has other verdicts than this run writes, as far as the checkpoint says."""
    if checkpoint.emit not in {None, emit}:
        raise ConfigError(
            f"{sink} has verdicts of --emit {checkpoint.emit}, and this run would add those of --emit {emit}; "
            f"use --emit {checkpoint.emit}, or choose another sink"
        )


def began_ms(checkpoint: Checkpoint | None, now_ms: int) -> int:
    """Return the record time of the run that is about to begin.

    A resumed run keeps its time, so that every record keeps its arrival. New lines of a source that was read to its end
    arrive later than the lines before them, even if the clock was set back in the meantime.
    """
    if checkpoint is None:
        return now_ms
    if checkpoint.finished:
        return max(now_ms, checkpoint.began_ms + 1)
    return checkpoint.began_ms


class FileJournal(Journal):
    """A journal that keeps a checkpoint next to the sink, with the sizes to which both outputs can be cut back.

    The constructor writes the first checkpoint, with the record time. A write that fails raises ``SinkError``.
    """

    def __init__(
        self,
        path: Path,
        checkpoint: Checkpoint,
        beginning: Beginning,
        outputs: Outputs,
        writing: WriteOptions,
    ) -> None:
        self._path = path
        self._checkpoint = checkpoint
        self._beginning = beginning
        self._outputs = outputs
        self._writing = writing
        self._save(checkpoint)

    @override
    def abandon(self) -> None:
        """Do nothing: the run was asked to stop, and a later one resumes after the last committed batch."""

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Save the end of the batch, and the current sizes of the output files."""
        before = self._checkpoint.counts
        outcomes = Counter(verdict.outcome for verdict in verdicts)
        counts = OutcomeCounts(
            unique=before.unique + outcomes["unique"],
            duplicate=before.duplicate + outcomes["duplicate"],
            retracted=before.retracted + outcomes["retracted"],
            dead_letters=before.dead_letters + len(letters),
        )
        verdicts_bytes = self._outputs.verdicts.size_bytes()
        if verdicts_bytes is None or not isinstance(end, Position):
            raise TypeError("a checkpoint needs a file as the source, and a sink that can be cut back")
        # Letters that cannot be cut back may be written again after a crash.
        marks = OutputSizes(verdicts_bytes, self._outputs.dead_letters.size_bytes() or 0)
        self._save(
            msgspec.structs.replace(
                self._checkpoint,
                head=head_of(self._beginning, end, self._checkpoint.head),
                position=end,
                marks=marks,
                counts=counts,
            )
        )

    @override
    def finish(self) -> None:
        """Save that the source was read to its end: lines added later belong to another run."""
        self._save(msgspec.structs.replace(self._checkpoint, finished=True))

    def _save(self, checkpoint: Checkpoint) -> None:
        save(self._path, checkpoint, self._writing)
        self._checkpoint = checkpoint
