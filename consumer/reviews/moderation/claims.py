"""Records which flags people have open, and finds a person's next flag: if possible, one that nobody else has open."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, exists, or_, select

from consumer.reviews import queue
from consumer.reviews.database import Database
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.portable import Lock, acquire_lock, dialect_insert
from consumer.reviews.queries.scope import BY_OTHERS, Seeker
from consumer.reviews.queue import Filters, Order
from consumer.reviews.tables import FLAGS, LOOKING, PEOPLE

OPEN_MS: Final = 300_000
"""How long a flag counts as open unless the person leaves it: long enough to read two long articles."""
CANDIDATES_MAX: Final = 10
"""The maximum number of candidates for the next flag. So this many people can get one at the same moment."""
ATTEMPTS_MAX: Final = 5
"""After losing this many claims to others, a person gets a flag that somebody else may also have open."""
_SEEN_AGAIN_MS: Final = 2_000
"""A repeated opening is stored only if the last one is at least this old, so the page after a claim writes nothing.

The time is short, so that after a reload the closing of the old page does not end the new opening.
"""

# Built once: every decision executes these, and building most of them takes longer than executing them.
_FREE: Final = select(FLAGS.c.flag_id).where(
    FLAGS.c.flag_id.in_(bindparam("candidates", expanding=True)),
    FLAGS.c.state == "open",
    ~exists().where(LOOKING.c.flag_id == FLAGS.c.flag_id, *BY_OTHERS),
)
_DELETE_OF_PERSON: Final = delete(LOOKING).where(LOOKING.c.person_id == bindparam("person"))
_DELETE_EXPIRED: Final = delete(LOOKING).where(LOOKING.c.at_ms <= bindparam("until_ms"))
_DELETE_OF_PERSON_OR_EXPIRED: Final = delete(LOOKING).where(
    or_(LOOKING.c.person_id == bindparam("person"), LOOKING.c.at_ms <= bindparam("until_ms"))
)
_OF_FLAG: Final = (
    select(LOOKING.c.person_id, PEOPLE.c.name, LOOKING.c.at_ms)
    .join_from(LOOKING, PEOPLE, PEOPLE.c.person_id == LOOKING.c.person_id)
    .where(LOOKING.c.flag_id == bindparam("flag_id"))
    .order_by(PEOPLE.c.name)
)


class NextFlag(NamedTuple):
    """A person's next flag. If ``is_free``, the person has claimed it, and nobody else had it open."""

    flag_id: int
    is_free: bool


def next_flag(
    database: Database, filters: Filters, order: Order, current: FlagRow, person_id: int, now_ms: int
) -> NextFlag | None:
    """Claim and return the next flag in the state *open*, after ``current`` or else from the beginning.

    Return None if there is none. Other flags that the person has open are closed. Flags that others have open are
    skipped. If others have all such flags open, or are faster ``ATTEMPTS_MAX`` times, return the first without a claim.
    """
    seeker = Seeker(person_id, now_ms - OPEN_MS)
    for _ in range(ATTEMPTS_MAX):
        with database.read_connection() as connection:
            candidates = queue.open_after(connection, filters, order, current, CANDIDATES_MAX, seeker)
        if not candidates:
            break
        claim = partial(_claim, candidates=candidates, person_id=person_id, now_ms=now_ms)
        claimed = database.write(claim)
        if claimed is not None:
            return NextFlag(claimed, is_free=True)
    database.write(lambda c: _leave_all(c, person_id))
    with database.read_connection() as connection:
        first = queue.open_after(connection, filters, order, current, 1)
    return NextFlag(first[0], is_free=False) if first else None


def leave(connection: Connection, flag_id: int, person_id: int) -> None:
    """Record that a person no longer has a flag open."""
    connection.execute(delete(LOOKING).where(LOOKING.c.flag_id == flag_id, LOOKING.c.person_id == person_id))


