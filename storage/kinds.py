"""The registry: every kind of store. To add one, implement ``storage.interface.Store`` and list its kind here."""

from typing import Final

from storage.hbase.kind import HBASE
from storage.kind import StoreArguments, StoreKind, StoreNeeds
from storage.lmdb.kind import LMDB
from storage.memory import MEMORY

KINDS: Final = (MEMORY, LMDB, HBASE)


def kind_of(url: str) -> StoreKind:
    """Return the kind of store that a URL names. Raises ``ValueError``, which says how to write a URL."""
    for kind in KINDS:
        if kind.matches(url):
            return kind
    raise ValueError(f"write it as {_alternatives([kind.form for kind in KINDS])}")


def url_forms() -> str:
    """Return how the URL of each kind is written, for help texts."""
    return _alternatives([f"{kind.form} ({kind.note})" if kind.note else kind.form for kind in KINDS])


def lasting_examples() -> str:
    """Return example URLs of the stores that outlive a run, for messages."""
    return _alternatives([kind.example for kind in KINDS if kind.outlives_run])


def store_identity(url: str) -> str:
    """Return the identity of a store, which does not depend on how its URL is written. Checkpoints keep this text.

    Raises ``ValueError`` for a URL of no kind, as ``kind_of`` does.
    """
    return kind_of(url).identity(url)


def same_store(url: str, other_url: str) -> bool:
    """Return whether two URLs name the same store, as far as the URLs show."""
    kind = kind_of(url)
    return kind is kind_of(other_url) and kind.same(url, other_url)


def needs_of_all(arguments: StoreArguments) -> list[StoreNeeds]:
    """Return the needs of every kind's options, which are checked even if another kind of store is used."""
    return [kind.needs(arguments) for kind in KINDS]


def _alternatives(forms: list[str]) -> str:
    return " or ".join([", ".join(forms[:-1]), forms[-1]])
