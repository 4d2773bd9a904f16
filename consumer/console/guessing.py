"""Slows down whoever guesses passwords, and keeps nobody out who signs in from where they always do.

Failed attempts count for their address. They count for the name as well, with a limit that is ``NAME_TIMES`` as wide,
which many addresses share; but not from an address at which this person has signed in lately. So whoever fails with
the name of another on purpose makes only strangers wait.
"""

from collections.abc import Sequence
from http import HTTPStatus
from math import ceil
from typing import Final

from consumer.console.faults import N_, PageError
from consumer.console.visit import Visit
from consumer.reviews import attempts, audit
from consumer.reviews.attempts import AttemptLimit, PendingAttempt
from consumer.reviews.database import Connection

NAME_TIMES: Final = 10
KNOWN_MS: Final = 30 * 24 * 60 * 60 * 1_000
"""How long an address is known at which somebody has signed in."""
SIGNED_IN: Final = "session.begin"
"""The entry of the audit log that says from where somebody has signed in."""


def begin_attempt(visit: Visit, name: str) -> list[PendingAttempt]:
    """Count an attempt before its password is compared. Raises ``PageError`` where it has to wait."""
    desk, now_ms = visit.desk, visit.desk.now_ms()
    begun, wait_ms = desk.database.written(lambda c: attempts.begin(c, _limits(c, visit, name, now_ms), now_ms))
    if wait_ms:
        wait_s = ceil(wait_ms / 1_000)
        message = N_("There were too many failed attempts with this name or from this address. Try again in %(wait)s.")
        raise PageError(
            HTTPStatus.TOO_MANY_REQUESTS, message, wait=visit.language.span(wait_s), retry_s=wait_s, offers_sign_in=True
        )
    return begun


def end_attempt(connection: Connection, begun: Sequence[PendingAttempt]) -> None:
    """Count an attempt no longer, since the password was right. What failed before still counts.

    For the address it has to: whoever has an account could try others' passwords between their own sign-ins.
    """
    for attempt in begun:
        attempts.take_back(connection, attempt)


def forgive(connection: Connection, name: str) -> None:
    """Forget what failed with the name of somebody who has signed in."""
    attempts.forget(connection, _name(name))


def note_failure(connection: Connection, visit: Visit, name: str) -> None:
    """Put a failed attempt into the audit log."""
    now_ms = visit.desk.now_ms()
    audit.note(connection, at_ms=now_ms, person="", address=visit.address, action="session.refused", subject=name)


def _limits(connection: Connection, visit: Visit, name: str, now_ms: int) -> list[AttemptLimit]:
    failures_max = visit.desk.section.failures_max
    limits = [AttemptLimit(f"address:{visit.address}", failures_max)]
    if not audit.has(connection, SIGNED_IN, name, visit.address, now_ms - KNOWN_MS):
        limits.append(AttemptLimit(_name(name), NAME_TIMES * failures_max))
    return limits


def _name(name: str) -> str:
    return f"name:{name}"
