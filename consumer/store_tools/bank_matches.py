"""Finds the stored articles that repeat items of banks: by looking up, as a check finds what an article repeats.

The keys of the store yield candidates, which are compared as ``KnownTexts`` compares an article that arrives: the same
thresholds, forms and guards. So nothing is listed that a run would not report, but something may be missing:

- Similar texts are found as far as the store's keys reach. They are made for the threshold of the store; below it the
  share that is found falls.
- A part of a longer article is found by its anchors, and only where the store has them (``judge.parts``). An anchor
  that stands in many articles is not posted, and a short item may share none with a long article.
- After a migration one of several kept articles with the same text stands in for the others.

``bank_scan`` compares everything, and finds all of these.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Final, NamedTuple, TypeVar

from consumer.banks.bank import BankItem, Banks, letters_in
from consumer.banks.known_texts import PART_LETTERS_MIN, KnownTexts
from consumer.fingerprint import Engine
from consumer.judge.decision import VersionState, state_of
from consumer.judge.search import Search
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import VerdictCells
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from storage.interface import Store
from storage.postings import part_keys
from storage.records import DENY, BankMatch, Record, StoredVersion, Version

MATCHES_MAX: Final = 10_000
"""Articles that a look-up returns."""
ITEMS_MAX: Final = 1_000
"""Items that are looked up together; for more a scan is quicker."""
CANDIDATES_MAX: Final = 1_024
"""Articles that are read for an item as similar ones, and again as such that contain it; the likeliest come first."""
_ITEMS_AT_ONCE: Final = 16
_VERSIONS_AT_ONCE: Final = 256
_ROWS_BYTES_MAX: Final = 4 << 20
_ONE_BITS: Final = 64
_DEVIATIONS: Final = 3.0
"""One-bit minima of texts of a similarity differ in so many standard deviations more than on average, at most."""
_NO_ARTICLE: Final = "\0"
"""What the ids of items begin with while they are looked up: no article has it."""


_Value = TypeVar("_Value")


class StoredMatch(NamedTuple):
    """A stored article, and the items that it repeats, the most important first."""

    stored: StoredVersion
    matches: tuple[BankMatch, ...]

    @property
    def similarity(self) -> float:
        """The highest of its similarities."""
        return max(match.similarity for match in self.matches)


@dataclass(frozen=True, slots=True)
class StoredMatches:
    """The kept articles in force that repeat items, the most similar first, and how complete that is.

    ``items`` is how many items were looked up, of those that count now; ``compared`` is how many articles were read.
    ``truncated`` says that a limit cut the look-up short. ``parts`` says whether longer articles that contain an item
    were looked for, ``without_text`` of how many candidates the store keeps no text that could tell.
    """

    found: tuple[StoredMatch, ...]
    items: int
    compared: int
    truncated: bool
    parts: bool
    without_text: int = 0


class ComparableStore(NamedTuple):
    """A store, its settings, and what makes records and fingerprints as it has them.

    If ``engine`` computes anchors, longer articles that contain an item are looked for.
    """

    store: Store
    settings: JudgeSettings
    builder: VersionBuilder
    engine: Engine


def ignored() -> None:
    """Go on."""


@dataclass(frozen=True, slots=True)
class BankLookUp:
    """Looks items up in a store, and writes nothing.

    ``clock`` gives the time in milliseconds. ``proceed`` is called between reads; an exception from it ends the
    look-up.
    """

    opened: ComparableStore
    clock: Callable[[], int]
    proceed: Callable[[], None] = ignored

    def find(self, banks: Banks, matches_max: int = MATCHES_MAX) -> StoredMatches:
        """Return the kept articles of the window that are in force and repeat an item of these banks.

        At most ``matches_max`` articles are returned. Raises the store's errors, and ``BankError`` for settings without
        sketches, with which banks find nothing.
        """
        now_ms = self.clock()
        counting = banks.items_at(now_ms)
        items = counting[:ITEMS_MAX]
        known = KnownTexts(self.opened.engine, self.opened.settings, self.clock)
        known.replace([*banks.banks.values(), *items])
        search = self._search(banks, items)
        seen: set[bytes] = set()
        found: list[StoredMatch] = []
        truncated, parts, without_text = len(items) < len(counting), False, 0
        for some_items in _batches(items, _ITEMS_AT_ONCE):
            if len(found) > matches_max:
                break
            candidates = self._candidates(search, banks, some_items, now_ms)
            fresh = [stored for stored in candidates.stored if stored.record.reference not in seen]
            seen.update(stored.record.reference for stored in fresh)
            truncated, parts = truncated or candidates.truncated, parts or candidates.parts
            for some in _batches([stored for stored in fresh if _is_current(stored)], _VERSIONS_AT_ONCE):
                self.proceed()
                compared = compare(self.opened.store, known, some)
                without_text += compared.without_text
                truncated |= compared.limited > 0
                found += compared.found()
        found.sort(key=lambda match: (-match.similarity, match.stored.record.arrival))
        return StoredMatches(
            found=tuple(found[:matches_max]),
            items=len(items),
            compared=len(seen),
            truncated=truncated or len(found) > matches_max,
            parts=parts,
            without_text=without_text,
        )

    def _search(self, banks: Banks, items: Sequence[BankItem]) -> Search:
        """Return a search that reads whatever may be similar enough to any of the items."""
        least = min((item.similarity or banks.banks[item.bank].item_similarity for item in items), default=1.0)
        settings = replace(
            self.opened.settings,
            verify=True,
            similarity_min=least,
            one_bits_distance_max=max(self.opened.settings.one_bits_distance_max, _one_bits_distance(least)),
            verifications_max=CANDIDATES_MAX,
            sources={},
        )
        tally = Tally()
        return Search(self.opened.store, settings, tally, VerdictCells(self.opened.store, tally))

    def _candidates(self, search: Search, banks: Banks, items: Sequence[BankItem], now_ms: int) -> "_CandidateVersions":
        """Return the versions that may repeat one of these items."""
        self.proceed()
        fingerprints = self.opened.engine.fingerprint([item.text for item in items], [item.lang for item in items])
        articles = [Article(f"{_NO_ARTICLE}{item.bank}/{item.item}", item.text) for item in items]
        arrivals = [ArrivalTime(now_ms, place) for place in range(len(items))]
        records = [version.record for version in self.opened.builder.versions(articles, arrivals, fingerprints)]
        similar = search.look_up_unstored(records)
        searched = [record for item, record in zip(items, records, strict=True) if _is_searched(banks, item)]
        containing = _containing(self.opened.store, searched, now_ms - self.opened.settings.window_ms)
        others = [reference for reference in containing.references if reference not in similar.stored]
        read: list[StoredVersion] = []
        for some in _batches(others, _VERSIONS_AT_ONCE):
            self.proceed()
            read += (stored for stored in self.opened.store.read(some) if stored is not None)
        return _CandidateVersions(
            [*similar.stored.values(), *read],
            bool(similar.truncated) or containing.truncated,
            any(record.anchors is not None for record in records),
        )


class _CandidateVersions(NamedTuple):
    """Versions that may repeat an item; ``parts`` says whether those that contain one were looked for."""

    stored: Sequence[StoredVersion]
    truncated: bool
    parts: bool


class _ContainingVersions(NamedTuple):
    """References of the versions that share an anchor with any of some texts; ``truncated``: a limit left some out."""

    references: Sequence[bytes]
    truncated: bool


def _containing(store: Store, records: Iterable[Record], first_ms: int) -> _ContainingVersions:
    """Find the versions since ``first_ms`` that share anchors with these records. Raises the store's errors.

    Of each record those that share the most come first, and at most ``CANDIDATES_MAX`` are taken.
    """
    chosen: dict[bytes, None] = {}
    truncated = False
    for record in records:
        shared: Counter[bytes] = Counter()
        keys = part_keys(record)
        while keys:
            rows = store.look_up(keys, _ROWS_BYTES_MAX)
            for row in rows:
                recent = row.postings[row.postings["time_ms"] >= first_ms]
                shared.update(map(bytes, recent["reference"]))
                truncated |= row.truncated
            keys = keys[len(rows) :]
        best = sorted(shared, key=lambda reference: (-shared[reference], reference))
        truncated |= len(best) > CANDIDATES_MAX
        chosen |= dict.fromkeys(best[:CANDIDATES_MAX])
    return _ContainingVersions(list(chosen), truncated)


class ComparedVersions(NamedTuple):
    """What each of some stored versions repeats.

    ``without_text`` is of how many the store keeps no text: these are compared by their records, so that parts of them
    are not found. ``limited`` counts those that are alike more items than are compared, or repeat more than are named.
    """

    stored: Sequence[StoredVersion]
    matches: Sequence[tuple[BankMatch, ...]]
    without_text: int
    limited: int

    def found(self) -> Iterator[StoredMatch]:
        """Yield the versions that repeat something."""
        pairs = zip(self.stored, self.matches, strict=True)
        return (StoredMatch(stored, matches) for stored, matches in pairs if matches)


def compare(store: Store, known: KnownTexts, stored: Sequence[StoredVersion]) -> ComparedVersions:
    """Compare stored versions with known texts, as if they arrived now. Raises the store's errors."""
    if not stored:
        return ComparedVersions((), (), 0, 0)
    texts = store.bodies([version.record.reference for version in stored])
    shingles = [b""] * len(stored)
    sought = known.known_shingles
    if sought is not None:
        there = [place for place, text in enumerate(texts) if text is not None]
        languages = [stored[place].record.lang for place in there]
        fingerprints = known.engine.fingerprint([texts[place] or "" for place in there], languages, sought)
        for place, found in zip(there, fingerprints.known_shingles, strict=True):
            shingles[place] = found
    versions = [
        Version(version.record, None, known_shingles=found) for version, found in zip(stored, shingles, strict=True)
    ]
    matches = known.matches(versions)
    return ComparedVersions(stored, matches.matches, sum(text is None for text in texts), matches.limited)


def _is_current(stored: StoredVersion) -> bool:
    """Return whether a version is kept and in force."""
    return stored.ends_at is None and state_of(stored) is VersionState.KEPT


def _is_searched(banks: Banks, item: BankItem) -> bool:
    """Return whether longer articles that contain an item count as matches."""
    return banks.banks[item.bank].action == DENY and letters_in(item.text) >= PART_LETTERS_MIN


def _one_bits_distance(similarity: float) -> int:
    """Return in how many one-bit minima texts of this similarity differ, of a thousand pairs all but one."""
    share = (1 - similarity) / 2
    return ceil(_ONE_BITS * share + _DEVIATIONS * sqrt(_ONE_BITS * share * (1 - share)))


def _batches(values: Sequence[_Value], size: int) -> Iterator[Sequence[_Value]]:
    return (values[start : start + size] for start in range(0, len(values), size))
