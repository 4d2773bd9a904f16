"""Checks that a run's outputs are distinct from its source, its store and each other, even under other names."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO, Protocol

from consumer.model.errors import ConfigError
from storage.kind import DiskLocation


class RunInput(Protocol):
    """The input of a run."""

    @property
    def name(self) -> str:
        """The name of the input in messages."""
        ...

    def is_same_file(self, other: os.stat_result) -> bool:
        """Return whether the input is this regular file, under any name."""
        ...


def check_distinct(source: RunInput | None, written: Mapping[Path, str], store: DiskLocation | None) -> None:
    """Raise ``ConfigError`` if a written file is the source or belongs to the store.

    ``written`` maps each file to a description of its content. ``source`` is None if the run reads no file. Links and
    relative paths make no difference, because files are compared rather than names.
    """
    for path, what in written.items():
        status = _status(path)
        if status is None:
            continue
        if source is not None and source.is_same_file(status):
            raise ConfigError(
                f"the source {source.name} is the file {path}, which {what} would overwrite; "
                "keep it, and name another --sink (a backfill: another --state)"
            )
        if store is not None and _is_any(status, store.files):
            raise ConfigError(
                f"{path}, which {what} would overwrite, belongs to the store {store.directory}; "
                "keep it, and name another --sink (a backfill: another --state)"
            )


def check_streams_distinct(source: RunInput, streams: Sequence[BinaryIO]) -> None:
    """Raise ``ConfigError`` if an output stream is redirected into the source, which would grow for ever."""
    for stream in streams:
        with suppress(UnsupportedOperation):
            if source.is_same_file(os.fstat(stream.fileno())):
                raise ConfigError(
                    f"the source {source.name} is the file that the output is redirected into; "
                    "redirect it into another file"
                )


def check_stream_unwritten(stream: BinaryIO, written: Mapping[Path, str]) -> None:
    """Raise ``ConfigError`` if an output stream is redirected into a file that the run itself writes.

    ``written`` maps each file to a description of its content.
    """
    with suppress(UnsupportedOperation):
        redirected = os.fstat(stream.fileno())
        for path, what in written.items():
            if _is_any(redirected, [path]):
                raise ConfigError(
                    f"the output is redirected into {path}, which {what} would be mixed into; "
                    "redirect it into another file"
                )


def _is_any(status: os.stat_result, paths: Sequence[Path]) -> bool:
    return any(other is not None and os.path.samestat(status, other) for other in map(_status, paths))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        # A missing file will be created; one that cannot be examined is refused when it is opened.
        return None
