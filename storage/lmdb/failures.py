"""The one place where py-lmdb's exceptions become those of ``storage.errors``.

They are told apart by what a caller can do: make room, look at what lies there, or wait. Where none of these would
help, the store was used as it must not be: a plain ``StoreError``.
"""

import errno
import os
import resource
from pathlib import Path
from typing import Final, NamedTuple

import lmdb

from storage.errors import StoreDamaged, StoreError, StoreFull, StoreRefused, StoreUnavailable
from storage.lmdb.data_file import DATA_FILE

DAMAGED: Final = "The store {path} is damaged: {why}. Restore the directory from a copy, or name another store."
_LITTLE_BYTES: Final = 1 << 16


class _Meaning(NamedTuple):
    """What some failures mean: ``{path}`` and ``{why}`` are filled in."""

    exceptions: tuple[type[lmdb.Error], ...]
    codes: frozenset[int]
    becomes: type[StoreError]
    sentence: str


_MEANINGS: Final = (
    _Meaning(
        (lmdb.MapFullError, lmdb.DiskError),
        frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG}),
        StoreFull,
        "There is no room left for the store {path}: {why}. What was acknowledged is safe.",
    ),
    _Meaning(
        (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.IncompatibleError, lmdb.NotFoundError),
        frozenset(),
        StoreRefused,
        "{path} holds a database that this program did not make, or one whose first pages are damaged: {why}. Name "
        "another store, or restore the directory from a copy.",
    ),
    _Meaning(
        (lmdb.CorruptedError, lmdb.PageNotFoundError),
        frozenset(),
        StoreDamaged,
        DAMAGED,
    ),
    _Meaning(
        (lmdb.ReadonlyError,),
        frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR}),
        StoreRefused,
        "The store {path} cannot be opened or written by this user: {why}. Give this user the right, or name another "
        "store.",
    ),
    _Meaning(
        (lmdb.PanicError,),
        frozenset(),
        StoreUnavailable,
        "The store {path} failed while it was being written, and has to be opened again: {why}.",
    ),
    _Meaning(
        (lmdb.ReadersFullError,),
        frozenset(),
        StoreUnavailable,
        "Too many processes and threads read the store {path} at once: {why}.",
    ),
    _Meaning(
        (
            lmdb.BadDbiError,
            lmdb.BadRslotError,
            lmdb.BadTxnError,
            lmdb.BadValsizeError,
            lmdb.CursorFullError,
            lmdb.DbsFullError,
            lmdb.InvalidParameterError,
            lmdb.KeyExistsError,
            lmdb.PageFullError,
            lmdb.TlsFullError,
            lmdb.TxnFullError,
        ),
        frozenset(),
        StoreError,
        "The store {path} was asked for something that LMDB does not do: {why}.",
    ),
)


def store_error(error: lmdb.Error | OSError, path: Path) -> StoreError:
    """What a failure of LMDB, or of the files under it, means to whoever uses the store at ``path``."""
    code = code_of(error)
    if code == errno.EIO and not _has_room(path):
        # LMDB says so of a write that was cut short, which is how a disk that fills up shows first.
        code = errno.ENOSPC
    why = str(error).rstrip(".")
    for meaning in _MEANINGS:
        if isinstance(error, meaning.exceptions) or code in meaning.codes:
            return meaning.becomes(meaning.sentence.format(path=path, why=why))
    return StoreUnavailable(f"The store {path} does not answer: {why}.")


def code_of(error: lmdb.Error | OSError) -> int:
    """The system's or LMDB's code, 0 where there is none: what the binding itself refuses has no such attribute."""
    code: int | None = getattr(error, "code", 0) if isinstance(error, lmdb.Error) else error.errno
    return code or 0


def _has_room(path: Path) -> bool:
    """Whether the data file could grow by a little: on its disk, and within this process's limit of file sizes."""
    disk = os.statvfs(path)
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    is_within_limit = limit == resource.RLIM_INFINITY or (path / DATA_FILE).stat().st_size + _LITTLE_BYTES < limit
    return is_within_limit and disk.f_bavail * disk.f_frsize > _LITTLE_BYTES
