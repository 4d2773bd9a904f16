"""Failed attempts to sign in, and how long the next one has to wait.

A subject is a name or an address, with a prefix that says which.
"""

from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from consumer.reviews.locks import Lock, one_at_a_time
from consumer.reviews.storable import storable
from consumer.reviews.tables import SIGN_IN_FAILURES

FIRST_WAIT_MS: Final = 1_000
LONGEST_WAIT_MS: Final = 15 * 60 * 1_000
FORGOTTEN_MS: Final = 24 * 60 * 60 * 1_000
"""When failures are forgotten after which there was none any more."""
_SUBJECT_CHARS_MAX: Final = 300
_DOUBLINGS_MAX: Final = 20


def may_try(connection: Connection, subject: str, now_ms: int) -> int:
    """Return for how many milliseconds an attempt still has to wait."""
    row = connection.execute(select(SIGN_IN_FAILURES).where(_is(subject))).one_or_none()
    # A clock that was set back must not lock people out for longer than any wait.
    return 0 if row is None else min(max(row.waits_until_ms - now_ms, 0), LONGEST_WAIT_MS)


def failed(connection: Connection, subject: str, now_ms: int, failures_max: int) -> int:
    """Count a failed attempt, and return for how long the next one has to wait.

    From the one after ``failures_max`` on that is a second, and twice as long each time, up to ``LONGEST_WAIT_MS``.
    """
    one_at_a_time(connection, Lock.ATTEMPTS)
    connection.execute(delete(SIGN_IN_FAILURES).where(SIGN_IN_FAILURES.c.last_ms <= now_ms - FORGOTTEN_MS))
    known = connection.execute(select(SIGN_IN_FAILURES.c.failures).where(_is(subject))).scalar()
    failures = (known or 0) + 1
    beyond = failures - failures_max
    wait_ms = min(FIRST_WAIT_MS << min(beyond, _DOUBLINGS_MAX), LONGEST_WAIT_MS) if beyond >= 0 else 0
    values = {"failures": failures, "last_ms": now_ms, "waits_until_ms": now_ms + wait_ms}
    if known is None:
        connection.execute(insert(SIGN_IN_FAILURES).values(subject=_held(subject), **values))
    else:
        connection.execute(update(SIGN_IN_FAILURES).where(_is(subject)).values(**values))
    return wait_ms


def succeeded(connection: Connection, subject: str) -> None:
    """Forget the failed attempts of a subject."""
    connection.execute(delete(SIGN_IN_FAILURES).where(_is(subject)))


def _is(subject: str) -> ColumnElement[bool]:
    return SIGN_IN_FAILURES.c.subject == _held(subject)


def _held(subject: str) -> str:
    return storable(subject, _SUBJECT_CHARS_MAX)
