"""The pages of one bank and of one item, and what people do with items: add, change, switch and remove them."""

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
from consumer.banks.changes import stays_confirmed, unless_same
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
    given_in,
    item_path,
    labels_in,
    may_change_items,
    moment_ms,
    note_in,
    said_of,
    similarity_in,
    stamp,
    the_bank,
    the_item,
    title_in,
    until_in,
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
_SAID: Final = {
    "created": N_("The bank is created. Add its first text below, or on the page of a flag."),
    "changed": N_("The change is saved."),
    "enabled": N_("It is enabled. Consumers follow within two seconds."),
    "disabled": N_("It is disabled. Consumers follow within two seconds."),
    "added": N_("The text is added. Consumers find it within two seconds."),
    "confirmed": N_("The item is confirmed: it may match any share of the feed."),
    "unconfirmed": N_("The item is no longer confirmed."),
    "known": N_("This text is in the bank already, and nothing was changed."),
    "removed": N_("The item is removed. Verdicts that name it stay as they are."),
}


class ItemRow(NamedTuple):
    """An item, when it was changed last, and whether it has ended."""

    item: BankItem
    changed_ms: int | None
    has_ended: bool


class Addition(NamedTuple):
    """An item that somebody wanted to add; ``is_new`` is false where the bank had this text before."""

    item: BankItem
    is_new: bool


def show_bank(asked: SignedInVisit) -> Response:
    """Show a bank and a page of its items."""
    return _bank_page(asked)


def show_item(asked: SignedInVisit) -> Response:
    """Show all of an item."""
    return _item_page(asked)


def add_item(asked: SignedInVisit) -> Response:
    """Add a text that somebody pasted. What is refused stands in the form again."""
    try:
        form = asked.form
        values = {
            "text": checked_text(form.text("text", ITEM_FORM_BYTES_MAX)),
            "title": title_in(form),
            "labels": labels_in(form),
            "note": note_in(form),
            "until": until_in(form),
        }
        addition = add_to_bank(asked, asked.places["bank"], values)
    except PageError as error:
        return _bank_page(asked, refusal=error, given=given_in(asked.form, _ADDED_FIELDS))
    return asked.redirect(item_path(*addition.item.key), done="added" if addition.is_new else "known")


def add_to_bank(
    asked: SignedInVisit,
    name: str,
    values: Mapping[str, object],
    flag_id: int | None = None,
    *,
    must_allow: bool = False,
) -> Addition:
    """Add an item to a bank, unless the bank has its text. The similarity is that of the form.

    ``must_allow``: only to a bank that allows. Raises ``PageError`` and ``BankError``.
    """
    made = stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[Addition, BankAuditEntry | None]]:
        bank = banks.banks.get(name)
        if bank is None:
            raise PageError(HTTPStatus.NOT_FOUND, N_("There is no such bank, and nothing was added."))
        check_may_change_items(asked, bank)
        if must_allow and bank.action != "allow":
            raise PageError(HTTPStatus.CONFLICT, N_("This bank denies, and nothing was added. Choose one that allows."))
        similarity = similarity_in(asked.form, allows=bank.action == "allow")
        own = {"bank": name, "item": item_id(str(values["text"])), "similarity": similarity}
        item = entry_of({**values, **own, **made}, BankItem)
        for before in banks.items.values():
            # Somebody may have given it another id.
            if before.bank == name and (before.item == item.item or before.text == item.text):
                return [], (Addition(before, is_new=False), None)
        return [item], (
            Addition(item, is_new=True),
            BankAuditEntry("item.add", subject(item), item.article or "", flag_id),
        )

    return apply_bank_change(asked, change)


def change_item(asked: SignedInVisit) -> Response:
    """Change title, labels, note, end and similarity of an item. What is refused stands in the form again."""
    form, made = asked.form, stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        bank, before = the_bank(asked, banks), the_item(asked, banks)
        check_may_change_items(asked, bank)
        check_seen(form, before)
        values: dict[str, object] = {
            "title": title_in(form),
            "labels": labels_in(form),
            "note": note_in(form),
            "until": until_in(form, before.until),
            "similarity": similarity_in(form, allows=bank.action == "allow"),
        }
        values["confirmed"] = stays_confirmed(before, entry_after(before, values), bank)
        return _entries(before, values | made, "item.change")

    try:
        apply_bank_change(asked, change)
    except PageError as error:
        return _item_page(asked, refusal=error, given=given_in(form, _CHANGED_FIELDS))
    return asked.redirect(item_path(asked.places["bank"], asked.places["item"]), done="changed")


def enable_item(asked: SignedInVisit) -> Response:
    """Switch an item on."""
    return _switched(asked, enabled=True)


