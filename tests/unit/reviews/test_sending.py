"""Releases that are due: each is claimed by one process, and by another one where that process has ended."""

import pytest

from consumer.reviews.database import Database
from consumer.reviews.decisions import Decision, decide, undo
from consumer.reviews.sending import ReleaseBacklog, backlog, claim_due, mark_refused, mark_sent
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_missed,
    add_person,
    at_once,
    flagged,
    near_miss,
    read,
    rows_of,
    write,
)

FINAL_MS = NOW_MS + 10_000
LEASE_MS = 5_000


def decided(database: Database, decision: Decision, *names: str) -> list[int]:
    """Let somebody decide about these flags, which are made; return the reviews."""
    add(database, *(flagged(name, "original") for name in names))
    rows = rows_of(database)
    person_id = add_person(database, f"Ann {names[0]}").person_id
    ids = [rows[name].flag_id for name in names]
    return write(database, decide, ids, person_id, decision, "why", NOW_MS, FINAL_MS - NOW_MS).review_ids


def claimed(database: Database, worker: str, at_ms: int, limit: int = 100) -> list[int]:
    """Claim what is due; return the reviews."""
    return [each.review_id for each in write(database, claim_due, worker, at_ms, LEASE_MS, limit)]


def test_what_is_wrong_is_due_when_it_is_final(database: Database) -> None:
    """With the flag, who decided and the note."""
    reviews = decided(database, "wrong", "a")
    assert claimed(database, "w", FINAL_MS - 1) == []
    (found,) = write(database, claim_due, "w", FINAL_MS, LEASE_MS, 9)
    assert (found.review_id, found.flag.article_id, found.person, found.reason) == (reviews[0], "a", "Ann a", "why")


def test_nothing_else_is_due(database: Database) -> None:
    """Right and skipped flags, what was undone, and near misses, where there is no flag to undo."""
    decided(database, "right", "a")
    decided(database, "skip", "b")
    (review_id,) = decided(database, "wrong", "c")
    person_id = 3
    assert write(database, undo, [review_id], person_id, NOW_MS)
    add_missed(database, near_miss("near", "original"))
    flag_id = rows_of(database)["near"].flag_id
    write(database, decide, [flag_id], person_id, "wrong", "", NOW_MS, 0)
    assert claimed(database, "w", FINAL_MS) == []
    assert read(database, backlog, FINAL_MS) == ReleaseBacklog(0, None)


def test_what_is_claimed_is_nobody_elses_until_the_lease_ends(database: Database) -> None:
    """Then another process takes it over."""
    reviews = decided(database, "wrong", "a", "b")
    assert claimed(database, "one", FINAL_MS) == reviews
    assert claimed(database, "other", FINAL_MS + LEASE_MS - 1) == []
    assert claimed(database, "other", FINAL_MS + LEASE_MS) == reviews


def test_what_is_sent_or_refused_is_due_no_more(database: Database) -> None:
    """Whoever claims afterwards finds nothing."""
    first, second = decided(database, "wrong", "a", "b")
    assert read(database, backlog, FINAL_MS + 1) == ReleaseBacklog(2, FINAL_MS)
    claimed(database, "w", FINAL_MS)
    write(database, mark_sent, first, FINAL_MS + 1)
    write(database, mark_refused, second, "the window has ended" * 100, FINAL_MS + 1)
    assert claimed(database, "w", FINAL_MS + 10 * LEASE_MS) == []
    assert read(database, backlog, FINAL_MS + 1) == ReleaseBacklog(0, None)


def test_the_oldest_are_due_first(database: Database) -> None:
    """As many as are asked for."""
    reviews = decided(database, "wrong", *"abcde")
    assert claimed(database, "w", FINAL_MS, 2) == reviews[:2]
    assert claimed(database, "v", FINAL_MS, 9) == reviews[2:]


def test_a_process_gets_its_own_again(database: Database) -> None:
    """It has not got on with them, or has started anew under the same name."""
    reviews = decided(database, "wrong", *"abc")
    assert claimed(database, "w", FINAL_MS, 2) == reviews[:2]
    assert claimed(database, "w", FINAL_MS + 1) == reviews


@pytest.mark.parametrize("limit", [1, 7])
def test_processes_that_claim_at_once_get_different_ones(database: Database, second: Database, limit: int) -> None:
    """All of them are claimed, and none twice."""
    reviews = decided(database, "wrong", *(f"{n}" for n in range(50)))

    def take(each: Database, name: str) -> list[int]:
        found: list[int] = []
        while portion := claimed(each, name, FINAL_MS, limit):
            found += portion
            for review_id in portion:
                write(each, mark_sent, review_id, FINAL_MS)
        return found

    one, other = at_once([lambda: take(database, "one"), lambda: take(second, "other")])
    assert sorted([*one, *other]) == reviews
