"""The page of all banks, and the admins' actions on banks: create, change, enable, disable, remove."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.banks.bank import BANK_NAME, Action, Bank, Banks, Entry
from consumer.banks.changes import keep_if_same
from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_forms import (
    BankAuditEntry,
    apply_bank_change,
    banks_of,
    changed_by_others,
    check_seen,
    entry_after,
    entry_of,
    labels_in,
    moment_ms,
    note_in,
    refusal_text,
    requested_bank,
    similarity_in,
    stamp,
    values_in,
)
from consumer.console.visit import SignedInVisit
from consumer.text.counts import counted

ACTIONS: Final[Mapping[Action, str]] = {
    "deny": N_("deny"),
    "allow": N_("allow"),
}
_FIELDS: Final = ("bank", "action", "similarity", "labels", "note")
_NAME: Final = re.compile(BANK_NAME)
_NOTICES: Final = {
    "created": N_("Bank created."),
    "removed": N_("Bank removed, with its items."),
}


class BankRow(NamedTuple):
    """A bank, its number of items, and the time of its last change; None if unknown."""

    bank: Bank
    items: int
    changed_ms: int | None


def show_banks(visit: SignedInVisit) -> Response:
    """Show all banks."""
    return _page(visit, notice=_NOTICES.get(visit.query.text("done"), ""))


def create(visit: SignedInVisit) -> Response:
    """Create a bank. A refused form is shown again."""
    try:
        entry = _new_bank(visit)
        apply_bank_change(visit, lambda banks: _creation(banks, entry))
    except PageError as error:
        return _page(visit, refusal=error, given=values_in(visit.form, _FIELDS))
    return visit.redirect(f"/banks/{entry.bank}", done="created")


def change_bank(visit: SignedInVisit) -> Response:
    """Change labels, note and similarity of a bank."""
    form, author = visit.form, stamp(visit)
    values = {"labels": labels_in(form), "note": note_in(form)}

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        before = requested_bank(visit, banks)
        check_seen(form, before)
        similarity = similarity_in(form, allows=before.action == "allow")
        after = entry_after(before, values | author | {"similarity": similarity})
        return _changed_entry(before, after, BankAuditEntry("bank.change", before.bank, after.note))

    apply_bank_change(visit, change)
    return visit.redirect(f"/banks/{visit.path_parameters['bank']}", done="changed")


def enable(visit: SignedInVisit) -> Response:
    """Enable a bank."""
    return _switch(visit, enabled=True)


def disable(visit: SignedInVisit) -> Response:
    """Disable a bank, so that its items match nothing."""
    return _switch(visit, enabled=False)


def confirm_removal(visit: SignedInVisit) -> Response:
    """Show how many items would be removed with a bank, and ask for confirmation."""
    banks = banks_of(visit).read()
    bank = requested_bank(visit, banks)
    return visit.page("bank_remove.html", bank=bank, items=banks.item_counts()[bank.bank])


def remove(visit: SignedInVisit) -> Response:
    """Remove a bank, if it still has as many items as the confirmation page showed."""
    items, author = visit.form.integer("items"), stamp(visit)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        bank = requested_bank(visit, banks)
        if banks.item_counts()[bank.bank] != items:
            raise changed_by_others()
        removal = entry_of({"bank": bank.bank, "removed": True} | author, Bank)
        return [removal], (None, BankAuditEntry("bank.remove", bank.bank, counted(items, "item")))

    apply_bank_change(visit, change)
    return visit.redirect("/banks", done="removed")


def _page(
    visit: SignedInVisit,
    *,
    notice: str = "",
    refusal: PageError | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    banks = banks_of(visit).read()
    counts = banks.item_counts()
    found = sorted(banks.banks.values(), key=lambda bank: bank.bank)
    return visit.page(
        "banks.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        rows=[BankRow(bank, counts[bank.bank], moment_ms(bank.at)) for bank in found],
        actions=[(action, visit.language.gettext(label)) for action, label in ACTIONS.items()],
        given=given or dict.fromkeys(_FIELDS, ""),
        notice=visit.language.gettext(notice) if notice else "",
        conflict=refusal_text(visit, refusal),
    )


def _new_bank(visit: SignedInVisit) -> Bank:
    form = visit.form
    name, action = form.text("bank"), form.text("action")
    if not _NAME.fullmatch(name):
        message = N_(
            "The name of a bank can have up to 64 lowercase letters a to z, digits, dots, hyphens and underscores."
        )
        raise PageError(HTTPStatus.BAD_REQUEST, message)
    if action not in ACTIONS:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Choose the action of the bank: deny or allow."))
    values = {
        "bank": name,
        "action": action,
        "labels": labels_in(form),
        "note": note_in(form),
        "similarity": similarity_in(form, allows=action == "allow"),
    }
    return entry_of(values | stamp(visit), Bank)


def _creation(banks: Banks, entry: Bank) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
    if entry.bank in banks.banks:
        message = N_("A bank of this name already exists. Nothing was changed. Choose another name.")
        raise PageError(HTTPStatus.CONFLICT, message)
    return [entry], (None, BankAuditEntry("bank.create", entry.bank, entry.action or ""))


def _switch(visit: SignedInVisit, *, enabled: bool) -> Response:
    author = stamp(visit)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        before = requested_bank(visit, banks)
        after = entry_after(before, author | {"enabled": enabled})
        return _changed_entry(before, after, BankAuditEntry("bank.enable" if enabled else "bank.disable", before.bank))

    apply_bank_change(visit, change)
    return visit.redirect(f"/banks/{visit.path_parameters['bank']}", done="enabled" if enabled else "disabled")


def _changed_entry(
    before: Bank, after: Bank, record: BankAuditEntry
) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
    """Return the new entry and its audit entry; neither if nothing changes."""
    return ([], (None, None)) if keep_if_same(before, after) is before else ([after], (None, record))
