"""A run does not write to the file that it reads, nor to its store, under whatever name."""

import os
from collections.abc import Sequence
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO, Protocol

from consumer.model.errors import ConfigError
from consumer.pipeline.checkpoint import checkpoint_path, passing_path
from consumer.sinks.file import dead_letters_path
from storage.kind import OnDisk


class Read(Protocol):
    """What a run reads."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def is_file(self, other: os.stat_result) -> bool:
        """Whether it is this regular file, under whatever name."""
        ...


def check_apart(source: Read, sink: Path, store: OnDisk | None) -> None:
    """Raise ``ConfigError`` where a file of the sink is the source, or belongs to the store.

    Links and relative paths do not hide a file: files are compared, not names.
    """
    checkpoint = checkpoint_path(sink)
    written = {
        sink: "the verdicts",
        dead_letters_path(sink): "the dead letters",
        checkpoint: "the checkpoint",
        passing_path(checkpoint): "the checkpoint",
    }
    for path, what in written.items():
        found = _found(path)
        if found is None:
            continue
        if source.is_file(found):
            raise ConfigError(
                f"the source {source.name} is the file {path}, where {what} would be written; "
                "keep it, and name another --sink (a backfill: another --state)"
            )
        if store is not None and _is_any(found, store.files):
            raise ConfigError(
                f"{path}, where {what} would be written, belongs to the store {store.directory}; "
                "keep it, and name another --sink (a backfill: another --state)"
            )


def check_streams_apart(source: Read, streams: Sequence[BinaryIO]) -> None:
    """Raise ``ConfigError`` where an output stream was redirected into the source, which would grow for ever."""
    for stream in streams:
        with suppress(UnsupportedOperation):
            if source.is_file(os.fstat(stream.fileno())):
                raise ConfigError(
                    f"the source {source.name} is the file that the output is redirected into; "
                    "redirect it into another file"
                )


def _is_any(found: os.stat_result, paths: Sequence[Path]) -> bool:
    return any(other is not None and os.path.samestat(found, other) for other in map(_found, paths))


def _found(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        # What is not there is made; what cannot be looked at is refused when it is opened.
        return None
