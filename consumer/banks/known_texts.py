"""The known texts of all banks in a judging process, which can be searched quickly and changed at any time.

Only fingerprints are kept, not the texts: about 600 bytes per item, and 350 more for items that can be found as parts.
Items are in two indexes. A change rebuilds only the small one. Once the small one exceeds its limit, which grows with
the large one, the two are merged.
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
"""Minimum letters and digits of an item that is also found as a part of a longer article."""
ITEMS_AT_ONCE: Final = 1_024
"""The maximum number of items whose fingerprints are computed together."""
_SMALL_LIMIT_MIN: Final = 1_024
_SMALL_LIMIT_DIVISOR: Final = 8
"""The small index may have ``_SMALL_LIMIT_MIN`` items, or an eighth of the items of the large one if that is more."""
_LARGE: Final = 0
_SMALL: Final = 1
"""The positions of the two segments in ``_BankSnapshot.segments``."""


def _ignore(_occurrence: object) -> None:
    """Ignore an occurrence."""


class BanksLoaded(NamedTuple):
    """The banks were read: the number of items that are compared, and of new entries left out as invalid."""

    items: int
    invalid: int = 0


class BankMatchesLimited(NamedTuple):
    """The number of articles with more matches than are kept, or more candidates than are compared."""

    articles: int


class BanksUnreadable(NamedTuple):
    """The banks could not be read, so this process keeps the banks it has. Reported for every failed attempt."""

    reason: str


class BankMatches(NamedTuple):
    """The matches of each article, the most important first.

    ``limited`` counts the articles with more matches than are kept, or more candidates than are compared.
    """

    matches: list[tuple[BankMatch, ...]]
    limited: int


class ActiveItem(NamedTuple):
    """An active item: the digest of its entry, and whether it is confirmed."""

    entry_digest: bytes
    is_confirmed: bool


@dataclass(frozen=True, slots=True, eq=False)
class _BankSnapshot:
    """All banks and all compared items at one moment.

    ``places`` are the places of items by name: the row, with the segment in the lowest bit. ``known`` are the shingles
    of the items that are found as parts. No item accepts a similarity below ``similarity_min``. ``computed`` counts the
    items whose fingerprints this process has computed so far.
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
    """The banks of a process. One thread changes them; any number of others look for matches.

    ``engine`` computes fingerprints comparable with the store's records. ``clock`` returns milliseconds since 1970.
    ``report`` receives the occurrences of this module, from any thread. ``load_cache`` is called when items are added
    and there are none yet.

    All enabled items are compared with articles, even if they have ended or their bank is disabled. Only matches of
    active items count.
    """

    engine: Engine
    settings: JudgeSettings
    clock: Callable[[], int]
    report: Callable[[object], None] = _ignore
    load_cache: CacheLoader | None = None
    _snapshot: _BankSnapshot = field(init=False, repr=False)
    _bank_numbers: dict[str, int] = field(init=False, repr=False, default_factory=dict)
    """A number for each bank that ever existed, by name."""

    def __post_init__(self) -> None:
        """Start without banks. Raises ``BankError`` for settings without sketches, which the search needs."""
        if not self.settings.sketched:
            raise BankError(
                "banks need sketches: set judge.verify or judge.lane1; a store that was made without them must be "
                "migrated"
            )
        empty = self._segment(NO_ITEMS)
        self._snapshot = _BankSnapshot(MappingProxyType({}), BankRules.of({}, ()), (empty, empty), MappingProxyType({}))

    def __len__(self) -> int:
        """Return the number of items that are compared."""
        return len(self.names)

    @property
    def names(self) -> Mapping[str, object]:
        """The items that are compared, by names of bank and item joined by "/". Each change makes a new mapping."""
        return self._snapshot.places

    @property
    def known_shingles(self) -> KnownShingles | None:
        """The shingles to look for in articles; None if there are none."""
        return self._snapshot.known

    def active_item(self, bank: str, item: str, action: str) -> ActiveItem | None:
        """Return an item if it is active now and its bank has this action, or else None."""
        snapshot = self._snapshot
        owner, place = snapshot.banks.get(bank), snapshot.places.get(joined_name((bank, item)))
        if owner is None or place is None or owner.action != action or not owner.enabled:
            return None
        items, row = snapshot.segments[place & 1].items, place >> 1
        if items.ends_ms[row] <= self.clock():
            return None
        return ActiveItem(items.fingerprints.digests[row].tobytes(), bool(items.confirmed[row]))

    def fingerprints(self) -> FingerprintSnapshot:
        """Return the fingerprints of all items that are compared, and possibly of some removed ones."""
        snapshot = self._snapshot
        parts = tuple(segment.items.fingerprints for segment in snapshot.segments)
        return FingerprintSnapshot(parts, snapshot.computed)

    def change(self, entries: Iterable[Entry]) -> None:
        """Make these changes, in order. Until all are made, other threads see the banks unchanged.

        Raises ``BankError``, and changes nothing, if an entry contradicts the banks before it.
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
                prefix = f"{entry.bank}/"
                items |= dict.fromkeys(name for name in (*items, *self.names) if name.startswith(prefix))
            else:
                check_bank(entry, banks)
                banks[entry.bank] = entry
        self._publish(banks, items)

    def replace(self, entries: Iterable[Entry]) -> None:
        """Replace all banks with the result of these entries. Unchanged items keep their fingerprints.

        Raises ``BankError``, and changes nothing, if an entry contradicts the entries before it.
        """
        banks = Banks.of(entries)
        named = {joined_name(key): item if item.enabled else None for key, item in banks.items.items()}
        removed_items: dict[str, BankItem | None] = dict.fromkeys(self.names.keys() - named.keys())
        changed = {
            name: item for name, item in named.items() if item is None or not self._is_current(name, item, banks.banks)
        }
        self._publish(banks.banks, removed_items | changed)

    def with_matches(self, versions: Sequence[Version]) -> list[Version]:
        """Return the versions, in order, with their current matches in their records."""
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
        """Return the current matches of each version."""
        snapshot, now_ms = self._snapshot, self.clock()
        records = [version.record for version in versions]
        # A batch of retractions has no versions.
        if not records or not any(len(segment.index.texts) for segment in snapshot.segments):
            return BankMatches([()] * len(records), 0)
        articles, shingles = TextFeatures.of_records(records), [version.known_shingles for version in versions]
        limited: set[int] = set()
        # Keyed by article, since most articles have no matches.
        found: defaultdict[int, list[BankMatch]] = defaultdict(list)
        for segment in snapshot.segments:
            pairs = segment.matching_pairs(articles, shingles, snapshot.similarity_min)
            limited.update(pairs.limited.tolist())
            accepted = snapshot.rules.accepted_pairs(pairs, segment.items, now_ms)
            for article, matches in matches_by_article(accepted, segment.items, snapshot.rules, records, self.settings):
                found[article] += matches
        limited.update(article for article, matches in found.items() if len(matches) > BANK_MATCHES_MAX)
        return BankMatches(
            [ranked(found[article]) if article in found else () for article in range(len(records))], len(limited)
        )

    def _publish(self, banks: Mapping[str, Bank], items: Mapping[str, BankItem | None]) -> None:
        for name in banks:
            self._bank_numbers.setdefault(name, len(self._bank_numbers))
        # A copy, so that other threads never see places that do not fit their segments.
        places = dict(self._snapshot.places)
        large, small = self._remove(items, places)
        added: Sequence[BankItem] = [item for item in items.values() if item is not None]
        is_first = not len(large.items) and not len(small.items)
        found, added = self._load_cached(added, banks) if is_first and added else (NO_ITEMS, added)
        parts = [added[at : at + ITEMS_AT_ONCE] for at in range(0, len(added), ITEMS_AT_ONCE)]
        living = ItemTable.concatenate([small.living(), found, *(self._compute(part, banks) for part in parts)])
        if len(living) > max(_SMALL_LIMIT_MIN, len(large.items) // _SMALL_LIMIT_DIVISOR):
            large, small = self._segment(ItemTable.concatenate([large.living(), living])), self._segment(NO_ITEMS)
            places = {name: row << 1 | _LARGE for row, name in enumerate(large.items.names)}
        else:
            small = self._segment(living)
            places |= {name: row << 1 | _SMALL for row, name in enumerate(small.items.names)}
        known = _known_shingles(large, small)
        # Makes the engine compile the shingles now. Compiling them on first use would delay a batch.
        self.engine.fingerprint([""], None, known)
        similarities = [bank.item_similarity for bank in banks.values()]
        similarities += [float(np.nanmin(part.similarities, initial=1.0)) for part in (large.items, small.items)]
        computed = self._snapshot.computed + len(added)
        self._snapshot = _BankSnapshot(
            MappingProxyType(dict(banks)),
            BankRules.of(banks, self._bank_numbers),
            (large, small),
            MappingProxyType(places),
            known,
            min(similarities),
            computed,
        )

    def _is_current(self, name: str, item: BankItem, banks: Mapping[str, Bank]) -> bool:
        """Return whether the fingerprints of the item were computed from this entry."""
        place = self._snapshot.places.get(name)
        if place is None:
            return False
        held: bytes = self._snapshot.segments[place & 1].items.fingerprints.digests[place >> 1].tobytes()
        return held == entry_digest(item, _action_of(item, banks))

    def _remove(self, names: Collection[str], places: dict[str, int]) -> list[Segment]:
        """Return the segments without these items. Remove the items from ``places``, too."""
        dead: tuple[list[int], list[int]] = [], []
        for name in names:
            place = places.pop(name, None)
            if place is not None:
                dead[place & 1].append(place >> 1)
        return [segment.without(rows) for segment, rows in zip(self._snapshot.segments, dead, strict=True)]

    def _load_cached(
        self, added: Sequence[BankItem], banks: Mapping[str, Bank]
    ) -> tuple[ItemTable, Sequence[BankItem]]:
        """Return the items whose fingerprints are in the cache, and the entries of the others."""
        cache = None if self.load_cache is None else self.load_cache()
        if cache is None:
            return NO_ITEMS, added
        found = cache.look_up(digests_of(entry_digest(item, _action_of(item, banks)) for item in added))
        log.info(
            "Fingerprints of bank items: %d from the cache, %d to compute.",
            len(found.positions),
            len(found.missing),
        )
        items = ItemTable.of_entries(
            [added[place] for place in found.positions.tolist()], found.fingerprints, self._bank_numbers
        )
        return items, [added[place] for place in found.missing.tolist()]

    def _compute(self, items: Sequence[BankItem], banks: Mapping[str, Bank]) -> ItemTable:
        """Return items with their computed fingerprints."""
        texts, languages = [item.text for item in items], [item.lang for item in items]
        actions = [_action_of(item, banks) for item in items]
        found = self.engine.fingerprint(texts, languages)
        # Items that are not found as parts have no shingles.
        searched = [
            text if action == DENY and letters_in(text) >= PART_LETTERS_MIN else ""
            for text, action in zip(texts, actions, strict=True)
        ]
        facts_and_actions = zip(found.facts or repeat(b""), actions, strict=False)
        fingerprints = ItemFingerprints(
            digests_of(entry_digest(item, action) for item, action in zip(items, actions, strict=True)),
            TextFeatures(found.kinds, found.sketches, found.text_digests.view(np.uint64)),
            shingle_rows(self.engine.smallest_shingles(searched, languages)),
            {place: facts for place, (facts, action) in enumerate(facts_and_actions) if facts and action != DENY},
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
