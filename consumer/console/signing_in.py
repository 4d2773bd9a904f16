"""Signing in with a name and a password, and signing out."""

import re
from http import HTTPStatus
from math import ceil
from typing import Final

from starlette.responses import Response

from consumer.console.faults import N_, PageError
from consumer.console.roles import OpenRoute, Route
from consumer.console.visit import Asked, Visit
from consumer.reviews import attempts, audit, people, sessions
from consumer.reviews.database import Connection
from consumer.reviews.passwords import PASSWORD_CHARS_MAX
from consumer.reviews.people import NAME_CHARS_MAX
from consumer.telemetry.metrics.console import SignInFailed

BACK_CHARS_MAX: Final = 2_000
_BACK: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*", re.ASCII)
"""A path of this console, where a browser sees no other host in it."""


def sign_in_routes() -> list[Route | OpenRoute]:
    """Return the routes of signing in and out."""
    return [
        OpenRoute("GET", "/sign-in", show_form),
        OpenRoute("POST", "/sign-in", sign_in),
        Route("POST", "/sign-out", "reviewer", sign_out),
    ]


def show_form(visit: Visit) -> Response:
    """Ask for name and password."""
    return _form(visit, back=visit.query.exact("back", BACK_CHARS_MAX))


def sign_in(visit: Visit) -> Response:
    """Begin a session, where the password is right."""
    name, password = visit.form.text("name", NAME_CHARS_MAX), visit.form.exact("password", PASSWORD_CHARS_MAX)
    desk = visit.desk
    back = visit.form.exact("back", BACK_CHARS_MAX)
    check_attempts(visit, name)
    with desk.database.reading() as connection:
        person = people.person_with_password(connection, name, password)
    if person is None:
        desk.database.written(lambda c: note_failure(c, visit, name))
        desk.hooks.report(SignInFailed())
        said = visit.language.gettext(N_("The name or the password is wrong."))
        return _form(visit, back=back, name=name, said=said)
    secret = desk.database.written(lambda c: _begun(c, visit, person, password))
    response = visit.redirect(back if _BACK.fullmatch(back) else "/")
    visit.session.begin(response, secret, desk.section.session_s)
    return response


def sign_out(asked: Asked) -> Response:
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


def check_attempts(visit: Visit, name: str) -> None:
    """Raise ``PageError`` where this name or this address has to wait after failed attempts."""
    with visit.desk.database.reading() as connection:
        waits = [attempts.may_try(connection, subject, visit.desk.now_ms()) for subject in subjects(visit, name)]
    wait_s = ceil(max(waits) / 1_000)
    if wait_s > 0:
        message = N_("There were too many failed attempts with this name or from this address. Try again in %(wait)s.")
        raise PageError(
            HTTPStatus.TOO_MANY_REQUESTS, message, wait=visit.language.span(wait_s), retry_s=wait_s, offers_sign_in=True
        )


def note_failure(connection: Connection, visit: Visit, name: str) -> None:
    """Count a failed attempt, and put it into the audit log."""
    now_ms, failures_max = visit.desk.now_ms(), visit.desk.section.failures_max
    for subject in subjects(visit, name):
        attempts.failed(connection, subject, now_ms, failures_max)
    audit.note(connection, at_ms=now_ms, person="", address=visit.address, action="session.refused", subject=name)


def subjects(visit: Visit, name: str) -> tuple[str, str]:
    """Return what failed attempts are counted for."""
    return f"name:{name}", f"address:{visit.address}"


def _begun(connection: Connection, visit: Visit, person: people.Person, password: str) -> str:
    """Begin a session with a secret of its own; what this browser had before ends."""
    now_ms = visit.desk.now_ms()
    if visit.session.secret is not None:
        sessions.end_session(connection, visit.session.secret)
    sessions.sweep(connection, now_ms)
    people.renew_hash(connection, person.person_id, password)
    # Not for the address: whoever has an account could try others' passwords between their own sign-ins.
    attempts.succeeded(connection, subjects(visit, person.name)[0])
    audit.note(connection, at_ms=now_ms, person=person.name, address=visit.address, action="session.begin")
    return sessions.begin_session(connection, person.person_id, now_ms, round(visit.desk.section.session_s * 1_000))


def _form(visit: Visit, *, back: str, name: str = "", said: str = "") -> Response:
    status = HTTPStatus.FORBIDDEN if said else HTTPStatus.OK
    return visit.page("sign_in.html", status=status, back=back, name=name, said=said)
