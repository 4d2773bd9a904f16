"""Signing in with a name and a password, and signing out."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from consumer.console.faults import N_
from consumer.console.guessing import SIGNED_IN, begin_attempt, end_attempt, forgive, note_failure
from consumer.console.visit import SignedInVisit, Visit
from consumer.reviews import audit, people, sessions
from consumer.reviews.attempts import PendingAttempt
from consumer.reviews.database import Connection
from consumer.reviews.passwords import PASSWORD_CHARS_MAX
from consumer.reviews.people import NAME_CHARS_MAX
from consumer.telemetry.metrics.console import SignInFailed

BACK_CHARS_MAX: Final = 2_000
_BACK: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*", re.ASCII)
"""A path of this console, where a browser sees no other host in it."""


def show_form(visit: Visit) -> Response:
    """Ask for name and password."""
    return _form(visit, back=visit.query.exact("back", BACK_CHARS_MAX))


def sign_in(visit: Visit) -> Response:
    """Begin a session, where the password is right."""
    name, password = visit.form.text("name", NAME_CHARS_MAX), visit.form.exact("password", PASSWORD_CHARS_MAX)
    desk = visit.desk
    back = visit.form.exact("back", BACK_CHARS_MAX)
    attempt = begin_attempt(visit, name)
    with desk.database.reading() as connection:
        person = people.person_with_password(connection, name, password)
    if person is None:
        desk.database.written(lambda c: note_failure(c, visit, name))
        desk.hooks.report(SignInFailed())
        said = visit.language.gettext(N_("The name or the password is wrong."))
        return _form(visit, back=back, name=name, said=said)
    secret = desk.database.written(lambda c: _begun(c, visit, person, password, attempt))
    response = visit.redirect(back if _BACK.fullmatch(back) else "/")
    visit.session.begin(response, secret, desk.section.session_s)
    return response


def sign_out(asked: SignedInVisit) -> Response:
    """End the session of this browser."""
    secret, now_ms = asked.session.secret, asked.desk.now_ms()

    def ended(connection: Connection) -> None:
        if secret is not None:
            sessions.end_session(connection, secret)
        asked.note(connection, "session.end", at_ms=now_ms)

    asked.desk.database.written(ended)
    response = asked.redirect("/sign-in")
    asked.session.end(response)
    return response


def _begun(
    connection: Connection, visit: Visit, person: people.Person, password: str, attempt: Sequence[PendingAttempt]
) -> str:
    """Begin a session with a secret of its own; what this browser had before ends."""
    now_ms = visit.desk.now_ms()
    if visit.session.secret is not None:
        sessions.end_session(connection, visit.session.secret)
    sessions.sweep(connection, now_ms)
    people.renew_hash(connection, person.person_id, password)
    end_attempt(connection, attempt)
    forgive(connection, person.name)
    audit.note(connection, at_ms=now_ms, person=person.name, address=visit.address, action=SIGNED_IN)
    return sessions.begin_session(connection, person.person_id, now_ms, round(visit.desk.section.session_s * 1_000))


def _form(visit: Visit, *, back: str, name: str = "", said: str = "") -> Response:
    status = HTTPStatus.FORBIDDEN if said else HTTPStatus.OK
    return visit.page("sign_in.html", status=status, back=back, name=name, said=said)
