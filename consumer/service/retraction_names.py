"""Names retractions by the keys of their clients. A key belongs to its owner: others may use the same one.

Until keys had owners, a tombstone was named by the key alone. Nobody knows whose such a tombstone is, so it goes on
answering whoever sends its key, until its window has ended.
"""

from typing import Final

from consumer.judge.versions import retraction_reference
from consumer.tokens.token import Caller
from storage.interface import Store
from storage.records import Tombstone, id_hash

_WITHOUT_OWNER: Final = b"key:%b"
_OF_OWNER: Final = b"owned-key\0%b\0%b"
"""Neither an owner nor a key has a NUL, and the owner of a token is never empty."""


def retraction_name(store: Store, article_id: str, key: str, caller: Caller | None) -> bytes:
    """Return the name under which the key of a caller retracts an article: the same name is the same retraction.

    All callers without a token are one owner. Raises the store's errors.
    """
    earlier = _WITHOUT_OWNER % key.encode()
    if _is_tombstone(store, article_id, earlier):
        return earlier
    owner = "" if caller is None else caller.owner
    return _OF_OWNER % (owner.encode(), key.encode())


def _is_tombstone(store: Store, article_id: str, name: bytes) -> bool:
    reference = retraction_reference(article_id, name)
    history = store.history(id_hash(article_id))
    return any(isinstance(entry, Tombstone) and entry.reference == reference for entry in history)
