"""The page of all banks, and what admins do with banks: create, change, switch and remove them."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.banks.bank import BANK_NAME, Action, Bank, Banks, Entry
from consumer.banks.changes import unless_same
from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_forms import (
    BankAuditEntry,
    apply_bank_change,
    banks_of,
    changed_meanwhile,
    check_seen,
    entry_after,
    entry_of,
    given_in,
    labels_in,
    moment_ms,
    note_in,
    said_of,
    similarity_in,
    stamp,
    the_bank,
)
from consumer.console.visit import SignedInVisit
from consumer.text.counts import counted

ACTIONS: Final[Mapping[Action, str]] = {
    "deny": N_("deny"),
    "allow": N_("allow"),
}
_FIELDS: Final = ("bank", "action", "similarity", "labels", "note")
_NAME: Final = re.compile(BANK_NAME)
_SAID: Final = {
    "created": N_("The bank is created."),
    "removed": N_("The bank is removed with its items."),
}


class BankRow(NamedTuple):
    """A bank, how many items it has, and when it was changed last; None where that is not known."""

    bank: Bank
    items: int
    changed_ms: int | None


def show_banks(asked: SignedInVisit) -> Response:
    """Show all banks."""
    return _page(asked, said=_SAID.get(asked.query.text("done"), ""))


def create(asked: SignedInVisit) -> Response:
    """Create a bank. What is refused stands in the form again."""
    try:
        entry = _new_bank(asked)
        apply_bank_change(asked, lambda banks: _created(banks, entry))
    except PageError as error:
        return _page(asked, refusal=error, given=given_in(asked.form, _FIELDS))
    return asked.redirect(f"/banks/{entry.bank}", done="created")


def change_bank(asked: SignedInVisit) -> Response:
    """Change labels, note and similarity of a bank."""
    form, made = asked.form, stamp(asked)
    values = {"labels": labels_in(form), "note": note_in(form)}

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        before = the_bank(asked, banks)
        check_seen(form, before)
        similarity = similarity_in(form, allows=before.action == "allow")
        after = entry_after(before, values | made | {"similarity": similarity})
        return _entries(before, after, BankAuditEntry("bank.change", before.bank, after.note))

    apply_bank_change(asked, change)
    return asked.redirect(f"/banks/{asked.places['bank']}", done="changed")


def enable(asked: SignedInVisit) -> Response:
    """Switch a bank on."""
    return _switched(asked, enabled=True)


def disable(asked: SignedInVisit) -> Response:
    """Switch a bank off, so that nothing is found of it."""
    return _switched(asked, enabled=False)


def confirm_removal(asked: SignedInVisit) -> Response:
    """Say how many items a bank takes along, and ask."""
    banks = banks_of(asked).read()
    bank = the_bank(asked, banks)
    return asked.page("bank_remove.html", bank=bank, items=banks.item_counts()[bank.bank])


def remove(asked: SignedInVisit) -> Response:
    """Remove a bank with as many items as the page before has named."""
    items, made = asked.form.integer("items"), stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        bank = the_bank(asked, banks)
        if banks.item_counts()[bank.bank] != items:
            raise changed_meanwhile()
        removal = entry_of({"bank": bank.bank, "removed": True} | made, Bank)
        return [removal], (None, BankAuditEntry("bank.remove", bank.bank, counted(items, "item")))

    apply_bank_change(asked, change)
    return asked.redirect("/banks", done="removed")


def _page(
    asked: SignedInVisit,
    *,
    said: str = "",
    refusal: PageError | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    banks = banks_of(asked).read()
    counts = banks.item_counts()
    found = sorted(banks.banks.values(), key=lambda bank: bank.bank)
    return asked.page(
        "banks.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        rows=[BankRow(bank, counts[bank.bank], moment_ms(bank.at)) for bank in found],
        actions=[(action, asked.language.gettext(said)) for action, said in ACTIONS.items()],
        given=given or dict.fromkeys(_FIELDS, ""),
        said=asked.language.gettext(said) if said else "",
        conflict=said_of(asked, refusal),
    )


def _new_bank(asked: SignedInVisit) -> Bank:
    form = asked.form
    name, action = form.text("bank"), form.text("action")
    if not _NAME.fullmatch(name):
        message = N_("The name of a bank has up to 64 lowercase letters a to z, digits, dots, hyphens and underscores.")
        raise PageError(HTTPStatus.BAD_REQUEST, message)
    if action not in ACTIONS:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("A bank either denies or allows. Choose one."))
    values = {
        "bank": name,
        "action": action,
        "labels": labels_in(form),
        "note": note_in(form),
        "similarity": similarity_in(form, allows=action == "allow"),
    }
    return entry_of(values | stamp(asked), Bank)


def _created(banks: Banks, entry: Bank) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
    if entry.bank in banks.banks:
        message = N_("There is a bank of this name already, and nothing was changed. Choose another name.")
        raise PageError(HTTPStatus.CONFLICT, message)
    return [entry], (None, BankAuditEntry("bank.create", entry.bank, entry.action or ""))


def _switched(asked: SignedInVisit, *, enabled: bool) -> Response:
    made = stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        before = the_bank(asked, banks)
        after = entry_after(before, made | {"enabled": enabled})
        return _entries(before, after, BankAuditEntry("bank.enable" if enabled else "bank.disable", before.bank))

    apply_bank_change(asked, change)
    return asked.redirect(f"/banks/{asked.places['bank']}", done="enabled" if enabled else "disabled")


def _entries(
    before: Bank, after: Bank, record: BankAuditEntry
) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
    """Return the change from one entry to another, None where they say the same."""
    return ([], (None, None)) if unless_same(before, after) is before else ([after], (None, record))
