"""The page on which admins keep the list of reasons for *wrong*, and the field of forms that has one of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.visit import Fields, SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.moderation import reasons
from consumer.reviews.moderation.reasons import REASON_CHARS_MAX, REASONS_MAX, RETIRED_MAX
from consumer.text.names import is_name

FIELD: Final = "reason"
"""The field of a form that has the number of a reason; "" for none."""
_SAID: Final = {
    "add": N_("The reason is added."),
    "rename": N_("The reason is renamed."),
    "retire": N_("The reason can no longer be chosen. Decisions keep it."),
    "restore": N_("The reason can be chosen again."),
}
_STEPS: Final = {"up": -1, "down": 1}
_CHANGES: Final = {
    "rename": "reason.rename",
    "retire": "reason.retire",
    "restore": "reason.restore",
    "up": "reason.move",
    "down": "reason.move",
}
"""The action of each button in the audit log."""


def chosen_reason(form: Fields) -> int | None:
    """Return the number of the reason that a form has, None where none was chosen. Raises ``PageError``."""
    return form.integer(FIELD) if form.text(FIELD) else None


@contextmanager
def refusing_reasons() -> Iterator[None]:
    """Raise ``PageError`` where a decision gives a reason that cannot be chosen."""
    try:
        yield
    except reasons.ReasonMissing as error:
        message = N_("There is no such reason, and nothing was decided. Reload the page, and choose one of its list.")
        raise PageError(HTTPStatus.BAD_REQUEST, message) from error
    except reasons.ReasonRetired as error:
        message = N_("This reason was retired, and nothing was decided. Reload the page, and choose another one.")
        raise PageError(HTTPStatus.CONFLICT, message) from error


def show_reasons(asked: SignedInVisit) -> Response:
    """Show all reasons."""
    with asked.desk.database.reading() as connection:
        known = reasons.reasons(connection)
    said = _SAID.get(asked.query.text("done"), "")
    return asked.page(
        "reasons.html",
        reasons=[reason for reason in known if not reason.is_retired],
        retired=[reason for reason in known if reason.is_retired],
        most=REASONS_MAX,
        chars_max=REASON_CHARS_MAX,
        said=asked.language.gettext(said) if said else "",
    )


def add(asked: SignedInVisit) -> Response:
    """Add a reason."""
    name = _name_in(asked.form)

    def added(connection: Connection) -> None:
        reasons.add_reason(connection, name)
        asked.note(connection, "reason.add", subject=name)

    return _changed(asked, "add", added)


def change(asked: SignedInVisit) -> Response:
    """Rename, retire, restore or move a reason, as the button says."""
    action, now_ms = asked.form.text("action"), asked.desk.now_ms()
    reason_id: int = asked.places["reason_id"]
    name = _name_in(asked.form) if action == "rename" else ""
    if action not in _CHANGES:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("A reason can be renamed, retired, restored, or moved up or down."))

    def changed(connection: Connection) -> None:
        reason = reasons.reason_numbered(connection, reason_id)
        if action == "rename":
            reasons.rename_reason(connection, reason_id, name)
        elif action == "retire":
            reasons.retire_reason(connection, reason_id, now_ms)
        elif action == "restore":
            reasons.restore_reason(connection, reason_id)
        else:
            reasons.move_reason(connection, reason_id, _STEPS[action])
        asked.note(connection, _CHANGES[action], subject=reason.name, why=name)

    return _changed(asked, action, changed)


def _changed(asked: SignedInVisit, action: str, work: Callable[[Connection], None]) -> Response:
    """Change the list, and show it. Raises ``PageError`` where that cannot be."""
    try:
        asked.desk.database.written(work)
    except reasons.ReasonMissing as error:
        raise not_found() from error
    except reasons.ReasonTaken as error:
        message = N_(
            "There is a reason of this name already, perhaps a retired one or in another case. Nothing was changed."
        )
        raise PageError(HTTPStatus.CONFLICT, message) from error
    except reasons.ReasonsFull as error:
        message = N_(
            "The list has at most %(most)s reasons and %(retired)s retired ones. Nothing was changed. Retire, restore "
            "or rename one instead."
        )
        raise PageError(HTTPStatus.CONFLICT, message, most=REASONS_MAX, retired=RETIRED_MAX) from error
    return asked.redirect("/reasons", done=action if action in _SAID else None)


def _name_in(form: Fields) -> str:
    """Return the name that a form gives a reason. Raises ``PageError``."""
    name = form.text("name", REASON_CHARS_MAX)
    if not is_name(name):
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Give a name, without line ends and invisible characters."))
    return name
