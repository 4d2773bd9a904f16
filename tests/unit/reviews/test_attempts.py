"""Failed attempts to sign in: each further one waits twice as long."""

from functools import partial

from consumer.reviews.attempts import FORGOTTEN_MS, LONGEST_WAIT_MS, failed, may_try, succeeded
from consumer.reviews.database import Database
from consumer.reviews.tables import SIGN_IN_FAILURES
from tests.unit.reviews.made import NOW_MS, at_once, number_of, read, written

FAILURES_MAX = 3


def fail(database: Database, subject: str = "name:ann", at_ms: int = NOW_MS) -> int:
    """An attempt that fails, and how long the next one has to wait."""
    return written(database, failed, subject, at_ms, FAILURES_MAX)


def test_waits_double_from_the_last_free_attempt_on(database: Database) -> None:
    """Up to a quarter of an hour."""
    waits = [fail(database) for _ in range(16)]
    assert waits[:6] == [0, 0, 1_000, 2_000, 4_000, 8_000]
    assert waits[-3:] == [LONGEST_WAIT_MS] * 3
    assert fail(database) == LONGEST_WAIT_MS


def test_an_attempt_waits_for_its_time(database: Database) -> None:
    """The time that is left is told, and it ends."""
    for _ in range(4):
        fail(database)
    assert read(database, may_try, "name:ann", NOW_MS) == 2_000
    assert read(database, may_try, "name:ann", NOW_MS + 1_999) == 1
    assert read(database, may_try, "name:ann", NOW_MS + 2_000) == 0
    assert read(database, may_try, "name:bob", NOW_MS) == 0


def test_a_clock_that_was_set_back_locks_nobody_out(database: Database) -> None:
    """No wait is longer than the longest one."""
    for _ in range(4):
        fail(database, at_ms=NOW_MS + 10**12)
    assert read(database, may_try, "name:ann", NOW_MS) == LONGEST_WAIT_MS


def test_success_and_time_make_forget(database: Database) -> None:
    """Then the count begins again."""
    for _ in range(4):
        fail(database)
    written(database, succeeded, "name:ann")
    assert read(database, may_try, "name:ann", NOW_MS) == 0
    assert fail(database) == 0
    for _ in range(4):
        fail(database, "name:bob")
    assert fail(database, "name:bob", NOW_MS + FORGOTTEN_MS) == 0
    assert number_of(database, SIGN_IN_FAILURES) == 1


def test_attempts_at_once_all_count(database: Database, second: Database) -> None:
    """In two processes."""

    def fail_often(each: Database) -> None:
        for _ in range(10):
            fail(each)

    at_once([partial(fail_often, each) for each in (database, second) * 2])
    assert written(database, failed, "name:ann", NOW_MS, 41) == 1_000


def test_subjects_of_any_kind(database: Database) -> None:
    """Whatever somebody types as a name."""
    for subject in ("name:" + "x" * 1_000, "name:\0", "name:\udc80", "name:'"):
        for _ in range(3):
            fail(database, subject)
        assert read(database, may_try, subject, NOW_MS) > 0
