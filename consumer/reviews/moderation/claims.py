"""Claims of people on flags that they have open, and the next flag for somebody: one that nobody else has open."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, exists, select

from consumer.reviews import queue
from consumer.reviews.database import Database
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.portable import Lock, insert_or, one_at_a_time
from consumer.reviews.queue import Filters, Order
from consumer.reviews.tables import FLAGS, LOOKING, PEOPLE

LOOKING_MS: Final = 300_000
"""How long somebody who opened a flag, and did not leave it, keeps it: long enough to read two long articles."""
CANDIDATES_MAX: Final = 10
"""Flags of which the first that is still free is claimed: as many people may ask at the same moment."""
HELD_MAX: Final = 1_000
"""Flags of others that are passed over when candidates are looked for; no other one is ever claimed either."""
ATTEMPTS_MAX: Final = 5
"""How often others may be faster before somebody gets a flag that another person has open, too."""
_SEEN_AGAIN_MS: Final = 2_000
"""Opening a flag again is stored after this time; the page that follows a claim writes nothing.

Short, so that a page that is asked for again outlasts the closing of the one before.
"""

# Every decision executes these, and building a statement takes longer than most take to execute.
_BY_OTHERS: Final = (LOOKING.c.person_id != bindparam("person"), LOOKING.c.at_ms > bindparam("since_ms"))
_HELD: Final = select(LOOKING.c.flag_id).where(*_BY_OTHERS).order_by(LOOKING.c.at_ms.desc()).limit(HELD_MAX)
_FREE: Final = select(FLAGS.c.flag_id).where(
    FLAGS.c.flag_id.in_(bindparam("candidates", expanding=True)),
    FLAGS.c.state == "open",
    ~exists().where(LOOKING.c.flag_id == FLAGS.c.flag_id, *_BY_OTHERS),
)
_OF_PERSON: Final = delete(LOOKING).where(LOOKING.c.person_id == bindparam("person"))
_PAST: Final = delete(LOOKING).where(LOOKING.c.at_ms <= bindparam("until_ms"))
_OF_FLAG: Final = (
    select(LOOKING.c.person_id, PEOPLE.c.name, LOOKING.c.at_ms)
    .join_from(LOOKING, PEOPLE, PEOPLE.c.person_id == LOOKING.c.person_id)
    .where(LOOKING.c.flag_id == bindparam("flag_id"))
    .order_by(PEOPLE.c.name)
)


class NextFlag(NamedTuple):
    """The next flag for somebody. ``is_free``: nobody else has it open, and nobody else gets it as their next one."""

    flag_id: int
    is_free: bool


def next_flag(
    database: Database, filters: Filters, order: Order, left: FlagRow, person_id: int, now_ms: int
) -> NextFlag | None:
    """Give somebody the open flag that follows the one that they leave, or the first one; None where none is open.

    They let go of all flags that they had open. Flags that others have open are passed over. Where others have all of
    them open, it is the first that follows.
    """
    for _ in range(ATTEMPTS_MAX):
        with database.reading() as connection:
            held = _held(connection, person_id, now_ms)
            candidates = queue.open_after(connection, filters, order, left, CANDIDATES_MAX, held)
        if not candidates:
            break
        claim = partial(_claim, candidates=candidates, person_id=person_id, now_ms=now_ms)
        claimed = database.written(claim)
        if claimed is not None:
            return NextFlag(claimed, is_free=True)
    database.written(lambda c: _leave_all(c, person_id))
    with database.reading() as connection:
        first = queue.open_after(connection, filters, order, left, 1)
    return NextFlag(first[0], is_free=False) if first else None


def leave(connection: Connection, flag_id: int, person_id: int) -> None:
    """Note that somebody no longer has a flag open."""
    connection.execute(delete(LOOKING).where(LOOKING.c.flag_id == flag_id, LOOKING.c.person_id == person_id))


def close(database: Database, flag_id: int, person_id: int, opened_ms: int) -> None:
    """Note that somebody has closed the page of a flag that they opened then. A later opening stays."""
    own = (LOOKING.c.flag_id == flag_id, LOOKING.c.person_id == person_id, LOOKING.c.at_ms <= opened_ms)
    with database.reading() as connection:
        is_open = connection.execute(select(LOOKING.c.flag_id).where(*own)).first() is not None
    # Mostly a decision or a link has left it already.
    if is_open:
        database.written(lambda c: c.execute(delete(LOOKING).where(*own)))


def _leave_all(connection: Connection, person_id: int) -> None:
    """Note that somebody has no flag open: pages may have gone away without a word."""
    connection.execute(_OF_PERSON, {"person": person_id})


def look(database: Database, flag_id: int, person_id: int, now_ms: int) -> tuple[str, ...]:
    """Note that somebody has opened a flag, and return the names of others who have it open."""
    with database.reading() as connection:
        rows = connection.execute(_OF_FLAG, {"flag_id": flag_id}).all()
    if not any(row.person_id == person_id and row.at_ms > now_ms - _SEEN_AGAIN_MS for row in rows):
        database.written(lambda c: open_flag(c, flag_id, person_id, now_ms))
    return tuple(row.name for row in rows if row.person_id != person_id and row.at_ms > now_ms - LOOKING_MS)


def open_flag(connection: Connection, flag_id: int, person_id: int, now_ms: int) -> None:
    """Note that somebody has opened a flag."""
    connection.execute(_PAST, {"until_ms": now_ms - LOOKING_MS})
    # The same person may open it in two windows at the same moment.
    opened = insert_or(connection, LOOKING).values(flag_id=flag_id, person_id=person_id, at_ms=now_ms)
    keys = [LOOKING.c.flag_id, LOOKING.c.person_id]
    connection.execute(opened.on_conflict_do_update(index_elements=keys, set_={"at_ms": now_ms}))


def open_elsewhere(
    connection: Connection, flag_ids: Sequence[int], person_id: int, now_ms: int
) -> dict[int, tuple[str, ...]]:
    """Return the names of others for each flag that they have open; flags that nobody has open are left out."""
    query = (
        select(LOOKING.c.flag_id, PEOPLE.c.name)
        .join_from(LOOKING, PEOPLE, PEOPLE.c.person_id == LOOKING.c.person_id)
        .where(LOOKING.c.flag_id.in_(flag_ids), *_BY_OTHERS)
        .order_by(LOOKING.c.flag_id, PEOPLE.c.name)
    )
    found: dict[int, tuple[str, ...]] = {}
    for flag_id, name in connection.execute(query, _others_now(person_id, now_ms)):
        found[flag_id] = (*found.get(flag_id, ()), name)
    return found


def _others_now(person_id: int, now_ms: int) -> dict[str, int]:
    """Return the parameters of the condition that others have opened a flag and have not lost it since."""
    return {"person": person_id, "since_ms": now_ms - LOOKING_MS}


def _held(connection: Connection, person_id: int, now_ms: int) -> frozenset[int]:
    """Return the flags that others have opened last."""
    return frozenset(connection.execute(_HELD, _others_now(person_id, now_ms)).scalars())


def _claim(connection: Connection, candidates: Sequence[int], person_id: int, now_ms: int) -> int | None:
    """Open the first candidate that is open and free, in place of all that somebody had open; None without any."""
    one_at_a_time(connection, Lock.LOOKING)
    # In one statement: in between somebody could decide about a flag and leave it, which would then seem open and free.
    values = {**_others_now(person_id, now_ms), "candidates": candidates}
    free: Collection[int] = set(connection.execute(_FREE, values).scalars())
    claimed = next((flag_id for flag_id in candidates if flag_id in free), None)
    if claimed is not None:
        _leave_all(connection, person_id)
        open_flag(connection, claimed, person_id, now_ms)
    return claimed