def close(database: Database, flag_id: int, person_id: int, opened_ms: int) -> None:
    """Record that a person has closed the page of a flag that was opened at ``opened_ms``. A later opening remains."""
    own = (LOOKING.c.flag_id == flag_id, LOOKING.c.person_id == person_id, LOOKING.c.at_ms <= opened_ms)
    with database.read_connection() as connection:
        is_open = connection.execute(select(LOOKING.c.flag_id).where(*own)).first() is not None
    # Usually a decision or a link has already closed it.
    if is_open:
        database.write(lambda c: c.execute(delete(LOOKING).where(*own)))


def _leave_all(connection: Connection, person_id: int) -> None:
    """Record that a person has no flag open. Pages may have been closed without a request that says so."""
    connection.execute(_DELETE_OF_PERSON, {"person": person_id})


class FlagViewer(NamedTuple):
    """A person who opened a flag, and when. The opening may have expired."""

    person_id: int
    name: str
    at_ms: int


def viewers(connection: Connection, flag_id: int) -> list[FlagViewer]:
    """Return the people who opened a flag and have not left it, sorted by name."""
    return [FlagViewer(*row) for row in connection.execute(_OF_FLAG, {"flag_id": flag_id})]


def record_opening(
    database: Database, known: Sequence[FlagViewer], flag_id: int, person_id: int, now_ms: int
) -> tuple[str, ...]:
    """Record that a person has opened a flag, and return the names of others who have it open.

    ``known`` are the flag's ``viewers``.
    """
    if not any(each.person_id == person_id and each.at_ms > now_ms - _SEEN_AGAIN_MS for each in known):
        database.write(lambda c: open_flag(c, flag_id, person_id, now_ms))
    return tuple(each.name for each in known if each.person_id != person_id and each.at_ms > now_ms - OPEN_MS)


def open_flag(connection: Connection, flag_id: int, person_id: int, now_ms: int) -> None:
    """Record that a person has opened a flag, and delete openings that have expired."""
    connection.execute(_DELETE_EXPIRED, {"until_ms": now_ms - OPEN_MS})
    _record(connection, flag_id, person_id, now_ms)


def _record(connection: Connection, flag_id: int, person_id: int, now_ms: int) -> None:
    # The same person may open it in two windows at the same moment.
    opened = dialect_insert(connection, LOOKING).values(flag_id=flag_id, person_id=person_id, at_ms=now_ms)
    keys = [LOOKING.c.flag_id, LOOKING.c.person_id]
    connection.execute(opened.on_conflict_do_update(index_elements=keys, set_={"at_ms": now_ms}))


def open_elsewhere(
    connection: Connection, flag_ids: Sequence[int], person_id: int, now_ms: int
) -> dict[int, tuple[str, ...]]:
    """Return the names of others who have each flag open. Flags that nobody else has open are left out."""
    query = (
        select(LOOKING.c.flag_id, PEOPLE.c.name)
        .join_from(LOOKING, PEOPLE, PEOPLE.c.person_id == LOOKING.c.person_id)
        .where(LOOKING.c.flag_id.in_(flag_ids), *BY_OTHERS)
        .order_by(LOOKING.c.flag_id, PEOPLE.c.name)
    )
    found: dict[int, tuple[str, ...]] = {}
    for flag_id, name in connection.execute(query, Seeker(person_id, now_ms - OPEN_MS)._asdict()):
        found[flag_id] = (*found.get(flag_id, ()), name)
    return found


def _claim(connection: Connection, candidates: Sequence[int], person_id: int, now_ms: int) -> int | None:
    """Open the first free candidate in the state *open*, and leave the person's other flags. Return it, or None."""
    acquire_lock(connection, Lock.LOOKING)
    # One statement checks the state and the openings. Between two statements, somebody could decide and leave a flag,
    # which would then seem open and free.
    values = {**Seeker(person_id, now_ms - OPEN_MS)._asdict(), "candidates": candidates}
    free: Collection[int] = set(connection.execute(_FREE, values).scalars())
    claimed = next((flag_id for flag_id in candidates if flag_id in free), None)
    if claimed is not None:
        connection.execute(_DELETE_OF_PERSON_OR_EXPIRED, {"person": person_id, "until_ms": now_ms - OPEN_MS})
        _record(connection, claimed, person_id, now_ms)
    return claimed
