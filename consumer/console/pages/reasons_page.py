"""The page on which admins edit the reasons for *wrong*, and the form field for a reason."""

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
"""The form field with the number of a reason, or "" for none."""
_NOTICES: Final = {
    "add": N_("Reason added."),
    "rename": N_("Reason renamed."),
    "retire": N_("Reason retired. Decisions that have it keep it."),
    "restore": N_("Reason restored. It can be chosen again."),
}
_STEPS: Final = {"up": -1, "down": 1}
_CHANGES: Final = {
    "rename": "reason.rename",
    "retire": "reason.retire",
    "restore": "reason.restore",
    "up": "reason.move",
    "down": "reason.move",
}
"""The audit log action of each button."""


def chosen_reason(form: Fields) -> int | None:
    """Return the number of the reason in a form, or None if none was chosen. Raises ``PageError``."""
    return form.integer(FIELD) if form.text(FIELD) else None


@contextmanager
def reason_errors_as_pages() -> Iterator[None]:
    """Raise ``PageError`` instead of errors about the reason of a decision."""
    try:
        yield
    except reasons.ReasonMissing as error:
        message = N_(
            "There is no such reason. Nothing was decided. Reload the page, and choose a reason from its list."
        )
        raise PageError(HTTPStatus.BAD_REQUEST, message) from error
    except reasons.ReasonRetired as error:
        message = N_("This reason was retired. Nothing was decided. Reload the page, and choose another one.")
        raise PageError(HTTPStatus.CONFLICT, message) from error


def show_reasons(visit: SignedInVisit) -> Response:
    """Show all reasons."""
    with visit.context.database.read_connection() as connection:
        known = reasons.reasons(connection)
    notice = _NOTICES.get(visit.query.text("done"), "")
    return visit.page(
        "reasons.html",
        reasons=[reason for reason in known if not reason.is_retired],
        retired=[reason for reason in known if reason.is_retired],
        most=REASONS_MAX,
        chars_max=REASON_CHARS_MAX,
        notice=visit.language.gettext(notice) if notice else "",
    )


def add(visit: SignedInVisit) -> Response:
    """Add a reason."""
    name = _name_in(visit.form)

    def add_reason(connection: Connection) -> None:
        reasons.add_reason(connection, name)
        visit.add_audit_entry(connection, "reason.add", subject=name)

    return _write(visit, "add", add_reason)


def change(visit: SignedInVisit) -> Response:
    """Rename, retire, restore or move a reason, depending on the button."""
    action, now_ms = visit.form.text("action"), visit.context.now_ms()
    reason_id: int = visit.path_parameters["reason_id"]
    name = _name_in(visit.form) if action == "rename" else ""
    if action not in _CHANGES:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("A reason can be renamed, retired, restored, or moved up or down."))

    def change_reason(connection: Connection) -> None:
        reason = reasons.reason_numbered(connection, reason_id)
        if action == "rename":
            reasons.rename_reason(connection, reason_id, name)
        elif action == "retire":
            reasons.retire_reason(connection, reason_id, now_ms)
        elif action == "restore":
            reasons.restore_reason(connection, reason_id)
        else:
            reasons.move_reason(connection, reason_id, _STEPS[action])
        visit.add_audit_entry(connection, _CHANGES[action], subject=reason.name, why=name)

    return _write(visit, action, change_reason)


def _write(visit: SignedInVisit, action: str, work: Callable[[Connection], None]) -> Response:
    """Change the list, and show it. Raises ``PageError`` if the change is refused."""
    try:
        visit.context.database.write(work)
    except reasons.ReasonMissing as error:
        raise not_found() from error
    except reasons.ReasonTaken as error:
        message = N_(
            "A reason of this name already exists, perhaps retired or with other capitals. Nothing was changed."
        )
        raise PageError(HTTPStatus.CONFLICT, message) from error
    except reasons.ReasonsFull as error:
        message = N_(
            "The list can have at most %(most)s reasons and %(retired)s retired ones. Nothing was changed. "
            "Retire, restore or rename one instead."
        )
        raise PageError(HTTPStatus.CONFLICT, message, most=REASONS_MAX, retired=RETIRED_MAX) from error
    return visit.redirect("/reasons", done=action if action in _NOTICES else None)


def _name_in(form: Fields) -> str:
    """Return the name in a form. Raises ``PageError``."""
    name = form.text("name", REASON_CHARS_MAX)
    if not is_name(name):
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Enter a name without line breaks or invisible characters."))
    return name
