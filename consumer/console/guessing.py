"""Slows down password guessing without locking out people who sign in from a known address.

Failed attempts count per address. They also count per name, with a limit that is ``NAME_LIMIT_FACTOR`` times as high.
All addresses share the limit of a name, except those from which this person has recently signed in. So nobody can lock
that person out of these addresses by failing with their name on purpose.
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

NAME_LIMIT_FACTOR: Final = 10
"""How many times as high the limit of failed attempts is for a name as for an address."""
KNOWN_ADDRESS_MS: Final = 30 * 24 * 60 * 60 * 1_000
"""How long the address of a sign-in counts as known, in milliseconds."""
SIGN_IN_ACTION: Final = "session.begin"
"""The audit log action of a sign-in. Its entry has the address."""


def begin_attempt(visit: Visit, name: str) -> list[PendingAttempt]:
    """Count an attempt before the password is compared, and return it for ``end_attempt``.

    Raises ``PageError`` if the name or the address has to wait after too many failed attempts.
    """
    context, now_ms = visit.context, visit.context.now_ms()
    begun, wait_ms = context.database.write(lambda c: attempts.begin(c, _limits(c, visit, name, now_ms), now_ms))
    if wait_ms:
        wait_s = ceil(wait_ms / 1_000)
        message = N_("Too many failed attempts with this name or from this address. Try again in %(wait)s.")
        raise PageError(
            HTTPStatus.TOO_MANY_REQUESTS,
            message,
            wait=visit.language.duration(wait_s),
            retry_s=wait_s,
            offers_sign_in=True,
        )
    return begun


def end_attempt(connection: Connection, begun: Sequence[PendingAttempt]) -> None:
    """Stop counting an attempt whose password was right.

    Earlier failures from the address still count, so that nobody can reset its count by signing in to their own account
    between guesses.
    """
    for attempt in begun:
        attempts.take_back(connection, attempt)


def forgive(connection: Connection, name: str) -> None:
    """Forget the failed attempts with the name of a person who has signed in."""
    attempts.forget(connection, _name_key(name))


def note_failure(connection: Connection, visit: Visit, name: str) -> None:
    """Record a failed attempt in the audit log."""
    now_ms = visit.context.now_ms()
    audit.add_entry(connection, at_ms=now_ms, person="", address=visit.address, action="session.refused", subject=name)


def _limits(connection: Connection, visit: Visit, name: str, now_ms: int) -> list[AttemptLimit]:
    failures_max = visit.context.section.failures_max
    limits = [AttemptLimit(f"address:{visit.address}", failures_max)]
    if not audit.has_entry(connection, SIGN_IN_ACTION, name, visit.address, now_ms - KNOWN_ADDRESS_MS):
        limits.append(AttemptLimit(_name_key(name), NAME_LIMIT_FACTOR * failures_max))
    return limits


def _name_key(name: str) -> str:
    return f"name:{name}"
