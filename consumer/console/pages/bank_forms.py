"""Reads forms about banks, checks permissions, and makes and records changes.

A form that edits a bank, or edits, confirms or removes an item, is refused if somebody has changed the bank or the item
since the page was rendered. A form that removes a bank is refused if the bank's number of items has changed.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar

import msgspec

from consumer.banks.bank import (
    ALLOW_SIMILARITY,
    ITEM_CHARS_MAX,
    ITEM_LETTERS_MIN,
    LABEL_CHARS_MAX,
    LABELS_MAX,
    SIMILARITY_MIN,
    TITLE_CHARS_MAX,
    Bank,
    BankError,
    BankItem,
    Banks,
    letters_in,
)
from consumer.banks.changes import items_need_admin, new_entry
from consumer.banks.current_banks import BankChange, ChangeRefused
from consumer.console.bank_access import BankAccess
from consumer.console.faults import N_, PageError, not_found
from consumer.console.visit import Fields, SignedInVisit
from consumer.model.verdict import REASON_CHARS_MAX
from consumer.reviews.database import DatabaseUnavailable
from consumer.reviews.people import Person
from consumer.text.timestamps import parse_moment, rfc3339, since_1970_ms

log = logging.getLogger("dupwatch")

ITEM_FORM_BYTES_MAX: Final = 1_536 * 1_024
"""The maximum size of an item's form: up to twelve bytes for each character of its text, and the other fields."""
LABELS_CHARS_MAX: Final = 2_000
UNTIL_CHARS_MAX: Final = 40
_LABEL: Final = re.compile(rf"[^\s\x00-\x1f\x7f-\x9f]{{1,{LABEL_CHARS_MAX}}}")

_Answer = TypeVar("_Answer")
_Kind = TypeVar("_Kind", Bank, BankItem)


class BankAuditEntry(NamedTuple):
    """An audit log entry about a change of banks."""

    action: str
    subject: str
    why: str = ""
    flag_id: int | None = None


def banks_of(visit: SignedInVisit) -> BankAccess:
    """Return the console's banks. Raises ``PageError`` if it has none."""
    if visit.context.banks is None:
        message = N_(
            "This console has no banks. Set banks.url in its configuration to the consumers' banks, and restart it."
        )
        raise PageError(HTTPStatus.NOT_FOUND, message)
    return visit.context.banks


def item_path(bank: str, item: str) -> str:
    """Return the path of an item. Names of banks and items need no encoding."""
    return f"/banks/{bank}/items/{item}"


def requested_bank(visit: SignedInVisit, banks: Banks) -> Bank:
    """Return the bank in the path. Raises ``PageError`` if it does not exist."""
    bank = banks.banks.get(visit.path_parameters["bank"])
    if bank is None:
        raise not_found()
    return bank


def requested_item(visit: SignedInVisit, banks: Banks) -> BankItem:
    """Return the item in the path. Raises ``PageError`` if it does not exist."""
    item = banks.items.get((visit.path_parameters["bank"], visit.path_parameters["item"]))
    if item is None:
        raise not_found()
    return item


def may_change_items(person: Person, bank: Bank) -> bool:
    """Return whether a person may change the items of a bank."""
    return person.role == "admin" or not items_need_admin(bank)


def check_may_change_items(visit: SignedInVisit, bank: Bank) -> None:
    """Raise ``PageError`` if this person may not change the items of a bank."""
    if not may_change_items(visit.person, bank):
        message = N_("Only an admin can change the items of an allow bank. Ask an admin of this console.")
        raise PageError(HTTPStatus.FORBIDDEN, message)


def stamp(visit: SignedInVisit) -> dict[str, object]:
    """Return the author and the time of a change, as fields of an entry."""
    return {"by": visit.person.name, "at": rfc3339(visit.context.now_ms())}


