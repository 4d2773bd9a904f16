"""The parts of the word index in the database: adding, checking and merging them.

The only change to a part is the removal of flags. Small parts are merged into larger ones, and parts with many removed
flags are rewritten. A search reads either the old parts or the new one, and never waits.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, Select, delete, func, insert, select, update

from consumer.reviews.flag_row import UNDECIDED
from consumer.reviews.portable import portions
from consumer.reviews.tables import FLAGS, SEARCH_PAGES, SEARCH_PARTS
from consumer.reviews.word_index.pages import (
    NO_ENTRIES,
    PART_FLAGS_MAX,
    IndexPage,
    Numbers,
    entries_of,
    merge_entries,
    pack_entries,
    pack_ids,
    renumber,
    split,
    unpack_ids,
    unpack_page,
)

MERGE_PARTS_MIN: Final = 8
"""The minimum number of parts of similar size to merge into one, unless fewer of them fill a part."""
GONE_SHARE_MAX: Final = 1 / 8
"""The share of a part's flags that may be removed before it is rewritten."""
LEASE_MS: Final = 600_000
"""How long a console may take to check or merge parts, before another one may take over."""
CHECK_MS: Final = 3_600_000
"""The interval at which parts are compared with the flags and the store."""
REPLACED_MS: Final = 15_000
"""How long a replaced part remains, for searches that have already begun."""
PAGES_AT_ONCE: Final = 64
"""Pages merged at a time."""
_PAGES_INSERTED: Final = 100


class IndexPart(NamedTuple):
    """A part built from ``places`` flags, of which ``flags`` remain. Its claim, if any, ends at ``claimed_ms``."""

    part_id: int
    flags: int
    places: int
    claimed_ms: int
    checked_ms: int

    @property
    def is_mostly_gone(self) -> bool:
        """Whether so many of its flags are removed that it must be rewritten."""
        return self.flags < self.places * (1 - GONE_SHARE_MAX)


def parts(connection: Connection) -> list[IndexPart]:
    """Return the parts that searches read, the smallest first."""
    columns = [SEARCH_PARTS.c[name] for name in IndexPart._fields]
    query = select(*columns).where(SEARCH_PARTS.c.replaced_ms.is_(None))
    rows = connection.execute(query.order_by(SEARCH_PARTS.c.flags, SEARCH_PARTS.c.part_id))
    return [IndexPart(*row) for row in rows]


def add_part(connection: Connection, texts: Mapping[int, Collection[int]], now_ms: int) -> int:
    """Add a part with the words of those flags that are still undecided; return their number."""
    flag_ids = np.array(sorted(texts), np.int64)
    flag_ids = flag_ids[_are_undecided(connection, flag_ids)]
    if len(flag_ids):
        _insert(connection, flag_ids, pack_entries(entries_of([texts[number] for number in flag_ids.tolist()])), now_ms)
    return len(flag_ids)


