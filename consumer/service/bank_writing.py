"""Changes banks on request, by entries in the bank log, and records every change in the audit log.

Every change may be repeated: an entry that changes nothing is not written, but the audit log gets a line every time.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request

from consumer.banks.bank import Bank, BankError, BankItem, Banks, Entry, explained
from consumer.banks.changes import items_need_admin, keep_if_same, new_entry, replacement, state_of, stays_confirmed
from consumer.banks.current_banks import BankChange
from consumer.banks.exchange import item_id
from consumer.decode.json_value import check_values
from consumer.model.errors import BadRecord, ConfigError
from consumer.model.limits import DecodeLimits
from consumer.service.access import check_roles
from consumer.service.bank_messages import ITEMS_MAX, AddedItems, BankSettings, ItemPatch, NewItem, NewItems, Removal
from consumer.service.bank_reading import bank_summary, item_summary, known_bank, known_item
from consumer.service.context import LoadedService, ServiceContext
from consumer.service.problems import INVALID_REQUEST, OTHER_ACTION, UNKNOWN_ARTICLE, unreadable_body
from consumer.service.service_banks import ServiceBanks
from consumer.service.writing import Action, ChangeOutcome, owner_of, record
from consumer.store_tools.inspection import stored_article
from consumer.text.timestamps import rfc3339
from consumer.web.audit_log import AuditLog
from consumer.web.problems import Limit, ProblemError
from consumer.web.token import Role
from storage.clock import now_ms

LIMITS: Final = DecodeLimits(values_max=100_000)
"""Limits on a body. The largest allowed body, 1,000 items with 20 labels each, has about a third of ``values_max``."""
_STORE: Final = "the store"
"""The name of the store in messages to clients, which must not reveal its URL."""
_SETTINGS_DECODER: Final = msgspec.json.Decoder(BankSettings)
_ITEMS_DECODER: Final = msgspec.json.Decoder(NewItems)
_PATCH_DECODER: Final = msgspec.json.Decoder(ItemPatch)

_Body = TypeVar("_Body")
_Kind = TypeVar("_Kind", Bank, BankItem)
Stamp = dict[str, object]
"""The author and the time of a change, as members of an entry."""


class BankWrites:
    """Changes of banks, and the answers to them. Used by one event loop."""

    def __init__(self, context: ServiceContext, banks: ServiceBanks, audit_log: AuditLog | None) -> None:
        self._context = context
        self._banks = banks
        self._audit_log = audit_log

    async def put(self, request: Request, name: str, body: bytes) -> bytes:
        """Create or change a bank, and return it. Raises ``ProblemError``."""
        stamp = _stamp(request)

        def prepare() -> BankChange[tuple[Bank, int]]:
            settings = msgspec.structs.asdict(_decode(_SETTINGS_DECODER, body))
            entry = _entry(settings | stamp | {"bank": name}, Bank)
            return lambda banks: _put_bank(banks, entry)

        bank, items = await self._banks.change(request, prepare)
        await self._record(request, "banks.create", [(name, state_of(bank))])
        return msgspec.json.encode(bank_summary(bank, items))

    async def remove(self, request: Request, name: str) -> bytes:
        """Remove a bank with its items, and return what was removed. Raises ``ProblemError``."""
        stamp = _stamp(request)

        def prepare() -> BankChange[Removal]:
            entry = _entry({"bank": name, "removed": True} | stamp, Bank)
            return lambda banks: _remove_bank(banks, entry)

        return await self._remove(request, name, prepare)

    async def add(self, request: Request, name: str, body: bytes) -> bytes:
        """Add items to a bank, all or none, and return them. Raises ``ProblemError``."""
        self._banks.check_configured()
        stamp = _stamp(request)
        items = await self._context.ask(request, lambda service: _new_items(service, name, body, stamp))

        def add_items(banks: Banks) -> tuple[Sequence[Entry], list[BankItem]]:
            _check_role(request, known_bank(banks, name))
            current = [keep_if_same(banks.items.get(item.key), replacement(banks, item)) for item in items]
            return [item for item in current if banks.items.get(item.key) is not item], current

        current = await self._banks.change(request, lambda: add_items)
        await self._record(request, "banks.add", [(f"{name}/{item.item}", state_of(item)) for item in current])
        return msgspec.json.encode(AddedItems(tuple(map(item_summary, current))))

    async def patch(self, request: Request, name: str, item: str, body: bytes) -> bytes:
        """Change an item, and return it without its text, which only readers may see. Raises ``ProblemError``."""
        stamp = _stamp(request)

        def prepare() -> BankChange[BankItem]:
            patch = _decode(_PATCH_DECODER, body)

            def patch_item(banks: Banks) -> tuple[Sequence[Entry], BankItem]:
                bank = known_bank(banks, name)
                _check_patch(request, bank, patch)
                before = known_item(banks, name, item)
                after = keep_if_same(before, _apply_patch(before, patch, stamp, bank))
                return [] if after is before else [after], after

            return patch_item

        after = await self._banks.change(request, prepare)
        await self._record(request, "banks.change", [(f"{name}/{item}", state_of(after))])
        return msgspec.json.encode(item_summary(after))

    async def remove_item(self, request: Request, name: str, item: str) -> bytes:
        """Remove an item of a bank, and return what was removed. Raises ``ProblemError``."""
        stamp = _stamp(request)

        def prepare() -> BankChange[Removal]:
            entry = _entry({"bank": name, "item": item, "removed": True} | stamp, BankItem)

            def remove_entry(banks: Banks) -> tuple[Sequence[Entry], Removal]:
                _check_role(request, known_bank(banks, name))
                existed = entry.key in banks.items
                return [entry] if existed else [], Removal(name, item, existed, int(existed))

            return remove_entry

        return await self._remove(request, f"{name}/{item}", prepare)

    async def _remove(self, request: Request, target: str, prepare: Callable[[], BankChange[Removal]]) -> bytes:
        removal = await self._banks.change(request, prepare)
        await self._record(request, "banks.remove", [(target, "removed" if removal.existed else "absent")])
        return msgspec.json.encode(removal)

    async def _record(self, request: Request, action: Action, changes: Sequence[tuple[str, str]]) -> None:
        await record(self._audit_log, request, [ChangeOutcome(action, target, state) for target, state in changes])


def _stamp(request: Request) -> Stamp:
    """Return the author of a request's change, and the time."""
    return {"by": owner_of(request.state.caller), "at": rfc3339(now_ms())}