def entry_of(values: Mapping[str, object], kind: type[_Kind]) -> _Kind:
    """Return an entry with these fields. Raises ``PageError`` if they are invalid."""
    try:
        return new_entry(values, kind)
    except BankError as error:
        message = N_("Nothing was changed: %(why)s.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, why=f"{error}") from error


def entry_after(before: _Kind, values: Mapping[str, object]) -> _Kind:
    """Return an entry with some fields changed. Raises ``PageError`` if they are invalid."""
    return entry_of(msgspec.structs.asdict(before) | dict(values), type(before))


def apply_bank_change(visit: SignedInVisit, change: BankChange[tuple[_Answer, BankAuditEntry | None]]) -> _Answer:
    """Make a change of banks, record it in the audit log, and return its answer.

    A change that returns no audit entry has changed nothing. Raises ``BankError``, and ``PageError`` if the banks
    refuse the change or it cannot be recorded.
    """
    try:
        answer, audit_entry = banks_of(visit).change(change)
    except ChangeRefused as error:
        raise PageError(HTTPStatus.CONFLICT, N_("Nothing was changed: %(why)s."), why=f"{error}") from error
    if audit_entry is not None:
        _note_in_audit_log(visit, audit_entry)
    return answer


def _note_in_audit_log(visit: SignedInVisit, audit_entry: BankAuditEntry) -> None:
    try:
        visit.context.database.write(
            lambda c: visit.add_audit_entry(
                c, audit_entry.action, subject=audit_entry.subject, why=audit_entry.why, flag_id=audit_entry.flag_id
            )
        )
    except DatabaseUnavailable as error:
        log.error(  # noqa: TRY400  # expected, so no traceback
            "A change of banks is not in the audit log: %s of %s by %s: %s",
            audit_entry.action,
            audit_entry.subject,
            visit.person.name,
            error,
        )
        message = N_(
            "The change was made, but it is not in the audit log, because the console's database does not answer. "
            "The console's own log has it."
        )
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, message) from error


def changed_by_others() -> PageError:
    """Return the error for a form whose bank or item has changed since the page was rendered."""
    message = N_("Somebody else has changed this since you opened the page. Nothing was changed. Look at it again.")
    return PageError(HTTPStatus.CONFLICT, message)


def check_seen(form: Fields, before: Bank | BankItem) -> None:
    """Raise ``PageError`` if a bank or an item has changed since the form was shown."""
    if form.text("seen") != (before.at or ""):
        raise changed_by_others()


def values_in(form: Fields, names: Sequence[str]) -> dict[str, str]:
    """Return the fields of a form, to show them again."""
    return {name: form.exact(name, ITEM_FORM_BYTES_MAX) for name in names}


def refusal_text(visit: SignedInVisit, refusal: PageError | None) -> str:
    """Return why a form was refused, in the language of the page; "" if it was not."""
    return "" if refusal is None else refusal.text(visit.language)


def checked_text(text: str) -> str:
    """Return the text. Raises ``PageError`` if it is too short or too long for an item."""
    if len(text) > ITEM_CHARS_MAX:
        message = N_("The text has %(num)s characters; an item can have at most %(most)s. Nothing was added.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, num=len(text), most=ITEM_CHARS_MAX)
    if letters_in(text) < ITEM_LETTERS_MIN:
        message = N_(
            "The text has fewer than %(least)s letters and digits, so it would match too many articles. "
            "Nothing was added."
        )
        raise PageError(HTTPStatus.BAD_REQUEST, message, least=ITEM_LETTERS_MIN)
    return text


def title_in(form: Fields) -> str:
    """Return the title in a form. Raises ``PageError`` if it is too long."""
    return form.text("title", TITLE_CHARS_MAX)


def note_in(form: Fields) -> str:
    """Return the note in a form. Raises ``PageError`` if it is too long."""
    return form.text("note", REASON_CHARS_MAX)


def labels_in(form: Fields) -> tuple[str, ...]:
    """Return the labels in a form, without duplicates. Raises ``PageError`` if they are too many or too long."""
    labels = tuple(dict.fromkeys(form.text("labels", LABELS_CHARS_MAX).split()))
    if len(labels) > LABELS_MAX or not all(map(_LABEL.fullmatch, labels)):
        message = N_("Enter at most %(most)s labels of up to %(num)s characters each, separated by spaces.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=LABELS_MAX, num=LABEL_CHARS_MAX)
    return labels


def similarity_in(form: Fields, *, allows: bool) -> float | None:
    """Return the similarity in a form, or None if the field is empty. Raises ``PageError`` if it is out of range.

    ``allows``: the bank is an allow bank, which has a higher minimum.
    """
    similarity, least = form.number("similarity"), ALLOW_SIMILARITY if allows else SIMILARITY_MIN
    if similarity is not None and not least <= similarity <= 1:
        message = N_("The similarity must be from %(least)s to 1.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, least=f"{least:g}")
    return similarity


def until_in(form: Fields, before: str | None = None) -> str | None:
    """Return when the item in a form ends, or None for never. Times without a zone are in UTC. Raises ``PageError``.

    A value equal to ``before`` is returned unchanged.
    """
    text = form.text("until", UNTIL_CHARS_MAX)
    if not text or text == before:
        return text or None
    try:
        return rfc3339(since_1970_ms(parse_moment(text)))
    except (ValueError, OverflowError, OSError) as error:
        message = N_("%(value)s is not a time. Write it as 2026-12-31 or 2026-12-31 18:00, in UTC.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, value=text) from error


def moment_ms(text: str | None) -> int | None:
    """Return the time of an entry in milliseconds, or None if the time is missing or invalid."""
    try:
        return None if text is None else since_1970_ms(parse_moment(text))
    except ValueError:
        return None
