"""Who has which flag open, and that "next" gives everybody another one."""

import threading
from functools import partial
from itertools import chain

import pytest

from consumer.reviews import queue
from consumer.reviews.database import Connection, Database
from consumer.reviews.decisions import decide
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.moderation import claims
from consumer.reviews.moderation.claims import (
    OPEN_MS,
    NextFlag,
    close,
    leave,
    next_flag,
    open_elsewhere,
    open_flag,
)
from consumer.reviews.queue import Filters
from consumer.reviews.tables import LOOKING
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_person,
    at_once,
    counted_writes,
    flagged,
    number_of,
    read,
    rows_of,
    write,
)

PEOPLE = 8
FLAGS = 200


def record_opening(database: Database, flag_id: int, person_id: int, now_ms: int) -> tuple[str, ...]:
    """Open a flag, as its page does."""
    return claims.record_opening(database, read(database, claims.viewers, flag_id), flag_id, person_id, now_ms)


def test_who_else_has_a_flag_open(database: Database) -> None:
    """For some minutes, unless they leave it; not oneself."""
    add(database, flagged("a", "o"))
    ann, bob = (add_person(database, name).person_id for name in ("Ann", "Bob"))
    flag_id = rows_of(database)["a"].flag_id
    assert record_opening(database, flag_id, ann, NOW_MS) == ()
    assert record_opening(database, flag_id, ann, NOW_MS + 1) == ()
    assert record_opening(database, flag_id, bob, NOW_MS + OPEN_MS - 1) == ("Ann",)
    assert record_opening(database, flag_id, ann, NOW_MS + OPEN_MS) == ("Bob",)
    write(database, leave, flag_id, bob)
    assert record_opening(database, flag_id, ann, NOW_MS + OPEN_MS) == ()
    assert record_opening(database, flag_id, bob, NOW_MS + 9 * OPEN_MS) == ()


def test_a_page_that_goes_away_lets_its_flag_go(database: Database) -> None:
    """Its own opening only: a later page of the same flag, and other people, keep it."""
    add(database, flagged("a", "o"))
    ann, bob, cy = (add_person(database, name).person_id for name in ("Ann", "Bob", "Cy"))
    flag_id = rows_of(database)["a"].flag_id
    record_opening(database, flag_id, ann, NOW_MS)
    record_opening(database, flag_id, bob, NOW_MS)
    again_ms = NOW_MS + 2_000
    record_opening(database, flag_id, ann, again_ms)
    close(database, flag_id, ann, again_ms - 1)
    assert record_opening(database, flag_id, cy, again_ms) == ("Ann", "Bob")
    close(database, flag_id, ann, again_ms)
    assert record_opening(database, flag_id, cy, again_ms) == ("Bob",)
    with counted_writes(database) as writes:
        close(database, flag_id, ann, again_ms)
    assert writes == []


def test_next_lets_go_of_what_was_left_without_a_word(database: Database) -> None:
    """A tab that was closed keeps no flag once its owner asks for another one; nor where none is left for them."""
    rows = numbered(database, *"abc")
    ann, bob = (add_person(database, name).person_id for name in ("Ann", "Bob"))
    closed, left, following = (row.flag_id for row in rows)
    record_opening(database, closed, ann, NOW_MS)
    record_opening(database, left, ann, NOW_MS)
    assert next_flag(database, Filters(), "certainty", rows[1], ann, NOW_MS) == (following, True)
    assert read(database, lambda c: open_elsewhere(c, [closed, left], bob, NOW_MS)) == {}
    record_opening(database, closed, ann, NOW_MS)
    assert next_flag(database, Filters(source="nobody"), "certainty", rows[2], ann, NOW_MS) is None
    assert number_of(database, LOOKING) == 0


def test_others_who_have_flags_open_are_named(database: Database) -> None:
    """By flag, without oneself, and for some minutes."""
    add(database, flagged("a", "o"), flagged("b", "o"))
    people = [add_person(database, name) for name in ("Wei", "Ann", "Me")]
    first, second = rows_of(database)["a"].flag_id, rows_of(database)["b"].flag_id

    for person in people:
        record_opening(database, first, person.person_id, NOW_MS)
    me = people[2].person_id
    assert read(database, lambda c: open_elsewhere(c, [first, second], me, NOW_MS + 1)) == {first: ("Ann", "Wei")}
    assert read(database, lambda c: open_elsewhere(c, [first], me, NOW_MS + OPEN_MS)) == {}
    assert read(database, lambda c: open_elsewhere(c, [], me, NOW_MS)) == {}


