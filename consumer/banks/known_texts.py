"""The known texts of all banks, as a process that judges holds them: found quickly, and changed while it runs.

Texts themselves are not kept, only what they are compared by: about 600 bytes an item, and 350 more of those that are
found as parts. Items lie in two indexes. A change builds the small one again; when that has grown to a share of the
large one, both become one.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
import numpy as np

from consumer.banks.bank import Bank, BankError, BankItem, Banks, Entry, check_bank, check_item, letters_in
from consumer.banks.index import TextFeatures, shingle_rows
from consumer.banks.item_fingerprints import (
    CacheLoader,
    FingerprintSnapshot,
    ItemFingerprints,
    digests_of,
    entry_digest,
)
from consumer.banks.matching import BankRules, matches_by_article, ranked
from consumer.banks.segment import NO_ITEMS, ItemTable, Segment, joined_name
from consumer.fingerprint import Engine, KnownShingles
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import BANK_MATCHES_MAX
from storage.records import DENY, BankMatch, Version

log = logging.getLogger("dupwatch")

PART_LETTERS_MIN: Final = 60
"""Letters and digits of an item that is found as a part of a longer article, too."""
ITEMS_AT_ONCE: Final = 1_024
"""Items whose fingerprints are computed together."""
_SMALL_ITEMS_MIN: Final = 1_024
_SMALL_SHARE: Final = 8
"""The small index may have this many items, or one for so many of the large one."""
_LARGE: Final = 0
_SMALL: Final = 1
"""Places of the two segments."""


def _ignored(_occurrence: object) -> None:
    """Ignore an occurrence."""


class BanksLoaded(NamedTuple):
    """The banks were read: so many items count now, and so many new entries were left out because they are invalid."""

    items: int
    invalid: int = 0


class BankMatchesLimited(NamedTuple):
    """So many articles repeat more items than are kept, or are alike more than are compared."""

    articles: int


class BanksUnreadable(NamedTuple):
    """The banks could not be read, so they stay as they are; reported at every attempt."""

    why: str


class BankMatches(NamedTuple):
    """What each of m articles repeats, the most important match first.

    ``limited`` counts those that have more matches than are kept, or too many candidates to look at all of them.
    """

    matches: list[tuple[BankMatch, ...]]
    limited: int


class ActiveItem(NamedTuple):
    """An item that articles are compared with: the digest of its entry, and whether it is confirmed."""

    entry_digest: bytes
    is_confirmed: bool


@dataclass(frozen=True, slots=True, eq=False)
class _BankSnapshot:
    """All banks and items at one time.

    ``places`` says where items are, by name: their row, and in the lowest bit the segment. ``known`` are the shingles
    of the items that are found as parts. What is less similar than ``similarity_min`` is too little for any item.
    ``computed`` counts the items that were computed so far.
    """

    banks: Mapping[str, Bank]
    rules: BankRules
    segments: tuple[Segment, ...]
    places: Mapping[str, int]
    known: KnownShingles | None = None
    similarity_min: float = 0.0
    computed: int = 0


@dataclass(slots=True, eq=False)
class KnownTexts:
    """The banks of a process. One thread changes them; any number of others ask what articles repeat.

    ``engine`` computes what the store's records are compared by. ``clock`` gives the time in milliseconds, ``report``
    takes the occurrences of this module, from any thread. ``load_cache`` is called when the first items come, for
    fingerprints that need not be computed.
    """

    engine: Engine
    settings: JudgeSettings
    clock: Callable[[], int]
    report: Callable[[object], None] = _ignored
    load_cache: CacheLoader | None = None
    _snapshot: _BankSnapshot = field(init=False, repr=False)
    _bank_numbers: dict[str, int] = field(init=False, repr=False, default_factory=dict)
    """A number for each bank there ever was, by its name."""

    def __post_init__(self) -> None:
        """Begin without banks. Raises ``BankError`` for settings without sketches, with which nothing can be found."""
        if not self.settings.sketched:
            raise BankError(
                "banks need sketches: set judge.verify or judge.lane1; a store that was made without them has to be "
                "migrated"
            )
        nothing = self._segment(NO_ITEMS)
        self._snapshot = _BankSnapshot(
            MappingProxyType({}), BankRules.of({}, ()), (nothing, nothing), MappingProxyType({})
        )

    def __len__(self) -> int:
        """Return the number of items that count."""
        return len(self.names)

    @property
    def names(self) -> Mapping[str, object]:
        """The items that count, by the names of bank and item joined by "/"; another mapping after each change."""
        return self._snapshot.places

    @property
    def known_shingles(self) -> KnownShingles | None:
        """The shingles that articles have to be searched for; None for none."""
        return self._snapshot.known

    def held(self, bank: str, item: str, action: str) -> ActiveItem | None:
        """Return an item of a bank with this action if articles are compared with it now, otherwise None."""
        snapshot = self._snapshot
        of_bank, place = snapshot.banks.get(bank), snapshot.places.get(joined_name((bank, item)))
        if of_bank is None or place is None or of_bank.action != action or not of_bank.enabled:
            return None
        items, row = snapshot.segments[place & 1].items, place >> 1
        if items.ends_ms[row] <= self.clock():
            return None
        return ActiveItem(items.fingerprints.digests[row].tobytes(), bool(items.confirmed[row]))

    def fingerprints(self) -> FingerprintSnapshot:
        """Return the fingerprints of all items. Among them may be some of items that no longer count."""
        snapshot = self._snapshot
        parts = tuple(segment.items.fingerprints for segment in snapshot.segments)
        return FingerprintSnapshot(parts, snapshot.computed)

    def change(self, entries: Iterable[Entry]) -> None:
        """Make these changes, in their order. What is asked in the meantime is answered as before.

        Raises ``BankError`` for changes that contradict the banks, and then makes none of them.
        """
        banks = dict(self._snapshot.banks)
        items: dict[str, BankItem | None] = {}
        for entry in entries:
            if isinstance(entry, BankItem):
                if not entry.removed:
                    check_item(entry, banks)
                items[joined_name(entry.key)] = entry if entry.enabled and not entry.removed else None
            elif entry.removed:
                banks.pop(entry.bank, None)
                mine = f"{entry.bank}/"
                items |= dict.fromkeys(name for name in (*items, *self.names) if name.startswith(mine))
            else:
                check_bank(entry, banks)
                banks[entry.bank] = entry
        self._publish(banks, items)

    def replace(self, entries: Iterable[Entry]) -> None:
        """Hold what these entries leave, and nothing else. Items that did not change are not computed again."""
        banks = Banks.of(entries)
        named = {joined_name(key): item if item.enabled else None for key, item in banks.items.items()}
        gone: dict[str, BankItem | None] = dict.fromkeys(self.names.keys() - named.keys())
        changed = {
            name: item for name, item in named.items() if item is None or not self._is_held(name, item, banks.banks)
        }
        self._publish(banks.banks, gone | changed)

    def with_matches(self, versions: Sequence[Version]) -> list[Version]:
        """Return the versions with what they repeat in their records, which are about to be created."""
        found = self.matches(versions)
        if found.limited:
            self.report(BankMatchesLimited(found.limited))
        return [
            version._replace(record=msgspec.structs.replace(version.record, bank_matches=matches or None))
            if matches or version.record.bank_matches
            else version
            for version, matches in zip(versions, found.matches, strict=True)
        ]

    def matches(self, versions: Sequence[Version]) -> BankMatches:
        """Return what each version repeats now."""
        snapshot, now_ms = self._snapshot, self.clock()
        records = [version.record for version in versions]
        # A batch of retractions has no versions.
        if not records or not any(len(segment.index.texts) for segment in snapshot.segments):
            return BankMatches([()] * len(records), 0)
        articles, shingles = TextFeatures.of_records(records), [version.known_shingles for version in versions]
        limited: set[int] = set()
        # By article; most repeat nothing.
        found: defaultdict[int, list[BankMatch]] = defaultdict(list)
        for segment in snapshot.segments:
            alike = segment.likenesses(articles, shingles, snapshot.similarity_min)
            limited.update(alike.limited.tolist())
            met = snapshot.rules.met_by(alike, segment.items, now_ms)
            for article, matches in matches_by_article(met, segment.items, snapshot.rules, records, self.settings):
                found[article] += matches
        limited.update(article for article, matches in found.items() if len(matches) > BANK_MATCHES_MAX)
        return BankMatches(
            [ranked(found[article]) if article in found else () for article in range(len(records))], len(limited)
        )

    def _publish(self, banks: Mapping[str, Bank], items: Mapping[str, BankItem | None]) -> None:
        for name in banks:
            self._bank_numbers.setdefault(name, len(self._bank_numbers))
        # A copy: whoever asks in the meantime sees the places and the segments of one time.
        places = dict(self._snapshot.places)
        large, small = self._without(items, places)
        added: Sequence[BankItem] = [item for item in items.values() if item is not None]
        is_first = not len(large.items) and not len(small.items)
        found, added = self._cached(added, banks) if is_first and added else (NO_ITEMS, added)
        parts = [added[at : at + ITEMS_AT_ONCE] for at in range(0, len(added), ITEMS_AT_ONCE)]
        living = ItemTable.joined([small.living(), found, *(self._computed(part, banks) for part in parts)])
        if len(living) > max(_SMALL_ITEMS_MIN, len(large.items) // _SMALL_SHARE):
            large, small = self._segment(ItemTable.joined([large.living(), living])), self._segment(NO_ITEMS)
            places = {name: row << 1 | _LARGE for row, name in enumerate(large.items.names)}
        else:
            small = self._segment(living)
            places |= {name: row << 1 | _SMALL for row, name in enumerate(small.items.names)}
        known = _known_shingles(large, small)
        # The engine makes its own form of them at the first use, which would delay a batch.
        self.engine.fingerprint([""], None, known)
        wanted = [bank.item_similarity for bank in banks.values()]
        wanted += [float(np.nanmin(part.similarities, initial=1.0)) for part in (large.items, small.items)]
        computed = self._snapshot.computed + len(added)
        self._snapshot = _BankSnapshot(
            MappingProxyType(dict(banks)),
            BankRules.of(banks, self._bank_numbers),
            (large, small),
            MappingProxyType(places),
            known,
            min(wanted),
            computed,
        )

    def _is_held(self, name: str, item: BankItem, banks: Mapping[str, Bank]) -> bool:
        """Return whether an item is held as this entry says."""
        place = self._snapshot.places.get(name)
        if place is None:
            return False
        held: bytes = self._snapshot.segments[place & 1].items.fingerprints.digests[place >> 1].tobytes()
        return held == entry_digest(item, _action_of(item, banks))

    def _without(self, names: Collection[str], places: dict[str, int]) -> list[Segment]:
        """Return the segments without these items, which are taken out of ``places``."""
        dead: tuple[list[int], list[int]] = [], []
        for name in names:
            place = places.pop(name, None)
            if place is not None:
                dead[place & 1].append(place >> 1)
        return [segment.without(rows) for segment, rows in zip(self._snapshot.segments, dead, strict=True)]

    def _cached(self, added: Sequence[BankItem], banks: Mapping[str, Bank]) -> tuple[ItemTable, Sequence[BankItem]]:
        """Return the items whose fingerprints are in the cache, and the others."""
        cache = None if self.load_cache is None else self.load_cache()
        if cache is None:
            return NO_ITEMS, added
        found = cache.look_up(digests_of(entry_digest(item, _action_of(item, banks)) for item in added))
        log.info(
            "Fingerprints of items of banks: %d from the cache, %d to compute.", len(found.wanted), len(found.missing)
        )
        items = ItemTable.of_entries(
            [added[place] for place in found.wanted.tolist()], found.fingerprints, self._bank_numbers
        )
        return items, [added[place] for place in found.missing.tolist()]

    def _computed(self, items: Sequence[BankItem], banks: Mapping[str, Bank]) -> ItemTable:
        """Compute what items are compared by."""
        texts, languages = [item.text for item in items], [item.lang for item in items]
        actions = [_action_of(item, banks) for item in items]
        found = self.engine.fingerprint(texts, languages)
        # An item that is not found as a part costs no more than its place.
        searched = [
            text if action == DENY and letters_in(text) >= PART_LETTERS_MIN else ""
            for text, action in zip(texts, actions, strict=True)
        ]
        named = zip(found.facts or repeat(b""), actions, strict=False)
        fingerprints = ItemFingerprints(
            digests_of(entry_digest(item, action) for item, action in zip(items, actions, strict=True)),
            TextFeatures(found.kinds, found.sketches, found.text_digests.view(np.uint64)),
            shingle_rows(self.engine.smallest_shingles(searched, languages)),
            {place: facts for place, (facts, action) in enumerate(named) if facts and action != DENY},
        )
        return ItemTable.of_entries(items, fingerprints, self._bank_numbers)

    def _segment(self, items: ItemTable) -> Segment:
        return Segment.of(items, self.settings.scheme.definition.sketch_similarity)


def _known_shingles(*segments: Segment) -> KnownShingles | None:
    keys = [segment.items.fingerprints.shingles.keys for segment in segments]
    return KnownShingles(*keys) if any(map(len, keys)) else None


def _action_of(item: BankItem, banks: Mapping[str, Bank]) -> str | None:
    bank = banks.get(item.bank)
    return None if bank is None else bank.action
