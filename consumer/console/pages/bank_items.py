"""The pages of a bank and of an item, and the actions on items: add, change, enable, disable, confirm, remove."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from consumer.banks.bank import (
    ALLOW_SIMILARITY,
    ITEM_CHARS_MAX,
    SIMILARITY_MIN,
    TITLE_CHARS_MAX,
    BankItem,
    Banks,
    Entry,
)
from consumer.banks.changes import keep_if_same, stays_confirmed
from consumer.banks.exchange import item_id
from consumer.console.faults import N_, PageError
from consumer.console.item_search import item_page
from consumer.console.pages.bank_forms import (
    ITEM_FORM_BYTES_MAX,
    BankAuditEntry,
    apply_bank_change,
    banks_of,
    check_may_change_items,
    check_seen,
    checked_text,
    entry_after,
    entry_of,
    item_path,
    labels_in,
    may_change_items,
    moment_ms,
    note_in,
    refusal_text,
    requested_bank,
    requested_item,
    similarity_in,
    stamp,
    title_in,
    until_in,
    values_in,
)
from consumer.console.pages.item_flags import flags_naming
from consumer.console.visit import SignedInVisit

_PIECE_CHARS_MAX: Final = 200
_ADDED_FIELDS: Final = ("text", "title", "labels", "note", "until", "similarity")
_CHANGED_FIELDS: Final = ("title", "labels", "note", "until", "similarity")
LIMITS: Final = {
    "text": ITEM_CHARS_MAX,
    "title": TITLE_CHARS_MAX,
    "similarity_min": SIMILARITY_MIN,
    "allow_similarity_min": ALLOW_SIMILARITY,
}
_NOTICES: Final = {
    "created": N_("Bank created. Add its first text below, or on the page of a flag."),
    "changed": N_("Change saved."),
    "enabled": N_("Enabled. Consumers follow within two seconds."),
    "disabled": N_("Disabled. Consumers follow within two seconds."),
    "added": N_("Text added. Consumers find it within two seconds."),
    "confirmed": N_("Item confirmed: it may match any share of the feed."),
    "unconfirmed": N_("The item is no longer confirmed."),
    "known": N_("The bank already has this text. Nothing was changed."),
    "removed": N_("Item removed. Verdicts that name it do not change."),
}


class ItemRow(NamedTuple):
    """An item, the time of its last change (None if unknown), and whether it has ended."""

    item: BankItem
    changed_ms: int | None
    has_ended: bool


class Addition(NamedTuple):
    """The item that was added, or if ``is_new`` is False, the item that already had the text."""

    item: BankItem
    is_new: bool


def show_bank(visit: SignedInVisit) -> Response:
    """Show a bank and a page of its items."""
    return _bank_page(visit)


def show_item(visit: SignedInVisit) -> Response:
    """Show an item."""
    return _item_page(visit)


def add_item(visit: SignedInVisit) -> Response:
    """Add a pasted text. A refused form is shown again."""
    try:
        form = visit.form
        values = {
            "text": checked_text(form.text("text", ITEM_FORM_BYTES_MAX)),
            "title": title_in(form),
            "labels": labels_in(form),
            "note": note_in(form),
            "until": until_in(form),
        }
        addition = add_to_bank(visit, visit.path_parameters["bank"], values)
    except PageError as error:
        return _bank_page(visit, refusal=error, given=values_in(visit.form, _ADDED_FIELDS))
    return visit.redirect(item_path(*addition.item.key), done="added" if addition.is_new else "known")


def add_to_bank(
    visit: SignedInVisit,
    name: str,
    values: Mapping[str, object],
    flag_id: int | None = None,
    *,
    must_allow: bool = False,
) -> Addition:
    """Add an item to a bank, unless the bank has its text. The similarity comes from the visit's form.

    ``flag_id`` is for the audit log. ``must_allow``: refuse deny banks. Raises ``PageError`` and ``BankError``.
    """
    author = stamp(visit)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[Addition, BankAuditEntry | None]]:
        bank = banks.banks.get(name)
        if bank is None:
            raise PageError(HTTPStatus.NOT_FOUND, N_("There is no such bank. Nothing was added."))
        check_may_change_items(visit, bank)
        if must_allow and bank.action != "allow":
            raise PageError(HTTPStatus.CONFLICT, N_("This is a deny bank. Nothing was added. Choose an allow bank."))
        similarity = similarity_in(visit.form, allows=bank.action == "allow")
        own = {"bank": name, "item": item_id(str(values["text"])), "similarity": similarity}
        item = entry_of({**values, **own, **author}, BankItem)
        for before in banks.items.values():
            # The same text may have another id.
            if before.bank == name and (before.item == item.item or before.text == item.text):
                return [], (Addition(before, is_new=False), None)
        return [item], (
            Addition(item, is_new=True),
            BankAuditEntry("item.add", subject(item), item.article or "", flag_id),
        )

    return apply_bank_change(visit, change)


def change_item(visit: SignedInVisit) -> Response:
    """Change title, labels, note, end and similarity of an item. A refused form is shown again."""
    form, author = visit.form, stamp(visit)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        bank, before = requested_bank(visit, banks), requested_item(visit, banks)
        check_may_change_items(visit, bank)
        check_seen(form, before)
        values: dict[str, object] = {
            "title": title_in(form),
            "labels": labels_in(form),
            "note": note_in(form),
            "until": until_in(form, before.until),
            "similarity": similarity_in(form, allows=bank.action == "allow"),
        }
        values["confirmed"] = stays_confirmed(before, entry_after(before, values), bank)
        return _changed_entry(before, values | author, "item.change")

    try:
        apply_bank_change(visit, change)
    except PageError as error:
        return _item_page(visit, refusal=error, given=values_in(form, _CHANGED_FIELDS))
    return visit.redirect(item_path(visit.path_parameters["bank"], visit.path_parameters["item"]), done="changed")


def enable_item(visit: SignedInVisit) -> Response:
    """Enable an item."""
    return _switch(visit, enabled=True)


def disable_item(visit: SignedInVisit) -> Response:
    """Disable an item, so that it matches nothing."""
    return _switch(visit, enabled=False)


def confirm_item(visit: SignedInVisit) -> Response:
    """Confirm that an item may match any share of the feed."""
    return _set_confirmed(visit, confirmed=True)


def unconfirm_item(visit: SignedInVisit) -> Response:
    """Withdraw the confirmation of an item."""
    return _set_confirmed(visit, confirmed=False)


def remove_item(visit: SignedInVisit) -> Response:
    """Remove an item."""
    author = stamp(visit)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        check_may_change_items(visit, requested_bank(visit, banks))
        item = requested_item(visit, banks)
        check_seen(visit.form, item)
        removal = entry_of({"bank": item.bank, "item": item.item, "removed": True} | author, BankItem)
        return [removal], (None, BankAuditEntry("item.remove", subject(item), item.title))

    apply_bank_change(visit, change)
    return visit.redirect(f"/banks/{visit.path_parameters['bank']}", done="removed")


def subject(item: BankItem) -> str:
    """Return the name of an item in the audit log."""
    return f"{item.bank}/{item.item}"


def _switch(visit: SignedInVisit, *, enabled: bool) -> Response:
    author = stamp(visit)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        check_may_change_items(visit, requested_bank(visit, banks))
        action = "item.enable" if enabled else "item.disable"
        return _changed_entry(requested_item(visit, banks), author | {"enabled": enabled}, action)

    apply_bank_change(visit, change)
    path = item_path(visit.path_parameters["bank"], visit.path_parameters["item"])
    return visit.redirect(path, done="enabled" if enabled else "disabled")


def _set_confirmed(visit: SignedInVisit, *, confirmed: bool) -> Response:
    author = stamp(visit)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        item = requested_item(visit, banks)
        check_seen(visit.form, item)
        return _changed_entry(
            item, author | {"confirmed": confirmed}, "item.confirm" if confirmed else "item.unconfirm"
        )

    apply_bank_change(visit, change)
    path = item_path(visit.path_parameters["bank"], visit.path_parameters["item"])
    return visit.redirect(path, done="confirmed" if confirmed else "unconfirmed")


def _changed_entry(
    before: BankItem, values: Mapping[str, object], action: str
) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
    """Return the entry that changes an item, and its audit entry; neither if nothing changes."""
    after = entry_after(before, values)
    if keep_if_same(before, after) is before:
        return [], (None, None)
    return [after], (None, BankAuditEntry(action, subject(before)))


def _bank_page(
    visit: SignedInVisit, *, refusal: PageError | None = None, given: Mapping[str, str] | None = None
) -> Response:
    banks, now_ms = banks_of(visit).read(), visit.context.now_ms()
    bank = requested_bank(visit, banks)
    piece, after = visit.query.text("piece", _PIECE_CHARS_MAX), visit.query.text("after", _PIECE_CHARS_MAX)
    found = item_page(banks, bank.bank, piece, after, visit.context.section.page_rows)
    here, kept = f"/banks/{bank.bank}", {"piece": piece} if piece else {}
    first = f"{here}?{urlencode(kept)}" if kept else here
    return visit.page(
        "bank.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        bank=bank,
        changed_ms=moment_ms(bank.at),
        count=banks.item_counts()[bank.bank],
        rows=[_row(item, now_ms) for item in found.items],
        is_partial=found.is_partial,
        piece=piece,
        further="" if found.after is None else f"{here}?{urlencode({**kept, 'after': found.after})}",
        first=first if after else "",
        may_change=may_change_items(visit.person, bank),
        given=given or dict.fromkeys(_ADDED_FIELDS, ""),
        limits=LIMITS,
        **_messages(visit, refusal),
    )


def _item_page(
    visit: SignedInVisit, *, refusal: PageError | None = None, given: Mapping[str, str] | None = None
) -> Response:
    banks = banks_of(visit).read()
    bank, item = requested_bank(visit, banks), requested_item(visit, banks)
    values = {
        "title": item.title,
        "labels": " ".join(item.labels),
        "note": item.note,
        "until": item.until or "",
        "similarity": "" if item.similarity is None else f"{item.similarity:g}",
    }
    return visit.page(
        "item.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        bank=bank,
        row=_row(item, visit.context.now_ms()),
        until_ms=item.ends_ms,
        may_change=may_change_items(visit.person, bank),
        given=given or values,
        limits=LIMITS,
        naming=flags_naming(visit, item),
        **_messages(visit, refusal),
    )


def _messages(visit: SignedInVisit, refusal: PageError | None) -> dict[str, str]:
    done = _NOTICES.get(visit.query.text("done"), "")
    notice = visit.language.gettext(done) if done and refusal is None else ""
    return {"notice": notice, "conflict": refusal_text(visit, refusal)}


def _row(item: BankItem, now_ms: int) -> ItemRow:
    return ItemRow(item, moment_ms(item.at), item.ends_ms is not None and item.ends_ms <= now_ms)
