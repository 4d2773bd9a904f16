"""The page "Your account": language and password."""

from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from consumer.console.faults import N_, PageError
from consumer.console.guessing import begin_attempt, end_attempt, note_failure
from consumer.console.i18n import CODES
from consumer.console.visit import SignedInVisit
from consumer.reviews import people, sessions
from consumer.reviews.database import Connection
from consumer.reviews.passwords import PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN

_NOTICES: Final = {
    "language": N_("Language changed."),
    "password": N_("Password changed. Your other sessions have ended."),
}


def show_account(visit: SignedInVisit) -> Response:
    """Show the person's account."""
    return _page(visit, _NOTICES.get(visit.query.text("done"), ""))


def change_language(visit: SignedInVisit) -> Response:
    """Choose a language, or leave it to ``console.language`` and the browser."""
    language = visit.form.text("language")
    if language and language not in CODES:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("The console does not have this language."))

    def set_language(connection: Connection) -> None:
        people.set_language(connection, visit.person.person_id, language or None)
        visit.add_audit_entry(connection, "own.language", subject=visit.person.name, why=language)

    visit.context.database.write(set_language)
    return visit.redirect("/me", done="language")


def change_password(visit: SignedInVisit) -> Response:
    """Change the password if the current one is right. All sessions end, and this browser gets a new session."""
    context, person, form = visit.context, visit.person, visit.form
    old, new = form.exact("old", PASSWORD_CHARS_MAX), form.exact("new", PASSWORD_CHARS_MAX)
    fault = _password_fault(new, form.exact("again", PASSWORD_CHARS_MAX), person.name)
    if fault:
        return _page(visit, fault, HTTPStatus.BAD_REQUEST)
    # Somebody at an unattended browser must not be able to guess without limit.
    attempt = begin_attempt(visit, person.name)
    with context.database.read_connection() as connection:
        known = people.person_with_password(connection, person.name, old)
    if known is None:
        context.database.write(lambda c: note_failure(c, visit, person.name))
        return _page(visit, N_("The current password is wrong. Nothing was changed."), HTTPStatus.FORBIDDEN)

    def set_password(connection: Connection) -> str:
        now_ms = context.now_ms()
        end_attempt(connection, attempt)
        people.set_password(connection, person.person_id, new)
        visit.add_audit_entry(connection, "own.password", at_ms=now_ms, subject=person.name)
        return sessions.begin_session(connection, person.person_id, now_ms, round(context.section.session_s * 1_000))

    secret = context.database.write(set_password)
    response = visit.redirect("/me", done="password")
    visit.session.begin(response, secret, context.section.session_s)
    return response


def _password_fault(new: str, again: str, name: str) -> str:
    """Return why a new password is refused, or "" if it is not."""
    if len(new) < PASSWORD_CHARS_MIN:
        return N_("The new password is too short or too long. Nothing was changed.")
    if new != again:
        return N_("The two new passwords differ. Nothing was changed.")
    if new.casefold() == name.casefold():
        return N_("The new password must not be your name. Nothing was changed.")
    return ""


def _page(visit: SignedInVisit, notice: str, status: int = HTTPStatus.OK) -> Response:
    return visit.page(
        "me.html",
        status=status,
        notice=visit.language.gettext(notice) if notice else "",
        password_chars_min=PASSWORD_CHARS_MIN,
    )
