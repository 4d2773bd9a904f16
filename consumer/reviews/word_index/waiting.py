"""The queue of flags whose words must still be indexed, and the claims of consoles on them."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, delete, func, select, update

from consumer.reviews.flag_row import UNDECIDED
from consumer.reviews.portable import dialect_insert, insert_rows, portions
from consumer.reviews.tables import FLAGS, SEARCH_PAGES, SEARCH_PARTS, SEARCH_WAITING
from consumer.reviews.word_index.pages import NO_NUMBERS, Numbers, unpack_ids

CLAIMED_MAX: Final = 500
"""The maximum number of flags that a console indexes at a time."""
LEASE_MS: Final = 120_000
"""How long a console may take to index claimed flags before another one may claim them."""
TRIES_MAX: Final = 3
"""How many times a flag is tried in all if the store does not have its text."""
RETRY_MS: Final = 3_600_000
"""The time until a flag whose text the store does not have is tried again."""
IDS_EXAMINED_MAX: Final = 20_000
"""How many ids are examined at a time, to find flags that are neither indexed nor waiting."""


class WaitingFlag(NamedTuple):
    """A flag, and the version whose words must be indexed."""

    flag_id: int
    article_id: str
    version: str


class IndexClaim(NamedTuple):
    """Flags claimed by this console. ``flag_ids`` also includes decided ones, which leave the queue.

    ``until_ms`` is the due time of their rows. A row with another due time was queued or claimed again.
    """

    flags: Sequence[WaitingFlag]
    flag_ids: Sequence[int]
    until_ms: int


def queue_for_indexing(connection: Connection, flag_ids: Collection[int]) -> None:
    """Queue flags for indexing soon, including those that are already indexed or waiting."""
    if flag_ids:
        insert = dialect_insert(connection, SEARCH_WAITING)
        again = insert.on_conflict_do_update(index_elements=["flag_id"], set_={"due_ms": 0, "tries": 0})
        insert_rows(connection, again, [{"flag_id": flag_id, "due_ms": 0, "tries": 0} for flag_id in flag_ids])


def waiting_count(connection: Connection) -> int:
    """Return how many flags are waiting."""
    return connection.execute(select(func.count()).select_from(SEARCH_WAITING)).scalar_one()


def is_any_due(connection: Connection, now_ms: int) -> bool:
    """Return whether there is a flag to claim."""
    return connection.execute(_due(now_ms).limit(1)).first() is not None


def claim(connection: Connection, now_ms: int) -> IndexClaim:
    """Claim up to ``CLAIMED_MAX`` due flags, the latest first, since people search for recent ones."""
    # Other processes skip locked rows instead of waiting; SQLite allows one writer at a time.
    chosen = _due(now_ms).order_by(SEARCH_WAITING.c.flag_id.desc()).limit(CLAIMED_MAX).with_for_update(skip_locked=True)
    flag_ids = connection.execute(chosen).scalars().all()
    until_ms = now_ms + LEASE_MS
    is_chosen = SEARCH_WAITING.c.flag_id.in_(flag_ids)
    connection.execute(update(SEARCH_WAITING).where(is_chosen).values(due_ms=until_ms))
    columns = select(FLAGS.c.flag_id, FLAGS.c.article_id, FLAGS.c.version, FLAGS.c.state)
    rows = connection.execute(columns.where(FLAGS.c.flag_id.in_(flag_ids)))
    undecided = [WaitingFlag(*row[:3]) for row in rows if row.state in UNDECIDED]
    return IndexClaim(undecided, flag_ids, until_ms)


def give_back(connection: Connection, claimed: IndexClaim) -> None:
    """Put claimed flags that could not be indexed back into the queue."""
    for portion in portions(claimed.flag_ids):
        connection.execute(update(SEARCH_WAITING).where(*_still_claimed(claimed, portion)).values(due_ms=0))


def end(connection: Connection, claimed: IndexClaim, missing: Collection[int], now_ms: int) -> int:
    """Remove from the queue the claimed flags that are indexed or decided; return how many are given up.

    The ``missing`` flags, whose texts the store does not have, are tried again, up to ``TRIES_MAX`` times in all.
    """
    later = {"tries": SEARCH_WAITING.c.tries + 1, "due_ms": now_ms + RETRY_MS}
    given_up = 0
    for portion in portions(missing):
        again = (*_still_claimed(claimed, portion), SEARCH_WAITING.c.tries < TRIES_MAX - 1)
        connection.execute(update(SEARCH_WAITING).where(*again).values(later))
        given_up += connection.execute(delete(SEARCH_WAITING).where(*_still_claimed(claimed, portion))).rowcount
    for portion in portions(claimed.flag_ids):
        connection.execute(delete(SEARCH_WAITING).where(*_still_claimed(claimed, portion)))
    return given_up


def indexed_or_waiting_ids(connection: Connection) -> Numbers:
    """Return the flags that are indexed or waiting, in ascending order. A 0 stands for flags removed from a part."""
    parts = connection.execute(select(SEARCH_PARTS.c.flag_ids).where(SEARCH_PARTS.c.replaced_ms.is_(None))).scalars()
    waiting = connection.execute(select(SEARCH_WAITING.c.flag_id)).scalars()
    found = np.concatenate([NO_NUMBERS, *map(unpack_ids, parts), np.fromiter(waiting, np.int64)])
    return np.unique(found)


def queue_missing(connection: Connection, after_id: int, known: Numbers) -> int | None:
    """Queue undecided flags that are not ``known``; return the id to continue from, None at the end.

    Examines ``IDS_EXAMINED_MAX`` ids after ``after_id``.
    """
    last_id = connection.execute(select(func.max(FLAGS.c.flag_id))).scalar() or 0
    if after_id >= last_id:
        return None
    end_id = after_id + IDS_EXAMINED_MAX
    # By number alone: with a condition on the state, SQLite would read all flags in that state.
    some = select(FLAGS.c.flag_id, FLAGS.c.state).where(FLAGS.c.flag_id > after_id, FLAGS.c.flag_id <= end_id)
    undecided = np.fromiter((row[0] for row in connection.execute(some) if row[1] in UNDECIDED), np.int64)
    queue_for_indexing(connection, np.setdiff1d(undecided, known).tolist())
    return end_id


def clear(connection: Connection) -> None:
    """Delete the whole index and the queue of waiting flags."""
    for table in (SEARCH_PAGES, SEARCH_PARTS, SEARCH_WAITING):
        connection.execute(delete(table))


def is_clear(connection: Connection) -> bool:
    """Return whether both the index and the queue of waiting flags are empty."""
    tables = (SEARCH_PARTS.c.part_id, SEARCH_WAITING.c.flag_id)
    return all(connection.execute(select(column).limit(1)).first() is None for column in tables)


def _due(now_ms: int) -> Select[int]:
    return select(SEARCH_WAITING.c.flag_id).where(SEARCH_WAITING.c.due_ms <= now_ms)


def _still_claimed(claimed: IndexClaim, flag_ids: Sequence[int]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    # A flag reopened in the meantime has another due time, and is indexed again.
    return SEARCH_WAITING.c.flag_id.in_(flag_ids), SEARCH_WAITING.c.due_ms == claimed.until_ms
