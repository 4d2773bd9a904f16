"""Finds the stored articles that repeat items of banks, by looking up keys as a query for an article does.

The keys yield candidates, which are compared like arriving articles in ``KnownTexts``: with the same thresholds, forms
and guards. So the result lists only articles that a run would report, but it may miss some:

- Similar texts are found through the store's keys, which are made for the store's threshold. Below that threshold,
  fewer texts are found.
- Parts of longer articles are found by their anchors, if the store has them (``judge.parts``). Anchors that many
  articles share are not posted, and a short item may share no anchor with a long article.
- After a migration, one of several kept articles with the same text represents the others.

``bank_scan`` compares every version, and finds all of these.
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
"""The default maximum number of articles that a look-up returns."""
ITEMS_MAX: Final = 1_000
"""The maximum number of items that a look-up uses. For more items a scan is quicker."""
CANDIDATES_MAX: Final = 1_024
"""The maximum number of candidates for each item: of similar articles, and of articles that may contain the item."""
_ITEMS_AT_ONCE: Final = 16
_VERSIONS_AT_ONCE: Final = 256
_ROWS_BYTES_MAX: Final = 4 << 20
_ONE_BITS: Final = 64
_DEVIATIONS: Final = 3.0
"""Limit on the distance of one-bit minima, in standard deviations above its mean."""
_ITEM_PREFIX: Final = "\0"
"""The prefix of the ids of items during a look-up. No id of an article begins with it."""


_Value = TypeVar("_Value")


class StoredMatch(NamedTuple):
    """A stored article, and the items that it repeats, the most important first."""

    stored: StoredVersion
    matches: tuple[BankMatch, ...]

    @property
    def similarity(self) -> float:
        """The highest similarity of its matches."""
        return max(match.similarity for match in self.matches)


@dataclass(frozen=True, slots=True)
class StoredMatches:
    """The kept articles in force that repeat items, the most similar first, and how complete the list is.

    ``items`` counts the items looked up, ``compared`` the articles read. ``truncated`` says that a limit cut the
    look-up short. ``parts`` says whether it included longer articles that contain an item. ``without_text`` counts the
    candidates without a stored text, whose parts could not be compared.
    """

    found: tuple[StoredMatch, ...]
    items: int
    compared: int
    truncated: bool
    parts: bool
    without_text: int = 0


class ComparableStore(NamedTuple):
    """A store, its settings, and the builder and engine for its records and fingerprints.

    If ``engine`` computes anchors, look-ups include longer articles that contain an item.
    """

    store: Store
    settings: JudgeSettings
    builder: VersionBuilder
    engine: Engine


def do_nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class BankLookUp:
    """A look-up of items in a store. It writes nothing.

    ``clock`` returns milliseconds since 1970. ``proceed`` is called between reads, and may raise to end the look-up.
    """

    comparable: ComparableStore
    clock: Callable[[], int]
    proceed: Callable[[], None] = do_nothing

    def find(self, banks: Banks, matches_max: int = MATCHES_MAX) -> StoredMatches:
        """Return the kept articles of the window that are in force and repeat an item of these banks.

        Returns at most ``matches_max`` articles. Raises the store's errors, and ``BankError`` for settings without
        sketches, which banks need.
        """
        now_ms = self.clock()
        active = banks.items_at(now_ms)
        items = active[:ITEMS_MAX]
        known = KnownTexts(self.comparable.engine, self.comparable.settings, self.clock)
        known.replace([*banks.banks.values(), *items])
        search = self._search(banks, items)
        seen: set[bytes] = set()
        found: list[StoredMatch] = []
        truncated, parts, without_text = len(items) < len(active), False, 0
        for some_items in _batches(items, _ITEMS_AT_ONCE):
            if len(found) > matches_max:
                break
            candidates = self._candidates(search, banks, some_items, now_ms)
            fresh = [stored for stored in candidates.stored if stored.record.reference not in seen]
            seen.update(stored.record.reference for stored in fresh)
            truncated, parts = truncated or candidates.truncated, parts or candidates.parts
            for some in _batches([stored for stored in fresh if _is_current(stored)], _VERSIONS_AT_ONCE):
                self.proceed()
                compared = compare(self.comparable.store, known, some)
                without_text += compared.without_text
                truncated |= compared.limited > 0
                found += compared.stored_matches()
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
        """Return a search for versions that may be similar enough to any of the items, by their lowest threshold."""
        least = min((item.similarity or banks.banks[item.bank].item_similarity for item in items), default=1.0)
        settings = replace(
            self.comparable.settings,
            verify=True,
            similarity_min=least,
            one_bits_distance_max=max(self.comparable.settings.one_bits_distance_max, _one_bits_distance(least)),
            verifications_max=CANDIDATES_MAX,
            sources={},
        )
        tally = Tally()
        return Search(self.comparable.store, settings, tally, VerdictCells(self.comparable.store, tally))

    def _candidates(self, search: Search, banks: Banks, items: Sequence[BankItem], now_ms: int) -> "_CandidateVersions":
        """Return the versions that may repeat one of these items."""
        self.proceed()
        fingerprints = self.comparable.engine.fingerprint([item.text for item in items], [item.lang for item in items])
        articles = [Article(f"{_ITEM_PREFIX}{item.bank}/{item.item}", item.text) for item in items]
        arrivals = [ArrivalTime(now_ms, place) for place in range(len(items))]
        records = [version.record for version in self.comparable.builder.versions(articles, arrivals, fingerprints)]
        similar = search.look_up_unstored(records)
        searched = [record for item, record in zip(items, records, strict=True) if _is_searched(banks, item)]
        containing = _containing(self.comparable.store, searched, now_ms - self.comparable.settings.window_ms)
        others = [reference for reference in containing.references if reference not in similar.stored]
        read: list[StoredVersion] = []
        for some in _batches(others, _VERSIONS_AT_ONCE):
            self.proceed()
            read += (stored for stored in self.comparable.store.read(some) if stored is not None)
        return _CandidateVersions(
            [*similar.stored.values(), *read],
            bool(similar.truncated) or containing.truncated,
            any(record.anchors is not None for record in records),
        )


class _CandidateVersions(NamedTuple):
    """Versions that may repeat an item. ``parts`` says whether they include versions that contain an item."""

    stored: Sequence[StoredVersion]
    truncated: bool
    parts: bool


class _ContainingVersions(NamedTuple):
    """References of the versions that share an anchor with given texts. ``truncated`` says that some were left out."""

    references: Sequence[bytes]
    truncated: bool


def _containing(store: Store, records: Iterable[Record], first_ms: int) -> _ContainingVersions:
    """Return the versions since ``first_ms`` that share anchors with these records. Raises the store's errors.

    For each record these are at most ``CANDIDATES_MAX`` versions: those that share the most anchors.
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
    """Stored versions and the items that each repeats.

    ``without_text`` counts versions without a stored text. Only their records are compared, so items within them are
    not found. ``limited`` counts versions that are similar to more items than are compared, or repeat more items than
    are listed.
    """

    stored: Sequence[StoredVersion]
    matches: Sequence[tuple[BankMatch, ...]]
    without_text: int
    limited: int

    def stored_matches(self) -> Iterator[StoredMatch]:
        """Yield the versions that repeat an item, with their matches."""
        pairs = zip(self.stored, self.matches, strict=True)
        return (StoredMatch(stored, matches) for stored, matches in pairs if matches)


