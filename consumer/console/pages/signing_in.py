"""Signing in with a name and a password, and signing out."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from consumer.console.faults import N_
from consumer.console.guessing import SIGN_IN_ACTION, begin_attempt, end_attempt, forgive, note_failure
from consumer.console.visit import SignedInVisit, Visit
from consumer.reviews import audit, people, sessions
from consumer.reviews.attempts import PendingAttempt
from consumer.reviews.database import Connection
from consumer.reviews.passwords import PASSWORD_CHARS_MAX
from consumer.reviews.people import NAME_CHARS_MAX
from consumer.telemetry.metrics.console import SignInFailed

BACK_CHARS_MAX: Final = 2_000
_BACK: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*", re.ASCII)
"""A path of this console that browsers cannot read as another host."""


def show_form(visit: Visit) -> Response:
    """Show the sign-in form."""
    return _form(visit, back=visit.query.exact("back", BACK_CHARS_MAX))


def sign_in(visit: Visit) -> Response:
    """Begin a session if the password is right."""
    name, password = visit.form.text("name", NAME_CHARS_MAX), visit.form.exact("password", PASSWORD_CHARS_MAX)
    context = visit.context
    back = visit.form.exact("back", BACK_CHARS_MAX)
    attempt = begin_attempt(visit, name)
    with context.database.read_connection() as connection:
        person = people.person_with_password(connection, name, password)
    if person is None:
        context.database.write(lambda c: note_failure(c, visit, name))
        context.hooks.report(SignInFailed())
        notice = visit.language.gettext(N_("The name or the password is wrong."))
        return _form(visit, back=back, name=name, notice=notice)
    secret = context.database.write(lambda c: _begin_session(c, visit, person, password, attempt))
    response = visit.redirect(back if _BACK.fullmatch(back) else "/")
    visit.session.begin(response, secret, context.section.session_s)
    return response


def sign_out(visit: SignedInVisit) -> Response:
    """End the session of this browser."""
    secret, now_ms = visit.session.secret, visit.context.now_ms()

    def end_session(connection: Connection) -> None:
        if secret is not None:
            sessions.end_session(connection, secret)
        visit.add_audit_entry(connection, "session.end", at_ms=now_ms)

    visit.context.database.write(end_session)
    response = visit.redirect("/sign-in")
    visit.session.end(response)
    return response


def _begin_session(
    connection: Connection, visit: Visit, person: people.Person, password: str, attempt: Sequence[PendingAttempt]
) -> str:
    """Begin a session with a new secret, and end the browser's earlier one. Return the secret."""
    now_ms = visit.context.now_ms()
    if visit.session.secret is not None:
        sessions.end_session(connection, visit.session.secret)
    sessions.sweep(connection, now_ms)
    people.renew_hash(connection, person.person_id, password)
    end_attempt(connection, attempt)
    forgive(connection, person.name)
    audit.add_entry(connection, at_ms=now_ms, person=person.name, address=visit.address, action=SIGN_IN_ACTION)
    return sessions.begin_session(connection, person.person_id, now_ms, round(visit.context.section.session_s * 1_000))


def _form(visit: Visit, *, back: str, name: str = "", notice: str = "") -> Response:
    status = HTTPStatus.FORBIDDEN if notice else HTTPStatus.OK
    return visit.page("sign_in.html", status=status, back=back, name=name, notice=notice)
