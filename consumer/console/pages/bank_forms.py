"""Reads forms about banks into members of entries, checks permissions, and makes and records changes.

Where somebody else has changed a bank or an item since the page was made, a form has no effect and says so.
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
"""A form with the longest text, every character of which may take twelve bytes, and all else that an item has."""
LABELS_CHARS_MAX: Final = 2_000
UNTIL_CHARS_MAX: Final = 40
_LABEL: Final = re.compile(rf"[^\s\x00-\x1f\x7f-\x9f]{{1,{LABEL_CHARS_MAX}}}")

_Answer = TypeVar("_Answer")
_Kind = TypeVar("_Kind", Bank, BankItem)


class BankAuditEntry(NamedTuple):
    """An entry of the audit log about a change of banks."""

    action: str
    subject: str
    why: str = ""
    flag_id: int | None = None


def banks_of(asked: SignedInVisit) -> BankAccess:
    """Return the banks of the console. Raises ``PageError`` where it has none."""
    if asked.desk.banks is None:
        message = N_(
            "This console has no banks. Set banks.url in its configuration to the banks of the consumers, and restart "
            "it."
        )
        raise PageError(HTTPStatus.NOT_FOUND, message)
    return asked.desk.banks


def item_path(bank: str, item: str) -> str:
    """Return the path of an item. Neither name has a character that paths encode."""
    return f"/banks/{bank}/items/{item}"


def the_bank(asked: SignedInVisit, banks: Banks) -> Bank:
    """Return the bank that the path names. Raises ``PageError`` where there is none."""
    bank = banks.banks.get(asked.places["bank"])
    if bank is None:
        raise not_found()
    return bank


def the_item(asked: SignedInVisit, banks: Banks) -> BankItem:
    """Return the item that the path names. Raises ``PageError`` where there is none."""
    item = banks.items.get((asked.places["bank"], asked.places["item"]))
    if item is None:
        raise not_found()
    return item


def may_change_items(person: Person, bank: Bank) -> bool:
    """Return whether somebody who reviews may change the items of a bank."""
    return person.role == "admin" or not items_need_admin(bank)


def check_may_change_items(asked: SignedInVisit, bank: Bank) -> None:
    """Raise ``PageError`` where this person may not change the items of a bank."""
    if not may_change_items(asked.person, bank):
        message = N_("Only an admin can change the items of a bank that allows. Ask an admin of this console.")
        raise PageError(HTTPStatus.FORBIDDEN, message)


def stamp(asked: SignedInVisit) -> dict[str, object]:
    """Return who makes a change, and when, as members of an entry."""
    return {"by": asked.person.name, "at": rfc3339(asked.desk.now_ms())}


def entry_of(values: Mapping[str, object], kind: type[_Kind]) -> _Kind:
    """Return an entry with these members. Raises ``PageError`` where they are not valid."""
    try:
        return new_entry(values, kind)
    except BankError as error:
        message = N_("Nothing was changed: %(why)s.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, why=f"{error}") from error


def entry_after(before: _Kind, values: Mapping[str, object]) -> _Kind:
    """Return an entry with other values of some members. Raises ``PageError`` where they are not valid."""
    return entry_of(msgspec.structs.asdict(before) | dict(values), type(before))


def apply_bank_change(asked: SignedInVisit, change: BankChange[tuple[_Answer, BankAuditEntry | None]]) -> _Answer:
    """Make a change of banks, record it, and return its answer; without a record nothing was to be changed.

    Raises ``BankError``, and ``PageError`` where the change contradicts the banks or cannot be recorded.
    """
    try:
        answer, record = banks_of(asked).change(change)
    except ChangeRefused as error:
        raise PageError(HTTPStatus.CONFLICT, N_("Nothing was changed: %(why)s."), why=f"{error}") from error
    if record is not None:
        _note(asked, record)
    return answer


def _note(asked: SignedInVisit, record: BankAuditEntry) -> None:
    try:
        asked.desk.database.written(
            lambda c: asked.note(c, record.action, subject=record.subject, why=record.why, flag_id=record.flag_id)
        )
    except DatabaseUnavailable as error:
        log.error(  # noqa: TRY400  # no defect
            "A change of banks is not in the audit log: %s of %s by %s: %s",
            record.action,
            record.subject,
            asked.person.name,
            error,
        )
        message = N_(
            "It was changed, but the database of the console does not answer, so the audit log does not have it. The "
            "log of the console names the change."
        )
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, message) from error


def changed_meanwhile() -> PageError:
    """Return the error for a form that was made for a bank or an item as it no longer is."""
    message = N_("Somebody else has changed this since the page was made. Nothing was changed now: look at it again.")
    return PageError(HTTPStatus.CONFLICT, message)


def check_seen(form: Fields, before: Bank | BankItem) -> None:
    """Raise ``PageError`` where a bank or an item is no longer as the page had it that the form is from."""
    if form.text("seen") != (before.at or ""):
        raise changed_meanwhile()


def given_in(form: Fields, names: Sequence[str]) -> dict[str, str]:
    """Return what a form has, to be shown in it again."""
    return {name: form.exact(name, ITEM_FORM_BYTES_MAX) for name in names}


def said_of(asked: SignedInVisit, refusal: PageError | None) -> str:
    """Return why a form was refused, in the language of the page; "" where it was not."""
    return "" if refusal is None else refusal.said(asked.language)


def checked_text(text: str) -> str:
    """Return a text that can be an item. Raises ``PageError`` where it is too short or too long."""
    if len(text) > ITEM_CHARS_MAX:
        message = N_("The text has %(num)s characters; an item has at most %(most)s. Nothing was added.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, num=len(text), most=ITEM_CHARS_MAX)
    if letters_in(text) < ITEM_LETTERS_MIN:
        message = N_(
            "The text has fewer than %(least)s letters and digits, so it would be equal to too many articles. Nothing "
            "was added."
        )
        raise PageError(HTTPStatus.BAD_REQUEST, message, least=ITEM_LETTERS_MIN)
    return text


def title_in(form: Fields) -> str:
    """Return the title that a form has. Raises ``PageError``."""
    return form.text("title", TITLE_CHARS_MAX)


def note_in(form: Fields) -> str:
    """Return the note that a form has. Raises ``PageError``."""
    return form.text("note", REASON_CHARS_MAX)


def labels_in(form: Fields) -> tuple[str, ...]:
    """Return the labels that a form has, each once. Raises ``PageError``."""
    labels = tuple(dict.fromkeys(form.text("labels", LABELS_CHARS_MAX).split()))
    if len(labels) > LABELS_MAX or not all(map(_LABEL.fullmatch, labels)):
        message = N_("At most %(most)s labels are possible, of up to %(num)s characters, with spaces between them.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=LABELS_MAX, num=LABEL_CHARS_MAX)
    return labels


def similarity_in(form: Fields, *, allows: bool) -> float | None:
    """Return the similarity that a form has, None where it has none. Raises ``PageError``."""
    similarity, least = form.number("similarity"), ALLOW_SIMILARITY if allows else SIMILARITY_MIN
    if similarity is not None and not least <= similarity <= 1:
        message = N_("The similarity is from %(least)s to 1 here.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, least=f"{least:g}")
    return similarity


def until_in(form: Fields, before: str | None = None) -> str | None:
    """Return when an item ends, None for never. Raises ``PageError`` for what is no time; UTC without a zone.

    What the form had before stays exactly as it is.
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
    """Return the time that an entry has, None where it has none that the calendar knows."""
    try:
        return None if text is None else since_1970_ms(parse_moment(text))
    except ValueError:
        return None
