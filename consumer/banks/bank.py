"""Banks, their items, and the entries that change them.

A bank is a named list of known texts. An entry states the new content of a bank or an item, or removes it. So entries
form a log: the last entry about a bank or an item counts, and earlier ones may be dropped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Final, Literal, Self

import msgspec

from consumer.banks.faults import plain_msgspec_message
from consumer.model.errors import ConfigError
from consumer.model.verdict import REASON_CHARS_MAX, RELEASED_BY_CHARS_MAX, Timestamp
from consumer.text.counts import counted
from consumer.text.json_faults import json_fault
from consumer.text.timestamps import parse_moment, since_1970_ms

Action = Literal["deny", "allow"]

ITEM_CHARS_MAX: Final = 100_000
ITEM_LETTERS_MIN: Final = 6
"""Minimum number of letters and digits in a text. A shorter text would equal too many articles."""
_FIRST_CHARS: Final = 16
TITLE_CHARS_MAX: Final = 4_096
LABELS_MAX: Final = 20
BANKS_MAX: Final = 1_000
ENTRY_BYTES_MAX: Final = 1_048_576
"""Enough for the longest text and title even if JSON takes six bytes for each character."""
DENY_SIMILARITY: Final = 0.7
"""The default minimum similarity of an article and an item of a ``deny`` bank."""
ALLOW_SIMILARITY: Final = 0.9
"""The default of ``allow`` banks, whose similarity cannot be set lower."""
SIMILARITY_MIN: Final = 0.5

BANK_NAME: Final = r"[a-z0-9][a-z0-9._-]{0,63}"
ITEM_ID: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}"
"""The patterns of a whole bank name and of a whole item id. Every bank name is also a valid item id."""
LABEL_CHARS_MAX: Final = 64

BankName = Annotated[str, msgspec.Meta(pattern=rf"^{BANK_NAME}\Z")]
ItemId = Annotated[str, msgspec.Meta(pattern=rf"^{ITEM_ID}\Z")]
_Similarity = Annotated[float, msgspec.Meta(ge=SIMILARITY_MIN, le=1.0)]
_Label = Annotated[str, msgspec.Meta(pattern=rf"^\S{{1,{LABEL_CHARS_MAX}}}\Z")]
_Note = Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)]
_Person = Annotated[str, msgspec.Meta(max_length=RELEASED_BY_CHARS_MAX)]

_TIME: Final = "must be a time in UTC with milliseconds, such as 2026-11-21T09:00:00.000Z"
_RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bank": "the name of a bank must have at most 64 characters: a to z, 0 to 9, '.', '_' and '-', beginning with "
        "a letter or digit",
        "item": "the id of an item must have at most 64 characters: a to z, A to Z, 0 to 9, '.', '_', ':' and '-', "
        "beginning with a letter or digit",
        "labels": f"there must be at most {LABELS_MAX} labels of 1 to {LABEL_CHARS_MAX} characters, without spaces",
        "note": f"the note must have at most {REASON_CHARS_MAX:,} characters",
        "title": f"the title must have at most {TITLE_CHARS_MAX:,} characters",
        "text": f"the text must have at most {ITEM_CHARS_MAX:,} characters",
        "similarity": f"the similarity must be from {SIMILARITY_MIN} to 1",
        "until": f"until {_TIME}",
        "at": f"at {_TIME}",
    }
)
"""Messages for members whose values are not allowed."""
_FREE_TEXTS: Final = frozenset({"text", "title", "lang", "note", "article"})
"""Members whose pattern, in requests, only excludes NUL."""
_LIMIT: Final = re.compile(
    r"Expected `\w+` (?:(?P<pattern>matching regex)|of length|>=|<=) .* - at `\$"
    r"\.(?:(?P<place>items\[\d+\])\.)?(?P<member>\w+)"
)

ItemKey = tuple[str, str]
"""The name of a bank and the id of an item in it."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The members that all entries have: the bank, author and time of the change, and whether it is a removal."""

    bank: BankName
    by: _Person = ""
    at: Timestamp | None = None
    removed: bool = False


