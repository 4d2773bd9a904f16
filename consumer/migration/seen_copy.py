"""Copies what an old store remembers of texts into a new one, before the window is filled.

So what the fill adds counts on top. Repeated after a stop anywhere the result is the same: what both stores say is
merged, never added up.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from storage.interface import Store
from storage.seen import Seen, SeenChange, merged

_PAGE: Final = 1_024


def copy_seen(old: Store, new: Store, stopped: Callable[[], bool]) -> int:
    """Copy all entries; return how many, fewer if it was stopped. Raises the stores' errors."""
    entries, copied = old.scan_seen(), 0
    while not stopped() and (page := list(islice(entries, _PAGE))):
        _merge(new, page)
        copied += len(page)
    return copied


def _merge(new: Store, page: Sequence[tuple[bytes, Seen]]) -> None:
    left = dict(page)
    while left:
        stored = dict(zip(left, new.seen(list(left)), strict=True))
        changes = [
            SeenChange(digest, found, after)
            for digest, found in stored.items()
            if (after := left[digest] if found is None else merged(found, left[digest])) != found
        ]
        done = new.change_seen(changes)
        left = {
            change.digest: left[change.digest] for change, is_done in zip(changes, done, strict=True) if not is_done
        }
