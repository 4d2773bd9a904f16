"""Copies an old store's entries of seen texts into a new store, before the window is filled.

The fill then adds to the copied entries. After a stop at any moment, the copy can be repeated with the same result,
since the entries of both stores are merged, never added up.

A scheme that compares texts in another form gives most texts another digest. Entries of such texts are copied while the
window is filled, because both digests of a text are known from its versions: docs/decisions/0053.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from storage.interface import Store
from storage.seen import SeenChange, SeenTimes, merge_entries

_PAGE: Final = 1_024


def copy_seen(old: Store, new: Store, stopped: Callable[[], bool]) -> int:
    """Copy entries until all are copied or ``stopped`` returns True; return how many. Raises the stores' errors."""
    entries, copied = old.scan_seen(), 0
    while not stopped() and (page := list(islice(entries, _PAGE))):
        merge_seen(new, page)
        copied += len(page)
    return copied


def seen_by_new_digest(old: Store, digests: Iterable[tuple[bytes, bytes]]) -> dict[bytes, SeenTimes]:
    """Return an old store's entries of texts whose digest has changed, by new digest.

    ``digests`` has pairs of old and new digests. Texts with different old digests may share a new one. Raises the
    store's errors.
    """
    changed = sorted({(before, after) for before, after in digests if before != after})
    old_digests = sorted({before for before, _ in changed})
    entries = dict(zip(old_digests, old.seen(old_digests), strict=True)) if old_digests else {}
    by_new_digest: dict[bytes, SeenTimes] = {}
    for before, after in changed:
        seen = entries[before]
        if seen is not None:
            by_new_digest[after] = merge_entries(by_new_digest[after], seen) if after in by_new_digest else seen
    return by_new_digest


def merge_seen(new: Store, entries: Sequence[tuple[bytes, SeenTimes]]) -> None:
    """Merge entries with distinct digests into the entries of a store. Raises the store's errors."""
    pending = dict(entries)
    while pending:
        stored = dict(zip(pending, new.seen(list(pending)), strict=True))
        changes = [
            SeenChange(digest, before, after)
            for digest, before in stored.items()
            if (after := pending[digest] if before is None else merge_entries(before, pending[digest])) != before
        ]
        done = new.change_seen(changes)
        pending = {
            change.digest: pending[change.digest] for change, is_done in zip(changes, done, strict=True) if not is_done
        }
