"""The checkpoint of a run over a file: how far it came, and what it needs to go on as if it had never stopped.

It stands beside the sink, and is written when the run begins and after each batch, once the sink was flushed. So the
sink may have more than the checkpoint knows of, never less; ``FileSink`` cuts off the rest.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from consumer.model.errors import ConfigError, SinkError
from consumer.model.ports import Marks
from consumer.model.record import Position
from storage.files import FileWriting, replace_file

SCHEMA: Final = "dupwatch.checkpoint/1"
SUFFIX: Final = ".checkpoint.json"
HEAD_BYTES_MAX: Final = 64 * 1024


Beginning = Callable[[int], bytes]
"""Reads the first bytes of the input on disk, as many as asked for or as there are. Raises ``SourceError``."""


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file is known by: the SHA-256 in hex of its first bytes on disk, and how many they are."""

    size_bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()


class Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the records came to, all runs over this source together.

    Their sum is the number of records, and of the lines that had a dead letter where gzip data ended early.
    """

    unique: int = 0
    duplicate: int = 0
    retracted: int = 0
    dead_letters: int = 0

    @property
    def articles(self) -> int:
        """How many were judged."""
        return self.unique + self.duplicate + self.retracted


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a run came.

    ``began_ms`` is the record time of all its records, in milliseconds since 1970. ``settings`` is a digest of what
    decides a verdict. ``finished`` says that the source was read to its end. ``emit`` says which verdicts the sink
    holds, and ``store`` which store a backfill fills; earlier versions kept neither.
    """

    schema: Literal["dupwatch.checkpoint/1"] = SCHEMA
    source: str
    head: Head = Head()
    position: Position = Position()
    began_ms: int
    marks: Marks = Marks()
    settings: str
    finished: bool = False
    counts: Counts = Counts()
    emit: Literal["duplicates", "all", "none"] | None = None
    store: str | None = None


def checkpoint_path(sink: Path) -> Path:
    """Where the checkpoint of the sink at this path is."""
    return sink.with_name(sink.name + SUFFIX)


def passing_path(path: Path) -> Path:
    """Where a checkpoint is written before it takes the place of the one before it."""
    return path.with_name(path.name + ".tmp")


def save(path: Path, checkpoint: Checkpoint, writing: FileWriting) -> None:
    """Replace the file at once: whoever reads it sees the old checkpoint or the new one. Raises ``SinkError``."""
    try:
        replace_file(path, passing_path(path), encode_checkpoint(checkpoint), writing)
    except OSError as error:
        raise SinkError(f"the checkpoint {path} cannot be written: {error.strerror}") from error


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The file's content: one line of JSON."""
    return msgspec.json.encode(checkpoint) + b"\n"


def load(path: Path) -> Checkpoint | None:
    """The checkpoint, None where there is none. Raises ``ConfigError`` for anything else that may be there."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"the checkpoint {path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(
            f"{path} is damaged, or the checkpoint of another version ({error}); "
            "remove it together with the sink's files to begin anew"
        ) from error


def head_of(beginning: Beginning, position: Position, before: Head) -> Head:
    """What the file is to be known by when it was read up to ``position``; ``before`` is what it was known by so far.

    Only bytes that were there when they were read count: a feed that grows stays the same feed. They are read from the
    file that is being read, not from what lies under its name by now.
    """
    size_bytes = min(HEAD_BYTES_MAX, position.offset)
    if size_bytes <= before.size_bytes:
        return before
    data = beginning(size_bytes)
    return Head(len(data), hashlib.sha256(data).hexdigest())


def check_source(checkpoint: Checkpoint, name: str, beginning: Beginning) -> None:
    """Raise ``ConfigError`` unless the file begins with what the run has read. Its name may have changed."""
    head = checkpoint.head
    if hashlib.sha256(beginning(head.size_bytes)).hexdigest() != head.sha256:
        raise ConfigError(
            f"{name} is not the file that this sink's checkpoint is about ({checkpoint.source}), or it was changed; "
            "go on with the original, or name another sink for this one"
        )


def check_settings(checkpoint: Checkpoint, settings: str) -> None:
    """Raise ``ConfigError`` unless the run was judged by these settings."""
    if checkpoint.settings != settings:
        raise ConfigError(
            "the verdicts in this sink were judged by other settings; "
            "go on with those, or name another sink and another store"
        )


def check_emit(checkpoint: Checkpoint, emit: str, sink: str) -> None:
    """Raise ``ConfigError`` unless the sink holds the kind of verdicts that the run is to write."""
    if checkpoint.emit not in {None, emit}:
        raise ConfigError(
            f"{sink} holds the verdicts of --emit {checkpoint.emit}, and this run would add those of --emit {emit}; "
            f"go on with --emit {checkpoint.emit}, or name another sink"
        )


def began_ms(checkpoint: Checkpoint | None, now_ms: int) -> int:
    """The record time of the run that is about to begin.

    A run that goes on keeps the time it had, so that every record keeps its arrival. New lines of a source that was
    read to its end came later than those before them, also where the clock was set back meanwhile.
    """
    if checkpoint is None:
        return now_ms
    if checkpoint.finished:
        return max(now_ms, checkpoint.began_ms + 1)
    return checkpoint.began_ms