def _check_role(request: Request, bank: Bank) -> None:
    """Raise ``ProblemError`` if the caller may not change the items of a bank."""
    check_roles(request, [Role.ADMIN if items_need_admin(bank) else Role.REVIEWER])


def _check_patch(request: Request, bank: Bank, patch: ItemPatch) -> None:
    """Raise ``ProblemError`` if the caller may not make these changes. In every bank, only admins may confirm items."""
    if patch.confirmed is not msgspec.UNSET:
        check_roles(request, [Role.ADMIN])
        if patch == ItemPatch(confirmed=patch.confirmed):
            return
    _check_role(request, bank)


def _decode(decoder: "msgspec.json.Decoder[_Body]", body: bytes) -> _Body:
    """Decode a body. Raises ``ProblemError``."""
    try:
        check_values(body, LIMITS.values_max)
        return decoder.decode(body.removeprefix(BOM_UTF8))
    except BadRecord as error:
        raise unreadable_body(error, LIMITS) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = explained(error) if isinstance(error, msgspec.ValidationError) else str(error)
        raise ProblemError(INVALID_REQUEST, f"The body cannot be read: {why}.") from error


def _entry(values: Mapping[str, object], kind: type[_Kind], place: str = "") -> _Kind:
    """Return an entry with these members. Raises ``ProblemError``, whose message begins with ``place``."""
    try:
        return new_entry(values, kind)
    except BankError as error:
        raise ProblemError(INVALID_REQUEST, f"{place}{error}.") from error


