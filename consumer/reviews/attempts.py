"""Attempts to sign in, and how long the next one has to wait after those that failed.

An attempt counts as failed from its beginning: however many are made at the same time, no more are let through than
one after the other. What did not fail is taken back at its end. A subject is a name or an address, with a prefix that
says which.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, delete, insert, select, update

from consumer.reviews.portable import Lock, one_at_a_time, storable
from consumer.reviews.tables import SIGN_IN_FAILURES

FIRST_WAIT_MS: Final = 1_000
LONGEST_WAIT_MS: Final = 15 * 60 * 1_000
FORGOTTEN_MS: Final = 24 * 60 * 60 * 1_000
"""When failures are forgotten after which there was none any more."""
_SUBJECT_CHARS_MAX: Final = 300
_DOUBLINGS_MAX: Final = 20


class AttemptLimit(NamedTuple):
    """How many attempts of a subject may fail before the next one has to wait."""

    subject: str
    failures_max: int


class PendingAttempt(NamedTuple):
    """An attempt that counts as failed until it is taken back; ``waits_until_ms`` is what it set for its subject."""

    subject: str
    waits_until_ms: int


def begin(connection: Connection, limits: Sequence[AttemptLimit], now_ms: int) -> tuple[list[PendingAttempt], int]:
    """Count an attempt for each subject, and return it; where one has to wait, count none, and return for how long.

    From the one after ``failures_max`` on the wait is a second, and twice as long each time, up to ``LONGEST_WAIT_MS``.
    """
    one_at_a_time(connection, Lock.ATTEMPTS)
    connection.execute(delete(SIGN_IN_FAILURES).where(SIGN_IN_FAILURES.c.last_ms <= now_ms - FORGOTTEN_MS))
    wait_ms = max((_wait_ms(connection, limit.subject, now_ms) for limit in limits), default=0)
    if wait_ms:
        return [], wait_ms
    return [_counted(connection, limit, now_ms) for limit in limits], 0


def take_back(connection: Connection, attempt: PendingAttempt) -> None:
    """Count an attempt no longer, since it did not fail; those that did still count."""
    one_at_a_time(connection, Lock.ATTEMPTS)
    row = SIGN_IN_FAILURES.c
    # Who came in meanwhile waits for what they have set themselves.
    until_ms = case((row.waits_until_ms == attempt.waits_until_ms, 0), else_=row.waits_until_ms)
    values = {"failures": row.failures - 1, "waits_until_ms": until_ms}
    connection.execute(update(SIGN_IN_FAILURES).where(_is(attempt.subject), row.failures > 0).values(values))


def forget(connection: Connection, subject: str) -> None:
    """Forget all attempts of a subject."""
    connection.execute(delete(SIGN_IN_FAILURES).where(_is(subject)))


def _wait_ms(connection: Connection, subject: str, now_ms: int) -> int:
    until_ms = connection.execute(select(SIGN_IN_FAILURES.c.waits_until_ms).where(_is(subject))).scalar()
    # A clock that was set back must not lock people out for longer than any wait.
    return 0 if until_ms is None else min(max(until_ms - now_ms, 0), LONGEST_WAIT_MS)


def _counted(connection: Connection, limit: AttemptLimit, now_ms: int) -> PendingAttempt:
    known = connection.execute(select(SIGN_IN_FAILURES.c.failures).where(_is(limit.subject))).scalar()
    failures = (known or 0) + 1
    beyond = failures - limit.failures_max
    wait_ms = min(FIRST_WAIT_MS << min(beyond, _DOUBLINGS_MAX), LONGEST_WAIT_MS) if beyond >= 0 else 0
    values = {"failures": failures, "last_ms": now_ms, "waits_until_ms": now_ms + wait_ms}
    if known is None:
        connection.execute(insert(SIGN_IN_FAILURES).values(subject=_held(limit.subject), **values))
    else:
        connection.execute(update(SIGN_IN_FAILURES).where(_is(limit.subject)).values(**values))
    return PendingAttempt(limit.subject, now_ms + wait_ms)


def _is(subject: str) -> ColumnElement[bool]:
    return SIGN_IN_FAILURES.c.subject == _held(subject)


def _held(subject: str) -> str:
    return storable(subject, _SUBJECT_CHARS_MAX)
