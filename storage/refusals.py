"""Reasons for which more than one store refuses a call, in one wording."""

from collections.abc import Sequence

from storage.errors import StoreRefused


def read_only(store: object) -> StoreRefused:
    """Return the error for a write to a store that was opened for reading only."""
    return StoreRefused(f"The store {store} was opened for reading only.")


def other_layout(store: object, found: bytes, known: Sequence[bytes]) -> StoreRefused:
    """Return the error for a store whose bytes mean something else than this program knows."""
    return StoreRefused(
        f"The store {store} has layout {found.decode(errors='replace')}; this program supports only layout "
        f"{' and '.join(layout.decode() for layout in known)}."
    )