def compare(store: Store, known: KnownTexts, stored: Sequence[StoredVersion]) -> ComparedVersions:
    """Return which items stored versions repeat, compared as if the versions arrived now. Raises the store's errors."""
    if not stored:
        return ComparedVersions((), (), 0, 0)
    texts = store.bodies([version.record.reference for version in stored])
    shingles = [b""] * len(stored)
    known_shingles = known.known_shingles
    if known_shingles is not None:
        with_text = [place for place, text in enumerate(texts) if text is not None]
        languages = [stored[place].record.lang for place in with_text]
        fingerprints = known.engine.fingerprint([texts[place] or "" for place in with_text], languages, known_shingles)
        for place, shared in zip(with_text, fingerprints.known_shingles, strict=True):
            shingles[place] = shared
    versions = [
        Version(version.record, None, known_shingles=shared) for version, shared in zip(stored, shingles, strict=True)
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
    """Return the distance of one-bit minima that about 999 of 1,000 pairs with this similarity do not exceed."""
    share = (1 - similarity) / 2
    return ceil(_ONE_BITS * share + _DEVIATIONS * sqrt(_ONE_BITS * share * (1 - share)))


def _batches(values: Sequence[_Value], size: int) -> Iterator[Sequence[_Value]]:
    return (values[start : start + size] for start in range(0, len(values), size))