def parts_to_merge(found: Sequence[IndexPart], now_ms: int) -> list[int]:
    """Return the parts to merge next: several, one to be rewritten, or none.

    ``found`` must be in the order of ``parts``. Claimed parts are left out.
    """
    free = [part for part in found if part.claimed_ms <= now_ms]
    for part in free:
        if part.is_mostly_gone:
            return [part.part_id]
    for smallest, largest in pairwise((0, *(MERGE_PARTS_MIN**power for power in range(1, 6)))):
        chosen: list[IndexPart] = []
        for part in free:
            if smallest < part.flags <= min(largest, PART_FLAGS_MAX // 2):
                if sum(each.flags for each in chosen) + part.flags > PART_FLAGS_MAX:
                    return [each.part_id for each in chosen]
                chosen.append(part)
        if len(chosen) >= MERGE_PARTS_MIN:
            return [part.part_id for part in chosen]
    return []


def claim_parts(connection: Connection, part_ids: Sequence[int], now_ms: int) -> int | None:
    """Claim parts for this console. Return when the claim ends, or None if one of them is claimed or replaced."""
    free = (SEARCH_PARTS.c.part_id.in_(part_ids), SEARCH_PARTS.c.claimed_ms <= now_ms)
    query = select(SEARCH_PARTS.c.part_id).where(*free, SEARCH_PARTS.c.replaced_ms.is_(None))
    found = connection.execute(query.with_for_update(skip_locked=True)).scalars().all()
    if len(found) < len(part_ids):
        return None
    until_ms = now_ms + LEASE_MS
    connection.execute(update(SEARCH_PARTS).where(SEARCH_PARTS.c.part_id.in_(part_ids)).values(claimed_ms=until_ms))
    return until_ms


class PartMerge(NamedTuple):
    """A merge of parts: the flags of the merged part, and the ranges of words to merge in turn.

    For each part, ``numbers`` has the new number of each place, -1 if its flag is left out.
    """

    part_ids: Sequence[int]
    flag_ids: Numbers
    numbers: Sequence[Numbers]
    ranges: Sequence[tuple[int, int]]


def begin_merge(connection: Connection, part_ids: Sequence[int]) -> PartMerge:
    """Return the merge of claimed parts. It keeps only the undecided flags."""
    ids_by_part = [ids_of(connection, part_id) for part_id in part_ids]
    all_ids = np.unique(np.concatenate(ids_by_part))
    all_ids = all_ids[all_ids > 0]
    flag_ids = all_ids[_are_undecided(connection, all_ids)]
    numbers = []
    for ids in ids_by_part:
        places = np.searchsorted(flag_ids, ids)
        remains = np.isin(ids, flag_ids)
        numbers.append(np.where(remains, places, -1))
    query = select(SEARCH_PAGES.c.first_word).where(SEARCH_PAGES.c.part_id.in_(part_ids))
    firsts = sorted(connection.execute(query).scalars())
    limits = [0, *firsts[PAGES_AT_ONCE::PAGES_AT_ONCE], np.iinfo(np.int64).max]
    return PartMerge(part_ids, flag_ids, numbers, list(pairwise(limits)))


def merged_pages(merge: PartMerge, read: Callable[[int, int, int], Sequence[bytes]]) -> Iterator[IndexPage]:
    """Yield the pages of the merged part.

    ``read`` returns the pages of a part that begin in a range of words, like ``pages_between``.
    """
    rest = NO_ENTRIES
    for low, high in merge.ranges:
        found = [rest]
        for part_id, numbers in zip(merge.part_ids, merge.numbers, strict=True):
            found += [renumber(unpack_page(content), numbers) for content in read(part_id, low, high)]
        whole, rest = split(merge_entries(found), high)
        yield from pack_entries(whole)


def pages_between(connection: Connection, part_id: int, low: int, high: int) -> Sequence[bytes]:
    """Return the pages of a part that begin in a range of words, excluding ``high``."""
    first = SEARCH_PAGES.c.first_word
    query = select(SEARCH_PAGES.c.content).where(SEARCH_PAGES.c.part_id == part_id, first >= low, first < high)
    return connection.execute(query.order_by(first)).scalars().all()


def replace_parts(
    connection: Connection, merge: PartMerge, pages: Sequence[IndexPage], until_ms: int, now_ms: int
) -> bool:
    """Replace parts with the merged one, and return True; return False if the claim until ``until_ms`` was lost."""
    these = SEARCH_PARTS.c.part_id.in_(merge.part_ids)
    still_claimed = (these, SEARCH_PARTS.c.claimed_ms == until_ms, SEARCH_PARTS.c.replaced_ms.is_(None))
    locked = select(SEARCH_PARTS.c.part_id).where(*still_claimed).with_for_update()
    if len(connection.execute(locked).all()) < len(merge.part_ids):
        return False
    connection.execute(update(SEARCH_PARTS).where(these).values(replaced_ms=now_ms))
    if len(merge.flag_ids):
        _insert(connection, merge.flag_ids, pages, now_ms)
    return True


def ids_of(connection: Connection, part_id: int) -> Numbers:
    """Return the flag at each place of a part, 0 for removed ones."""
    query = select(SEARCH_PARTS.c.flag_ids).where(SEARCH_PARTS.c.part_id == part_id)
    return unpack_ids(connection.execute(query).scalar_one())


def finish_check(connection: Connection, part_id: int, gone: Numbers, until_ms: int, now_ms: int) -> None:
    """Remove ``gone`` and decided flags from a part, record the check, and end the claim, unless the claim was lost."""
    ids = ids_of(connection, part_id)
    ids[np.isin(ids, gone)] = 0
    ids[ids > 0] *= _are_undecided(connection, ids[ids > 0])
    values = {
        "flag_ids": pack_ids(ids),
        "flags": int(np.count_nonzero(ids)),
        "checked_ms": now_ms,
        "claimed_ms": 0,
    }
    still_claimed = (SEARCH_PARTS.c.part_id == part_id, SEARCH_PARTS.c.claimed_ms == until_ms)
    connection.execute(update(SEARCH_PARTS).where(*still_claimed).values(values))


def has_replaced(connection: Connection, now_ms: int) -> bool:
    """Return whether there are replaced parts to delete."""
    return connection.execute(_replaced(now_ms).limit(1)).first() is not None


def delete_replaced(connection: Connection, now_ms: int) -> None:
    """Delete parts that were replaced at least ``REPLACED_MS`` ago, with their pages."""
    part_ids = connection.execute(_replaced(now_ms).with_for_update(skip_locked=True)).scalars().all()
    for table in (SEARCH_PAGES, SEARCH_PARTS):
        connection.execute(delete(table).where(table.c.part_id.in_(part_ids)))


def _replaced(now_ms: int) -> Select[int]:
    return select(SEARCH_PARTS.c.part_id).where(SEARCH_PARTS.c.replaced_ms <= now_ms - REPLACED_MS)


def indexed_count(connection: Connection) -> int:
    """Return how many flags are indexed, including some that were recently decided."""
    query = select(func.coalesce(func.sum(SEARCH_PARTS.c.flags), 0)).where(SEARCH_PARTS.c.replaced_ms.is_(None))
    return int(connection.execute(query).scalar_one())


def _insert(
    connection: Connection, flag_ids: Numbers, pages: Iterator[IndexPage] | Sequence[IndexPage], now_ms: int
) -> None:
    values = {
        "flags": len(flag_ids),
        "places": len(flag_ids),
        "flag_ids": pack_ids(flag_ids),
        "claimed_ms": 0,
        "checked_ms": now_ms,
    }
    part_id = connection.execute(insert(SEARCH_PARTS).values(values).returning(SEARCH_PARTS.c.part_id)).scalar_one()
    for portion in portions(pages, _PAGES_INSERTED):
        rows = [{"part_id": part_id, "first_word": page.first, "content": page.content} for page in portion]
        connection.execute(insert(SEARCH_PAGES), rows)


def _are_undecided(connection: Connection, flag_ids: Numbers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether each of these flags is undecided, in order."""
    found: set[int] = set()
    for portion in portions(flag_ids.tolist()):
        # By number alone: with a condition on the state, SQLite would read all flags in that state.
        rows = connection.execute(select(FLAGS.c.flag_id, FLAGS.c.state).where(FLAGS.c.flag_id.in_(portion)))
        found.update(row.flag_id for row in rows if row.state in UNDECIDED)
    return np.isin(flag_ids, np.fromiter(found, np.int64))
