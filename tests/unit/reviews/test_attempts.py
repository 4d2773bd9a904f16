"""Attempts to sign in: each further one waits twice as long, and all that are under way count."""

from functools import partial

from consumer.reviews.attempts import (
    FORGET_AFTER_MS,
    WAIT_MS_MAX,
    AttemptLimit,
    PendingAttempt,
    begin,
    forget,
    take_back,
)
from consumer.reviews.database import Database
from consumer.reviews.tables import SIGN_IN_FAILURES
from tests.unit.reviews.made import NOW_MS, at_once, number_of, write

FAILURES_MAX = 3
ANN = AttemptLimit("name:ann", FAILURES_MAX)
HERE = AttemptLimit("address:::1", FAILURES_MAX)


def attempt(database: Database, *limits: AttemptLimit, at_ms: int = NOW_MS) -> tuple[list[PendingAttempt], int]:
    """Begin an attempt."""
    return write(database, begin, limits or (ANN,), at_ms)


def waits(database: Database, *limits: AttemptLimit, at_ms: int = NOW_MS) -> int:
    """For how long an attempt has to wait; one that need not is not counted either."""
    begun, wait_ms = attempt(database, *limits, at_ms=at_ms)
    for each in begun:
        write(database, take_back, each)
    return wait_ms


def fail(database: Database, limit: AttemptLimit = ANN, at_ms: int = NOW_MS) -> int:
    """An attempt that fails as soon as it may; when that is, from ``at_ms`` on."""
    waited_ms = 0
    begun, wait_ms = attempt(database, limit, at_ms=at_ms)
    while not begun:
        waited_ms += wait_ms
        begun, wait_ms = attempt(database, limit, at_ms=at_ms + waited_ms)
    return waited_ms


def test_waits_double_from_the_last_free_attempt_on(database: Database) -> None:
    """Up to a quarter of an hour."""
    at_ms, found = NOW_MS, []
    for _ in range(16):
        found.append(fail(database, at_ms=at_ms))
        at_ms += found[-1]
    assert found[:7] == [0, 0, 0, 1_000, 2_000, 4_000, 8_000]
    assert found[-3:] == [WAIT_MS_MAX] * 3


def test_an_attempt_waits_for_its_time(database: Database) -> None:
    """The time that is left is told, and it ends; what waits is not counted, for nobody."""
    for _ in range(FAILURES_MAX):
        fail(database)
    assert waits(database, at_ms=NOW_MS) == 1_000
    assert waits(database, HERE, ANN, at_ms=NOW_MS + 999) == 1
    assert number_of(database, SIGN_IN_FAILURES) == 1
    assert waits(database, at_ms=NOW_MS + 1_000) == 0
    assert waits(database, AttemptLimit("name:bob", FAILURES_MAX), at_ms=NOW_MS) == 0


def test_a_clock_that_was_set_back_locks_nobody_out(database: Database) -> None:
    """No wait is longer than the longest one."""
    for _ in range(FAILURES_MAX):
        fail(database, at_ms=NOW_MS + 10**12)
    assert waits(database) == WAIT_MS_MAX


def test_what_did_not_fail_is_taken_back(database: Database) -> None:
    """And the wait that it set with it; what failed before still counts."""
    for _ in range(FAILURES_MAX - 1):
        fail(database)
    for _ in range(5):
        (begun,), wait_ms = attempt(database)
        assert wait_ms == 0
        assert attempt(database) == ([], 1_000)
        write(database, take_back, begun)
    fail(database)
    assert waits(database) == 1_000
    # Beyond the limit too: whoever shares an address with somebody who guesses adds nothing to the wait.
    assert waits(database, at_ms=NOW_MS + 1_000) == 0
    assert waits(database, at_ms=NOW_MS + 1_000) == 0


def test_what_is_taken_back_late_leaves_the_wait_of_others(database: Database) -> None:
    """One that took longer than the wait it had set does not end the one that somebody else has set meanwhile."""
    for _ in range(FAILURES_MAX - 1):
        fail(database)
    (slow,), _ = attempt(database)
    fail(database, at_ms=NOW_MS + 1_000)
    write(database, take_back, slow)
    assert waits(database, at_ms=NOW_MS + 1_000) == 2_000


def test_time_and_success_make_forget(database: Database) -> None:
    """Then the count begins again."""
    for _ in range(FAILURES_MAX):
        fail(database)
    write(database, forget, ANN.subject)
    assert [fail(database) for _ in range(FAILURES_MAX)] == [0, 0, 0]
    bob = AttemptLimit("name:bob", FAILURES_MAX)
    for _ in range(FAILURES_MAX):
        fail(database, bob)
    assert [fail(database, bob, NOW_MS + FORGET_AFTER_MS) for _ in range(FAILURES_MAX)] == [0, 0, 0]
    assert number_of(database, SIGN_IN_FAILURES) == 1


def test_of_attempts_at_once_no_more_begin_than_may_fail(database: Database, second: Database) -> None:
    """In two processes: each counts before it is known how it ends."""
    found = at_once([partial(attempt, each, HERE, ANN) for each in (database, second) * 6])
    assert sum(bool(begun) for begun, _ in found) == FAILURES_MAX
    assert {wait_ms for begun, wait_ms in found if not begun} == {1_000}


def test_attempts_at_once_are_all_taken_back(database: Database, second: Database) -> None:
    """None is lost, and none is taken back twice."""
    wide = AttemptLimit("name:ann", 100)

    def come_and_go(each: Database) -> None:
        for _ in range(10):
            (begun,), _ = attempt(each, wide)
            write(each, take_back, begun)

    at_once([partial(come_and_go, each) for each in (database, second) * 2])
    assert [fail(database) for _ in range(FAILURES_MAX)] == [0, 0, 0]
    assert waits(database) == 1_000


def test_subjects_of_any_kind(database: Database) -> None:
    """Whatever somebody types as a name."""
    for subject in ("name:" + "x" * 1_000, "name:\0", "name:\udc80", "name:'"):
        limit = AttemptLimit(subject, FAILURES_MAX)
        for _ in range(FAILURES_MAX):
            fail(database, limit)
        assert waits(database, limit) > 0
