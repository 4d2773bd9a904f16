"""Copies what an old store remembers of texts into a new one, before the window is filled.

So what the fill adds counts on top. Repeated after a stop anywhere the result is the same: what both stores say is
merged, never added up.

A scheme that compares texts in another form gives most texts another digest. What is remembered of them goes along with
their versions, which have both digests, as the window is filled: docs/decisions/0053.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from storage.interface import Store
from storage.seen import SeenChange, SeenTimes, merged

_PAGE: Final = 1_024


def copy_seen(old: Store, new: Store, stopped: Callable[[], bool]) -> int:
    """Copy all entries; return how many, fewer if it was stopped. Raises the stores' errors."""
    entries, copied = old.scan_seen(), 0
    while not stopped() and (page := list(islice(entries, _PAGE))):
        merge_seen(new, page)
        copied += len(page)
    return copied


def seen_as(old: Store, digests: Iterable[tuple[bytes, bytes]]) -> dict[bytes, SeenTimes]:
    """Return what an old store remembers of texts, by their new digests, of pairs of an old digest and a new one.

    Texts that had different digests may be one text now. Raises the store's errors.
    """
    renamed = sorted({(before, after) for before, after in digests if before != after})
    asked = sorted({before for before, _ in renamed})
    remembered = dict(zip(asked, old.seen(asked), strict=True)) if asked else {}
    found: dict[bytes, SeenTimes] = {}
    for before, after in renamed:
        seen = remembered[before]
        if seen is not None:
            found[after] = merged(found[after], seen) if after in found else seen
    return found


def merge_seen(new: Store, entries: Sequence[tuple[bytes, SeenTimes]]) -> None:
    """Merge these entries, of different digests, into what a store remembers. Raises the store's errors."""
    left = dict(entries)
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
