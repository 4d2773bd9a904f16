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
    Record,
    banks_of,
    changed,
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
from consumer.console.visit import Asked
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


def show_banks(asked: Asked) -> Response:
    """Show all banks."""
    return _page(asked, said=_SAID.get(asked.query.text("done"), ""))


def create(asked: Asked) -> Response:
    """Create a bank. What is refused stands in the form again."""
    try:
        entry = _new_bank(asked)
        changed(asked, lambda banks: _created(banks, entry))
    except PageError as error:
        return _page(asked, refusal=error, given=given_in(asked.form, _FIELDS))
    return asked.redirect(f"/banks/{entry.bank}", done="created")


def change_bank(asked: Asked) -> Response:
    """Change labels, note and similarity of a bank."""
    form, made = asked.form, stamp(asked)
    values = {"labels": labels_in(form), "note": note_in(form)}

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, Record | None]]:
        before = the_bank(asked, banks)
        check_seen(form, before)
        similarity = similarity_in(form, allows=before.action == "allow")
        after = entry_after(before, values | made | {"similarity": similarity})
        return _entries(before, after, Record("bank.change", before.bank, after.note))

    changed(asked, change)
    return asked.redirect(f"/banks/{asked.places['bank']}", done="changed")


def enable(asked: Asked) -> Response:
    """Switch a bank on."""
    return _switched(asked, enabled=True)


def disable(asked: Asked) -> Response:
    """Switch a bank off, so that nothing is found of it."""
    return _switched(asked, enabled=False)


def confirm_removal(asked: Asked) -> Response:
    """Say how many items a bank takes along, and ask."""
    banks = banks_of(asked).read()
    bank = the_bank(asked, banks)
    return asked.page("bank_remove.html", bank=bank, items=banks.item_counts()[bank.bank])


def remove(asked: Asked) -> Response:
    """Remove a bank with as many items as the page before has named."""
    items, made = asked.form.integer("items"), stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, Record | None]]:
        bank = the_bank(asked, banks)
        if banks.item_counts()[bank.bank] != items:
            raise changed_meanwhile()
        removal = entry_of({"bank": bank.bank, "removed": True} | made, Bank)
        return [removal], (None, Record("bank.remove", bank.bank, counted(items, "item")))

    changed(asked, change)
    return asked.redirect("/banks", done="removed")


def _page(
    asked: Asked,
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


def _new_bank(asked: Asked) -> Bank:
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


def _created(banks: Banks, entry: Bank) -> tuple[Sequence[Entry], tuple[None, Record | None]]:
    if entry.bank in banks.banks:
        message = N_("There is a bank of this name already, and nothing was changed. Choose another name.")
        raise PageError(HTTPStatus.CONFLICT, message)
    return [entry], (None, Record("bank.create", entry.bank, entry.action or ""))


def _switched(asked: Asked, *, enabled: bool) -> Response:
    made = stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, Record | None]]:
        before = the_bank(asked, banks)
        after = entry_after(before, made | {"enabled": enabled})
        return _entries(before, after, Record("bank.enable" if enabled else "bank.disable", before.bank))

    changed(asked, change)
    return asked.redirect(f"/banks/{asked.places['bank']}", done="enabled" if enabled else "disabled")


def _entries(before: Bank, after: Bank, record: Record) -> tuple[Sequence[Entry], tuple[None, Record | None]]:
    """Return the change from one entry to another, None where they say the same."""
    return ([], (None, None)) if unless_same(before, after) is before else ([after], (None, record))