def disable_item(asked: SignedInVisit) -> Response:
    """Switch an item off, so that it is not found."""
    return _switched(asked, enabled=False)


def confirm_item(asked: SignedInVisit) -> Response:
    """Say that an item may match any share of the feed."""
    return _confirmed(asked, confirmed=True)


def unconfirm_item(asked: SignedInVisit) -> Response:
    """Withdraw that."""
    return _confirmed(asked, confirmed=False)


def remove_item(asked: SignedInVisit) -> Response:
    """Remove an item."""
    made = stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        check_may_change_items(asked, the_bank(asked, banks))
        item = the_item(asked, banks)
        check_seen(asked.form, item)
        removal = entry_of({"bank": item.bank, "item": item.item, "removed": True} | made, BankItem)
        return [removal], (None, BankAuditEntry("item.remove", subject(item), item.title))

    apply_bank_change(asked, change)
    return asked.redirect(f"/banks/{asked.places['bank']}", done="removed")


def subject(item: BankItem) -> str:
    """Return how the audit log names an item."""
    return f"{item.bank}/{item.item}"


def _switched(asked: SignedInVisit, *, enabled: bool) -> Response:
    made = stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        check_may_change_items(asked, the_bank(asked, banks))
        action = "item.enable" if enabled else "item.disable"
        return _entries(the_item(asked, banks), made | {"enabled": enabled}, action)

    apply_bank_change(asked, change)
    path = item_path(asked.places["bank"], asked.places["item"])
    return asked.redirect(path, done="enabled" if enabled else "disabled")


def _confirmed(asked: SignedInVisit, *, confirmed: bool) -> Response:
    made = stamp(asked)

    def change(banks: Banks) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
        item = the_item(asked, banks)
        check_seen(asked.form, item)
        return _entries(item, made | {"confirmed": confirmed}, "item.confirm" if confirmed else "item.unconfirm")

    apply_bank_change(asked, change)
    path = item_path(asked.places["bank"], asked.places["item"])
    return asked.redirect(path, done="confirmed" if confirmed else "unconfirmed")


def _entries(
    before: BankItem, values: Mapping[str, object], action: str
) -> tuple[Sequence[Entry], tuple[None, BankAuditEntry | None]]:
    """Return the entry that changes an item, and its record; neither where it says nothing new."""
    after = entry_after(before, values)
    if unless_same(before, after) is before:
        return [], (None, None)
    return [after], (None, BankAuditEntry(action, subject(before)))


def _bank_page(
    asked: SignedInVisit, *, refusal: PageError | None = None, given: Mapping[str, str] | None = None
) -> Response:
    banks, now_ms = banks_of(asked).read(), asked.desk.now_ms()
    bank = the_bank(asked, banks)
    piece, after = asked.query.text("piece", _PIECE_CHARS_MAX), asked.query.text("after", _PIECE_CHARS_MAX)
    found = item_page(banks, bank.bank, piece, after, asked.desk.section.page_rows)
    here, kept = f"/banks/{bank.bank}", {"piece": piece} if piece else {}
    first = f"{here}?{urlencode(kept)}" if kept else here
    return asked.page(
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
        may_change=may_change_items(asked.person, bank),
        given=given or dict.fromkeys(_ADDED_FIELDS, ""),
        limits=LIMITS,
        **_messages(asked, refusal),
    )


def _item_page(
    asked: SignedInVisit, *, refusal: PageError | None = None, given: Mapping[str, str] | None = None
) -> Response:
    banks = banks_of(asked).read()
    bank, item = the_bank(asked, banks), the_item(asked, banks)
    values = {
        "title": item.title,
        "labels": " ".join(item.labels),
        "note": item.note,
        "until": item.until or "",
        "similarity": "" if item.similarity is None else f"{item.similarity:g}",
    }
    return asked.page(
        "item.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        bank=bank,
        row=_row(item, asked.desk.now_ms()),
        until_ms=item.ends_ms,
        may_change=may_change_items(asked.person, bank),
        given=given or values,
        limits=LIMITS,
        naming=flags_naming(asked, item),
        **_messages(asked, refusal),
    )


def _messages(asked: SignedInVisit, refusal: PageError | None) -> dict[str, str]:
    done = _SAID.get(asked.query.text("done"), "")
    said = asked.language.gettext(done) if done and refusal is None else ""
    return {"said": said, "conflict": said_of(asked, refusal)}


def _row(item: BankItem, now_ms: int) -> ItemRow:
    return ItemRow(item, moment_ms(item.at), item.ends_ms is not None and item.ends_ms <= now_ms)