class Bank(_Entry, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A named list of known texts.

    With the action ``deny``, articles that repeat an item are reported; with ``allow``, they are never flagged.
    ``similarity`` applies to items without their own; None means the default of the action.
    """

    action: Action | None = None
    labels: Annotated[tuple[_Label, ...], msgspec.Meta(max_length=LABELS_MAX)] = ()
    note: _Note = ""
    similarity: _Similarity | None = None
    enabled: bool = True

    @property
    def item_similarity(self) -> float:
        """The similarity for items without a similarity of their own."""
        return self.similarity or (ALLOW_SIMILARITY if self.action == "allow" else DENY_SIMILARITY)


class BankItem(_Entry, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A known text.

    It is active while it and its bank are enabled, and before the time ``until``, if that is set. ``article`` is the id
    of the article from which the text was copied. ``confirmed``: an admin has confirmed that the item may match any
    share of the feed.
    """

    item: ItemId
    text: Annotated[str, msgspec.Meta(max_length=ITEM_CHARS_MAX)] = ""
    title: Annotated[str, msgspec.Meta(max_length=TITLE_CHARS_MAX)] = ""
    lang: Annotated[str, msgspec.Meta(max_length=64)] = ""
    labels: Annotated[tuple[_Label, ...], msgspec.Meta(max_length=LABELS_MAX)] = ()
    note: _Note = ""
    article: str | None = None
    until: Timestamp | None = None
    similarity: _Similarity | None = None
    enabled: bool = True
    confirmed: bool = False

    @property
    def key(self) -> ItemKey:
        """The name of the bank and the id of the item."""
        return self.bank, self.item

    @property
    def ends_ms(self) -> int | None:
        """The time at which the item ends, in milliseconds since 1970, or None if it never ends.

        Raises ``ValueError`` if ``until`` is not a time. ``check_entry`` refuses such items, unless they are removals.
        """
        return None if self.until is None else since_1970_ms(parse_moment(self.until))


Entry = Bank | BankItem


class _EntryTarget(msgspec.Struct, frozen=True):
    """The member that distinguishes entries of items from entries of banks."""

    item: object = None


class BankError(ConfigError):
    """An invalid entry or change, or a fault of the storage of the banks. The message tells a person why."""


class BanksMissing(BankError):  # noqa: N818  # named for the state
    """The storage of the banks has not been created yet. The first change creates it."""


class BanksUnreachable(BankError):  # noqa: N818  # named for the state
    """The storage of the banks does not answer. The same call may be repeated later."""


class ChangeUnknown(BanksUnreachable):
    """A change may have been made, entirely or in part. The same change may be repeated."""


def decode_entry(data: bytes) -> Entry:
    """Return the entry that is encoded as JSON.

    Raises ``BankError`` if the JSON is too long or the entry is invalid.
    """
    if len(data) > ENTRY_BYTES_MAX:
        raise BankError(f"it has {len(data):,} bytes, and an entry must have at most {ENTRY_BYTES_MAX:,}")
    try:
        is_item = msgspec.json.decode(data, type=_EntryTarget).item is not None
        entry: Entry = msgspec.json.decode(data, type=BankItem) if is_item else msgspec.json.decode(data, type=Bank)
    except msgspec.DecodeError as error:
        raise BankError(explained(error)) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise BankError(json_fault(error)) from None
    _check_meaning(entry)
    return entry


def explained(error: msgspec.DecodeError) -> str:
    """Return a readable message about an invalid entry or request. It states limits in words, not as patterns."""
    limit = _LIMIT.match(str(error))
    if limit is None:
        return plain_msgspec_message(error)
    member, place = limit["member"], f"{limit['place']}: " if limit["place"] else ""
    if limit["pattern"] and member in _FREE_TEXTS:
        return f"{place}{member} has a NUL character"
    return f"{place}{_RULES[member]}" if member in _RULES else plain_msgspec_message(error)


def encode_entry(entry: Entry) -> bytes:
    """Return an entry as JSON, without a newline."""
    return msgspec.json.encode(entry)


def check_entry(entry: Entry) -> None:
    """Raise ``BankError`` for invalid Unicode, for a bank without an action, or for an ``allow`` bank's low similarity.

    An item must also have a valid ``until`` and enough letters. Patterns, lengths and ranges of the members are not
    checked. Of a removal, only the Unicode is checked.
    """
    try:
        encode_entry(entry)
    except UnicodeEncodeError as error:
        raise BankError(f"it has a character that is not valid Unicode: {error.object[error.start]!a}") from None
    _check_meaning(entry)


def _check_meaning(entry: Entry) -> None:
    """Make all checks of ``check_entry`` except that of Unicode. Raises ``BankError``."""
    if entry.removed:
        return
    if isinstance(entry, Bank):
        if entry.action is None:
            raise BankError(
                f'bank {entry.bank!r} has no action; set it to "deny", which reports articles that repeat an item, or '
                'to "allow", which never flags them'
            )
        if entry.action == "allow" and (entry.similarity or 1.0) < ALLOW_SIMILARITY:
            raise BankError(
                f"bank {entry.bank!r} has the action allow, so its similarity must be at least {ALLOW_SIMILARITY}"
            )
        return
    _check_until(entry)
    # Nearly all texts begin with enough letters, so the whole text is rarely counted.
    if letters_in(entry.text[:_FIRST_CHARS]) >= ITEM_LETTERS_MIN:
        return
    letters = letters_in(entry.text)
    if letters < ITEM_LETTERS_MIN:
        has = counted(letters, "letter or digit", "letters and digits")
        raise BankError(
            f"item {entry.item!r} has {has}, and needs at least {ITEM_LETTERS_MIN}: a shorter text would equal too "
            "many articles"
        )


def letters_in(text: str) -> int:
    """Return the number of letters and digits."""
    return sum(map(str.isalnum, text))


def _check_until(entry: BankItem) -> None:
    try:
        _ = entry.ends_ms
    except ValueError as error:
        raise BankError(f"item {entry.item!r}: until: {error}") from None


@dataclass(frozen=True, slots=True)
class Banks:
    """All banks and items at one moment, by name. The bank of every item is among them."""

    banks: Mapping[str, Bank]
    items: Mapping[ItemKey, BankItem]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """Return the banks that result from the entries of a log. Raises ``BankError`` as ``after`` does."""
        return cls(MappingProxyType({}), MappingProxyType({})).after(entries)

    def after(self, entries: Iterable[Entry]) -> Self:
        """Return the banks after these changes. Raises ``BankError`` if a change contradicts the banks before it.

        Removing a bank also removes its items.
        """
        banks, items = dict(self.banks), dict(self.items)
        for entry in entries:
            if isinstance(entry, BankItem):
                if entry.removed:
                    items.pop(entry.key, None)
                else:
                    check_item(entry, banks)
                    items[entry.key] = entry
            elif entry.removed:
                banks.pop(entry.bank, None)
                for key in [key for key in items if key[0] == entry.bank]:
                    del items[key]
            else:
                check_bank(entry, banks)
                banks[entry.bank] = entry
        return type(self)(MappingProxyType(banks), MappingProxyType(items))

    def entries(self) -> Iterable[Entry]:
        """Return the shortest log that results in these banks."""
        return (*self.banks.values(), *self.items.values())

    def only(self, bank: str | None = None, item: str | None = None) -> Self:
        """Return only the bank with this name, and of the items only those with this id. None stands for all.

        The result is empty if there is no bank with this name.
        """
        banks = {name: each for name, each in self.banks.items() if bank in {None, name}}
        items = {key: each for key, each in self.items.items() if key[0] in banks and item in {None, key[1]}}
        return type(self)(MappingProxyType(banks), MappingProxyType(items))

    def items_at(self, time_ms: int) -> list[BankItem]:
        """Return the items that are active at this time: enabled, in an enabled bank, and not ended."""
        return [
            item
            for item in self.items.values()
            if item.enabled and self.banks[item.bank].enabled and (item.ends_ms is None or item.ends_ms > time_ms)
        ]

    def item_counts(self) -> Counter[str]:
        """Return the number of items in each bank."""
        return Counter(bank for bank, _ in self.items)


def check_bank(entry: Bank, banks: Mapping[str, Bank]) -> None:
    """Raise ``BankError`` if a new bank would exceed ``BANKS_MAX``, or if the entry would change a bank's action."""
    before = banks.get(entry.bank)
    if before is None and len(banks) >= BANKS_MAX:
        raise BankError(f"there are already {BANKS_MAX:,} banks; use labels of items to tell texts apart")
    if before is not None and before.action != entry.action:
        raise BankError(
            f"bank {entry.bank!r} has the action {before.action!r}, which cannot be changed; create another bank, or "
            "first remove this one with its items"
        )


def check_item(entry: BankItem, banks: Mapping[str, Bank]) -> None:
    """Raise ``BankError`` if the item's bank does not exist, or if its similarity is too low for an ``allow`` bank."""
    bank = banks.get(entry.bank)
    if bank is None:
        raise BankError(
            f"there is no bank {entry.bank!r}; create it first: dupwatch bank create {entry.bank} "
            "--action deny (or allow)"
        )
    if bank.action == "allow" and (entry.similarity or 1.0) < ALLOW_SIMILARITY:
        raise BankError(
            f"item {entry.item!r} is in bank {bank.bank!r}, which has the action allow, so its similarity must be at "
            f"least {ALLOW_SIMILARITY}"
        )
