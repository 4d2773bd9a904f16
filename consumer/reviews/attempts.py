"""Failed attempts to sign in, and how long the next attempt has to wait.

An attempt counts as failed from the start, so parallel attempts get no further than consecutive ones. A successful
attempt is taken back when it ends. A subject is a name or an address, with a prefix that says which.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, delete, insert, select, update

from consumer.reviews.portable import Lock, acquire_lock, storable_text
from consumer.reviews.tables import SIGN_IN_FAILURES

FIRST_WAIT_MS: Final = 1_000
WAIT_MS_MAX: Final = 15 * 60 * 1_000
FORGET_AFTER_MS: Final = 24 * 60 * 60 * 1_000
"""All attempts of a subject are forgotten this long after the last one."""
_SUBJECT_CHARS_MAX: Final = 300
_DOUBLINGS_MAX: Final = 20


class AttemptLimit(NamedTuple):
    """The number of failed attempts after which a subject has to wait."""

    subject: str
    failures_max: int


class PendingAttempt(NamedTuple):
    """An attempt that counts as failed until it is taken back.

    ``waits_until_ms`` is the end of the wait that it causes, or its own time if it causes none.
    """

    subject: str
    waits_until_ms: int


def begin(connection: Connection, limits: Sequence[AttemptLimit], now_ms: int) -> tuple[list[PendingAttempt], int]:
    """Count an attempt for the subject of each limit. Return the attempts, and 0.

    If a subject has to wait, count nothing, and return no attempts and the longest wait in ms. The first wait follows
    ``failures_max`` failures and lasts a second. Each further failure doubles it, up to ``WAIT_MS_MAX``.
    """
    acquire_lock(connection, Lock.ATTEMPTS)
    connection.execute(delete(SIGN_IN_FAILURES).where(SIGN_IN_FAILURES.c.last_ms <= now_ms - FORGET_AFTER_MS))
    wait_ms = max((_wait_ms(connection, limit.subject, now_ms) for limit in limits), default=0)
    if wait_ms:
        return [], wait_ms
    return [_count_attempt(connection, limit, now_ms) for limit in limits], 0


def take_back(connection: Connection, attempt: PendingAttempt) -> None:
    """Stop counting an attempt that succeeded. Attempts that failed still count."""
    acquire_lock(connection, Lock.ATTEMPTS)
    row = SIGN_IN_FAILURES.c
    # Keep a wait that a later attempt has set.
    until_ms = case((row.waits_until_ms == attempt.waits_until_ms, 0), else_=row.waits_until_ms)
    values = {"failures": row.failures - 1, "waits_until_ms": until_ms}
    connection.execute(update(SIGN_IN_FAILURES).where(_has_subject(attempt.subject), row.failures > 0).values(values))


def forget(connection: Connection, subject: str) -> None:
    """Forget all attempts of a subject."""
    connection.execute(delete(SIGN_IN_FAILURES).where(_has_subject(subject)))


def _wait_ms(connection: Connection, subject: str, now_ms: int) -> int:
    until_ms = connection.execute(select(SIGN_IN_FAILURES.c.waits_until_ms).where(_has_subject(subject))).scalar()
    # If the clock is set back, nobody is locked out for longer than the longest wait.
    return 0 if until_ms is None else min(max(until_ms - now_ms, 0), WAIT_MS_MAX)


def _count_attempt(connection: Connection, limit: AttemptLimit, now_ms: int) -> PendingAttempt:
    known = connection.execute(select(SIGN_IN_FAILURES.c.failures).where(_has_subject(limit.subject))).scalar()
    failures = (known or 0) + 1
    excess = failures - limit.failures_max
    wait_ms = min(FIRST_WAIT_MS << min(excess, _DOUBLINGS_MAX), WAIT_MS_MAX) if excess >= 0 else 0
    values = {"failures": failures, "last_ms": now_ms, "waits_until_ms": now_ms + wait_ms}
    if known is None:
        connection.execute(insert(SIGN_IN_FAILURES).values(subject=_stored_subject(limit.subject), **values))
    else:
        connection.execute(update(SIGN_IN_FAILURES).where(_has_subject(limit.subject)).values(**values))
    return PendingAttempt(limit.subject, now_ms + wait_ms)


def _has_subject(subject: str) -> ColumnElement[bool]:
    return SIGN_IN_FAILURES.c.subject == _stored_subject(subject)


def _stored_subject(subject: str) -> str:
    return storable_text(subject, _SUBJECT_CHARS_MAX)