def test_a_flag_may_be_opened_in_two_windows_at_once(database: Database, second: Database) -> None:
    """The same person is there once, and neither window gets an error."""
    add(database, flagged("a", "o"))
    ann, flag_id = add_person(database, "Ann").person_id, rows_of(database)["a"].flag_id
    opening = threading.Thread(target=second.write, args=[lambda c: open_flag(c, flag_id, ann, NOW_MS + 1)])
    with pytest.MonkeyPatch.context() as patch:
        raised: list[object] = []
        patch.setattr(threading, "excepthook", raised.append)
        with database.write_transaction() as connection:
            open_flag(connection, flag_id, ann, NOW_MS)
            opening.start()
            # By then it waits for this one.
            opening.join(0.3)
        opening.join(60)
    assert raised == []
    assert number_of(database, LOOKING) == 1


def numbered(database: Database, *articles: str) -> list[FlagRow]:
    """Add flags, the first of them the least certain; their rows in this order."""
    add(database, *(flagged(name, "o", similarity=0.5 + n / 1_000) for n, name in enumerate(articles)))
    rows = rows_of(database)
    return [rows[name] for name in articles]


def test_next_is_what_nobody_else_has_open(database: Database) -> None:
    """In the order of the queue, and from its beginning again; whoever leaves a flag, or stays away, lets it go."""
    rows = numbered(database, *"abcd")
    ann, bob, cy = (add_person(database, name).person_id for name in ("Ann", "Bob", "Cy"))
    ids = [row.flag_id for row in rows]

    def following(person: int, left: FlagRow, at_ms: int = NOW_MS) -> NextFlag | None:
        return next_flag(database, Filters(), "certainty", left, person, at_ms)

    assert following(ann, rows[0]) == (ids[1], True)
    assert following(bob, rows[0]) == (ids[2], True)
    # Ann leaves b.
    assert following(ann, rows[1]) == (ids[3], True)
    assert following(cy, rows[3]) == (ids[0], True)
    assert following(bob, rows[2]) == (ids[1], True)
    assert following(bob, rows[1]) == (ids[2], True)
    record_opening(database, ids[1], cy, NOW_MS)
    # The others have all of them, so it is the first that follows.
    assert following(bob, rows[2]) == (ids[3], False)
    assert number_of(database, LOOKING) == 3
    assert following(bob, rows[2], NOW_MS + OPEN_MS) == (ids[3], True)


def test_next_is_open(database: Database) -> None:
    """Within what somebody filters; None where nothing is left."""
    rows = numbered(database, *"abc")
    ann = add_person(database, "Ann").person_id
    write(database, decide, [rows[1].flag_id], ann, "right", "", NOW_MS, 0)
    assert next_flag(database, Filters(), "certainty", rows[0], ann, NOW_MS) == (rows[2].flag_id, True)
    assert next_flag(database, Filters(source="nobody"), "certainty", rows[0], ann, NOW_MS) is None
    write(database, decide, [rows[0].flag_id, rows[2].flag_id], ann, "skip", "", NOW_MS, 0)
    assert next_flag(database, Filters(), "certainty", rows[0], ann, NOW_MS) is None


def test_what_others_take_first_is_given_to_nobody_else(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between looking for a flag and taking it, others may take it or decide about it."""
    rows = numbered(database, *"abcd")
    ann, bob = (add_person(database, name).person_id for name in ("Ann", "Bob"))
    open_after = queue.open_after

    def overtaken(*given: object) -> list[int]:
        found = open_after(*given)  # type: ignore[arg-type]  # as it was called
        record_opening(database, rows[1].flag_id, bob, NOW_MS)
        write(database, decide, [rows[2].flag_id], bob, "right", "", NOW_MS, 0)
        return found

    monkeypatch.setattr(queue, "open_after", overtaken)
    monkeypatch.setattr(claims, "CANDIDATES_MAX", 2)
    assert next_flag(database, Filters(), "certainty", rows[0], ann, NOW_MS) == (rows[3].flag_id, True)


def test_no_flag_is_given_twice(database: Database, second: Database) -> None:
    """To eight people in two processes, who decide as fast as they can, until nothing is left."""
    rows = numbered(database, *(f"copy-{n}" for n in range(FLAGS + 1)))
    people = [add_person(database, f"Person {n}").person_id for n in range(PEOPLE)]
    by_id = {row.flag_id: row for row in rows}
    write(database, decide, [rows[0].flag_id], people[0], "right", "", NOW_MS, 0)

    def decide_and_leave(connection: Connection, flag_id: int, person: int) -> None:
        decide(connection, [flag_id], person, "right", "", NOW_MS, 0)
        leave(connection, flag_id, person)

    def decided(at: Database, person: int) -> list[int]:
        given: list[int] = []
        left = rows[0]
        while (following := next_flag(at, Filters(), "certainty", left, person, NOW_MS)) and following.is_free:
            given.append(following.flag_id)
            write(at, decide_and_leave, following.flag_id, person)
            left = by_id[following.flag_id]
        return given

    works = [(second if number % 2 else database, person) for number, person in enumerate(people)]
    given = chain.from_iterable(at_once([partial(decided, *work) for work in works]))
    assert sorted(given) == sorted(row.flag_id for row in rows[1:])