def _new_items(service: LoadedService, name: str, body: bytes, stamp: Stamp) -> list[BankItem]:
    """Return the items that a body adds to a bank, without repetitions.

    Raises ``ProblemError`` and the store's errors.
    """
    requested = _decode(_ITEMS_DECODER, body).items
    if len(requested) > ITEMS_MAX:
        raise ProblemError(
            INVALID_REQUEST,
            f"The request has {len(requested)} items. Send at most {ITEMS_MAX} at a time.",
            limit=Limit("items_max", ITEMS_MAX),
        )
    items: dict[str, BankItem] = {}
    for place, each in enumerate(requested):
        item = _new_item(service, name, each, stamp, f"items[{place}]: ")
        if items.setdefault(item.item, item) != item:
            raise ProblemError(
                INVALID_REQUEST,
                f"items[{place}]: another item of the request has the id {item.item!r}. Send each id once.",
            )
    return list(items.values())


def _new_item(service: LoadedService, name: str, requested: NewItem, stamp: Stamp, place: str) -> BankItem:
    if (requested.text is None) == (requested.article is None):
        raise ProblemError(INVALID_REQUEST, f"{place}give either text, or article, the id of a stored article.")
    text, title, lang = requested.text, "", ""
    if requested.article is not None:
        text, title, lang = _stored_text(service, requested.article, place)
    assert text is not None  # noqa: S101  # one of the two is given
    values: dict[str, object] = {
        "bank": name,
        "item": item_id(text) if requested.item is None else requested.item,
        "text": text,
        "title": title if requested.title is None else requested.title,
        "lang": lang if requested.lang is None else requested.lang,
        "labels": requested.labels,
        "note": requested.note,
        "article": requested.article,
        "until": _timestamp(requested.until, place),
        "similarity": requested.similarity,
        "enabled": requested.enabled,
    }
    return _entry(values | stamp, BankItem, place)


def _stored_text(service: LoadedService, article_id: str, place: str) -> tuple[str, str, str]:
    """Return the text, the title and the language of a stored article."""
    try:
        record = stored_article(service.store, _STORE, article_id).stored.record
    except ConfigError as error:
        raise ProblemError(UNKNOWN_ARTICLE, f"{place}{error}.") from error
    (body,) = service.store.bodies([record.reference])
    if body is None:
        raise ProblemError(
            INVALID_REQUEST, f"{place}the store does not keep the text of {article_id!r}. Send the text itself."
        )
    return body, record.title, record.lang


def _apply_patch(before: BankItem, patch: ItemPatch, stamp: Stamp, bank: Bank) -> BankItem:
    values = msgspec.structs.asdict(before)
    values |= {name: value for name, value in msgspec.structs.asdict(patch).items() if value is not msgspec.UNSET}
    if isinstance(patch.until, datetime):
        values["until"] = _timestamp(patch.until, "")
    after = _entry(values | stamp, BankItem)
    if patch.confirmed is not msgspec.UNSET:
        return after
    return msgspec.structs.replace(after, confirmed=stays_confirmed(before, after, bank))


def _timestamp(moment: datetime | None, place: str) -> str | None:
    """Return a time in the form of bank entries. Raises ``ProblemError`` if it is out of range in UTC."""
    if moment is None:
        return None
    try:
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError as error:
        raise ProblemError(INVALID_REQUEST, f"{place}until is out of range. Give a time before 9999.") from error


def _put_bank(banks: Banks, entry: Bank) -> tuple[Sequence[Entry], tuple[Bank, int]]:
    before = banks.banks.get(entry.bank)
    if before is not None and before.action != entry.action:
        raise ProblemError(
            OTHER_ACTION,
            f"The bank {entry.bank!r} has the action {before.action!r}, which never changes. Create another bank, or "
            "remove this one with its items first.",
        )
    bank = keep_if_same(before, entry)
    return [] if bank is before else [bank], (bank, banks.item_counts()[entry.bank])


def _remove_bank(banks: Banks, entry: Bank) -> tuple[Sequence[Entry], Removal]:
    existed = entry.bank in banks.banks
    return [entry] if existed else [], Removal(entry.bank, None, existed, banks.item_counts()[entry.bank])
