"""A person's own page: language and password."""

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

_SAID: Final = {
    "language": N_("The language is changed."),
    "password": N_("The password is changed, and your other sessions have ended."),
}


def show_own(asked: SignedInVisit) -> Response:
    """Show what a person can change of their account."""
    return _page(asked, _SAID.get(asked.query.text("done"), ""))


def change_language(asked: SignedInVisit) -> Response:
    """Choose a language, or leave it to the browser."""
    language = asked.form.text("language")
    if language and language not in CODES:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("There is no such language here."))

    def changed(connection: Connection) -> None:
        people.set_language(connection, asked.person.person_id, language or None)
        asked.note(connection, "own.language", subject=asked.person.name, why=language)

    asked.desk.database.written(changed)
    return asked.redirect("/me", done="language")


def change_password(asked: SignedInVisit) -> Response:
    """Change the password if the current one is right. All sessions end, and this browser gets a new one."""
    desk, person, form = asked.desk, asked.person, asked.form
    old, new = form.exact("old", PASSWORD_CHARS_MAX), form.exact("new", PASSWORD_CHARS_MAX)
    why_not = _why_not(new, form.exact("again", PASSWORD_CHARS_MAX), person.name)
    if why_not:
        return _page(asked, why_not, HTTPStatus.BAD_REQUEST)
    # Whoever finds a browser that is signed in must not be able to guess on and on.
    attempt = begin_attempt(asked, person.name)
    with desk.database.reading() as connection:
        known = people.person_with_password(connection, person.name, old)
    if known is None:
        desk.database.written(lambda c: note_failure(c, asked, person.name))
        return _page(asked, N_("The current password is wrong, and nothing was changed."), HTTPStatus.FORBIDDEN)

    def changed(connection: Connection) -> str:
        now_ms = desk.now_ms()
        end_attempt(connection, attempt)
        people.set_password(connection, person.person_id, new)
        asked.note(connection, "own.password", at_ms=now_ms, subject=person.name)
        return sessions.begin_session(connection, person.person_id, now_ms, round(desk.section.session_s * 1_000))

    secret = desk.database.written(changed)
    response = asked.redirect("/me", done="password")
    asked.session.begin(response, secret, desk.section.session_s)
    return response


def _why_not(new: str, again: str, name: str) -> str:
    """Return why a new password is none."""
    if len(new) < PASSWORD_CHARS_MIN:
        return N_("The new password is too short or too long, and nothing was changed.")
    if new != again:
        return N_("The new passwords are not the same, and nothing was changed.")
    if new.casefold() == name.casefold():
        return N_("The new password is the name, and nothing was changed.")
    return ""


def _page(asked: SignedInVisit, said: str, status: int = HTTPStatus.OK) -> Response:
    return asked.page(
        "me.html",
        status=status,
        said=asked.language.gettext(said) if said else "",
        password_chars_min=PASSWORD_CHARS_MIN,
    )
