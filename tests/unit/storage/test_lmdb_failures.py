"""py-lmdb's exceptions: each becomes one of ``storage.errors``, and none gets past the store."""

import errno
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from storage.errors import StoreDamaged, StoreError, StoreFull, StoreRefused, StoreUnavailable
from storage.lmdb import LmdbStore
from storage.lmdb.failures import store_error
from storage.postings import KeyedCode
from tests.builders import make_record, make_tombstone, make_version
from tests.unit.storage.processes import SMALL

EXCEPTIONS = [what for what in vars(lmdb).values() if isinstance(what, type) and issubclass(what, lmdb.Error)]
EXPECTED: dict[str, type[StoreError]] = {
    "MapFullError": StoreFull,
    "DiskError": StoreFull,
    "InvalidError": StoreRefused,
    "VersionMismatchError": StoreRefused,
    "IncompatibleError": StoreRefused,
    "NotFoundError": StoreRefused,
    "CorruptedError": StoreDamaged,
    "PageNotFoundError": StoreDamaged,
    "ReadonlyError": StoreRefused,
    "PanicError": StoreUnavailable,
    "ReadersFullError": StoreUnavailable,
    "MapResizedError": StoreUnavailable,
    "LockError": StoreUnavailable,
    "MemoryError": StoreUnavailable,
    "Error": StoreUnavailable,
    "BadTxnError": StoreError,
    "BadValsizeError": StoreError,
    "TxnFullError": StoreError,
}
CALLS: dict[str, Callable[[LmdbStore], object]] = {
    "create": lambda store: store.create([make_version()]),
    "retract": lambda store: store.retract([make_tombstone()]),
    "read": lambda store: store.read([make_record().reference]),
    "latest": lambda store: store.latest([make_record().id_hash]),
    "history": lambda store: store.history(make_record().id_hash),
    "bodies": lambda store: store.bodies([make_record().reference]),
    "add": lambda store: store.add([make_record()]),
    "look_up": lambda store: store.look_up(make_record().keys),
    "seek": lambda store: store.seek([KeyedCode(make_record().keys[0], make_record().fingerprint)], 9),
    "remove": lambda store: store.remove([make_record()]),
    "settle": lambda store: store.settle([(make_record().reference, b"kept")]),
    "agree": lambda store: store.agree(b"settings"),
    "sweep": lambda store: store.sweep(1, 1),
    "scan": lambda store: list(store.scan()),
    "stats": lambda store: store.stats(),
}


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_every_exception_of_lmdb_becomes_one_of_ours(exception: type[lmdb.Error], tmp_path: Path) -> None:
    """Those named here become just what is written beside them; of the rest none is passed on."""
    error = store_error(exception("what it did"), tmp_path)
    assert isinstance(error, StoreError)
    assert type(error) is EXPECTED.get(exception.__name__, type(error))
    assert str(tmp_path) in str(error)
    assert "what it did" in str(error)


@pytest.mark.parametrize(
    ("code", "becomes"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EFBIG, StoreFull),
        (errno.EACCES, StoreRefused),
        (errno.EROFS, StoreRefused),
        (errno.EIO, StoreUnavailable),
        (errno.ENOMEM, StoreUnavailable),
    ],
)
def test_errors_of_the_system_are_told_apart_by_their_code(
    code: int, becomes: type[StoreError], tmp_path: Path
) -> None:
    """Whether LMDB passes them on or Python raises them. A cut-off write needs a full disk to be one."""
    (tmp_path / "data.mdb").touch()
    error = lmdb.Error("write")
    error.code = code  # type: ignore[misc]  # as the binding sets it
    assert type(store_error(error, tmp_path)) is becomes
    assert type(store_error(OSError(code, "write"), tmp_path)) is becomes


@pytest.mark.parametrize("call", CALLS)
def test_no_call_lets_an_exception_of_lmdb_past(call: str, tmp_path: Path) -> None:
    """A call that the library refuses, here since the store is closed, raises a ``StoreError``."""
    store = LmdbStore.open(tmp_path, SMALL)
    store.close()
    with pytest.raises(StoreError):
        CALLS[call](store)
