"""Translates py-lmdb's exceptions into those of ``storage.errors``. No other module does.

They are grouped by the remedy: free space, check the directory, or wait. If none of these helps, the store was used
incorrectly, and the error is a plain ``StoreError``.
"""

import errno
import os
import resource
from pathlib import Path
from typing import Final, NamedTuple

import lmdb

from storage.errors import StoreDamaged, StoreError, StoreFull, StoreRefused, StoreUnavailable
from storage.lmdb.data_file import DAMAGED, DATA_FILE

_FREE_BYTES_MIN: Final = 1 << 16


class _ErrorMapping(NamedTuple):
    """The store's error for a group of failures; ``sentence`` is a template with ``{path}`` and ``{why}``."""

    exceptions: tuple[type[lmdb.Error], ...]
    codes: frozenset[int]
    error_type: type[StoreError]
    sentence: str


_MAPPINGS: Final = (
    _ErrorMapping(
        (lmdb.MapFullError, lmdb.DiskError),
        frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG}),
        StoreFull,
        "No space is left for the store {path}: {why}. Acknowledged writes are safe.",
    ),
    _ErrorMapping(
        (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.IncompatibleError, lmdb.NotFoundError),
        frozenset(),
        StoreRefused,
        "{path} holds a database that is not a dupwatch store, or whose first pages are damaged: {why}. Name another "
        "store, or restore the directory from a backup.",
    ),
    _ErrorMapping(
        # LMDB reports a full page only if the page's bounds were already wrong.
        (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PageFullError),
        frozenset(),
        StoreDamaged,
        DAMAGED,
    ),
    _ErrorMapping(
        (lmdb.ReadonlyError,),
        frozenset({errno.EACCES, errno.EPERM, errno.EROFS}),
        StoreRefused,
        "This user may not open or write the store {path}: {why}. Grant the permission, or name another store.",
    ),
    _ErrorMapping(
        (),
        frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR}),
        StoreRefused,
        "The store {path} cannot be opened or created: {why}. Check the path, or name another store.",
    ),
    _ErrorMapping(
        (lmdb.PanicError,),
        frozenset(),
        StoreUnavailable,
        "The store {path} failed during a write and must be reopened: {why}.",
    ),
    _ErrorMapping(
        (lmdb.ReadersFullError,),
        frozenset(),
        StoreUnavailable,
        "Too many processes and threads are reading the store {path}: {why}.",
    ),
    _ErrorMapping(
        (
            lmdb.BadDbiError,
            lmdb.BadRslotError,
            lmdb.BadTxnError,
            lmdb.BadValsizeError,
            lmdb.CursorFullError,
            lmdb.DbsFullError,
            lmdb.InvalidParameterError,
            lmdb.KeyExistsError,
            lmdb.TlsFullError,
            lmdb.TxnFullError,
        ),
        frozenset(),
        StoreError,
        "The store {path} was used in a way that LMDB does not support: {why}.",
    ),
)


def store_error(error: lmdb.Error | OSError, path: Path) -> StoreError:
    """Return the store's error for a failure of LMDB, or of the files that it uses, at ``path``."""
    code = code_of(error)
    if code == errno.EIO and not _has_space(path):
        # LMDB reports an incomplete write as EIO, which is the first sign of a full disk.
        code = errno.ENOSPC
    why = str(error).rstrip(".")
    for mapping in _MAPPINGS:
        if isinstance(error, mapping.exceptions) or code in mapping.codes:
            return mapping.error_type(mapping.sentence.format(path=path, why=why))
    return StoreUnavailable(f"The store {path} does not answer: {why}.")


def code_of(error: lmdb.Error | OSError) -> int:
    """Return the error code of the system or of LMDB, 0 for an error that the binding itself raised."""
    code: int | None = getattr(error, "code", 0) if isinstance(error, lmdb.Error) else error.errno
    return code or 0


def _has_space(path: Path) -> bool:
    """Return whether the data file could grow a little, within its disk's space and this process's file size limit."""
    disk = os.statvfs(path)
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    is_within_limit = limit == resource.RLIM_INFINITY or (path / DATA_FILE).stat().st_size + _FREE_BYTES_MIN < limit
    return is_within_limit and disk.f_bavail * disk.f_frsize > _FREE_BYTES_MIN
