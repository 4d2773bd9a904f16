"""Finds items that match too large a share of the feed, and withholds bank matches that name no other denied items.

An item that matches half of the feed would flood the topic of bank matches and its readers. Such an item is *busy*.
Verdicts still name it, but a bank match is withheld if all its denied items, which are those of ``deny`` banks, are
busy. A person can confirm that an item may match that often. A confirmed item is never busy.

Each process counts the articles it judges. When the count reaches twice ``articles_min``, all counts are halved, so an
item that stops matching is forgotten. The counts have at most 2 × 10 × ``articles_min`` entries, because a verdict
names at most ten items.

A batch is first counted separately, verdict by verdict, before its events are made. So the limit applies even within
the first batch full of copies. When the batch is committed, its counts are added to the others. If the batch is judged
again, its own counts start over: nothing is counted twice, and the same events are withheld.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from consumer.banks.known_texts import KnownTexts
from consumer.banks.segment import joined_name
from consumer.model.verdict import BankMention, Verdict
from storage.records import DENY

log = logging.getLogger("dupwatch")

QUIET_SHARE: Final = 0.25
"""An item stays busy until its matches are below this share of the limit when the counts are halved.

This keeps an item near the limit from switching back and forth.
"""


class BusyLimit(NamedTuple):
    """The limit on matches: a ``share`` of the recent articles.

    Fewer than ``articles_min`` articles count as ``articles_min``.
    """

    share: float
    articles_min: int

    def matches(self, articles: int) -> float:
        """Return the number of matches in ``articles`` above which an item is busy."""
        return self.share * max(articles, self.articles_min)


class CountedItem(NamedTuple):
    """An item as one entry defines it. A changed item is counted from zero.

    ``entry_digest`` is None if a verdict names the item, but the item is no longer active in this process.
    """

    bank: str
    item: str
    action: str
    entry_digest: bytes | None


class BankMatchesWithheld(NamedTuple):
    """The number of bank matches withheld in a committed batch, by the bank of each match's first denied item."""

    by_bank: Mapping[str, int]


class BankItemsCounted(NamedTuple):
    """The number of busy items by bank and action, and of items without a match since this process started."""

    busy: Mapping[tuple[str, str], int]
    unmatched: int


@dataclass(slots=True)
class _BatchCounts:
    """The counts of one batch: articles, matches by item, and withheld bank matches by bank.

    ``busy`` has the newly busy items with their matches and articles, ``names`` the active items that matched.
    """

    articles: int = 0
    matches: Counter[CountedItem] = field(default_factory=Counter)
    busy: dict[CountedItem, tuple[int, int]] = field(default_factory=dict)
    withheld: Counter[str] = field(default_factory=Counter)
    names: set[str] = field(default_factory=set)


class BusyItems:
    """The items in ``known`` that are busy.

    One thread calls ``withheld`` and ``commit``; another one calls ``review`` when the banks may have changed.
    ``withholds`` says whether the run sends bank matches, so that some can be withheld. ``report`` receives
    ``BankMatchesWithheld`` and ``BankItemsCounted``.
    """

    def __init__(
        self, known: KnownTexts, limit: BusyLimit, report: Callable[[object], None], *, withholds: bool
    ) -> None:
        self._known = known
        self._limit = limit
        self._report = report
        self._withholds = withholds
        self._articles = 0
        self._matches: Counter[CountedItem] = Counter()
        self._busy: set[CountedItem] = set()
        self._names: set[str] = set()
        """Names of items that have matched."""
        self._compared_names: object = None
        """The names of all items when ``_names`` was last compared with them."""
        self._batch = _BatchCounts()
        self._lock = threading.Lock()

    def withheld(self, verdicts: Iterable[Verdict]) -> list[bool]:
        """Return whether the bank match of each verdict in a batch is withheld. ``commit`` counts the batch."""
        with self._lock:
            self._batch = batch = _BatchCounts()
            return [self._count_verdict(verdict, batch) for verdict in verdicts]

    def commit(self) -> None:
        """Add the counts of the batch last passed to ``withheld``, and report the changes."""
        with self._lock:
            batch, self._batch = self._batch, _BatchCounts()
            self._articles += batch.articles
            self._matches.update(batch.matches)
            for item, (matches, articles) in batch.busy.items():
                if self._is_current(item):
                    self._add_busy(item, matches, articles)
            while self._articles >= 2 * self._limit.articles_min:
                self._halve()
            if batch.withheld:
                self._report(BankMatchesWithheld(batch.withheld))
            names = self._known.names
            new = {name for name in batch.names - self._names if name in names}
            if new or batch.busy:
                self._names |= new
                self._report_counts()

    def review(self) -> None:
        """Check the busy items after the banks have changed.

        Items that were confirmed, changed, disabled or removed, or have ended, are no longer busy.
        """
        with self._lock:
            for item in sorted(item for item in self._busy if not self._is_current(item)):
                self._remove_busy(item, "it was confirmed, changed, disabled or removed, or has ended")
                # The same entry may be added again later.
                del self._matches[item]
            self._report_counts()

    def _count_verdict(self, verdict: Verdict, batch: _BatchCounts) -> bool:
        """Count a verdict, and return whether its bank match is withheld."""
        if verdict.version is None:
            # A retraction is not an article.
            return False
        batch.articles += 1
        if verdict.banks is msgspec.UNSET:
            return False
        # No short circuit: every item must be counted.
        busy = [self._count_match(mention, batch) for mention in verdict.banks]
        denied = [place for place, mention in enumerate(verdict.banks) if mention.action == DENY]
        if not self._withholds or not denied or not all(busy[place] for place in denied):
            return False
        batch.withheld[verdict.banks[denied[0]].bank] += 1
        return True

    def _count_match(self, mention: BankMention, batch: _BatchCounts) -> bool:
        """Count a match of an item, and return whether the item is busy."""
        active = self._known.active_item(mention.bank, mention.item, mention.action)
        if active is not None:
            batch.names.add(joined_name((mention.bank, mention.item)))
            if active.is_confirmed:
                return False
        item = CountedItem(mention.bank, mention.item, mention.action, None if active is None else active.entry_digest)
        batch.matches[item] += 1
        if item in self._busy or item in batch.busy:
            return True
        matches, articles = self._matches[item] + batch.matches[item], self._articles + batch.articles
        if matches <= self._limit.matches(articles):
            return False
        batch.busy[item] = matches, articles
        return True

    def _is_current(self, item: CountedItem) -> bool:
        """Return whether this version of the item is active and not confirmed."""
        active = self._known.active_item(item.bank, item.item, item.action)
        return active is not None and active.entry_digest == item.entry_digest and not active.is_confirmed

    def _add_busy(self, item: CountedItem, matches: int, articles: int) -> None:
        self._busy.add(item)
        log.warning(
            "The item %(item)s of the bank %(bank)s matches too much: %(matches)d of the last %(articles)d articles. "
            "%(effect)s. If this is intended, run dupwatch bank confirm %(bank)s %(item)s. If not, run dupwatch bank "
            "disable %(bank)s %(item)s",
            {
                "item": item.item,
                "bank": item.bank,
                "matches": matches,
                "articles": articles,
                "effect": self._effect(item.action),
            },
        )

    def _effect(self, action: str) -> str:
        if action != DENY:
            return "These articles are never flagged"
        if self._withholds:
            return "Bank matches that name no other denied item are withheld"
        return "Verdicts still name it"

    def _remove_busy(self, item: CountedItem, reason: str) -> None:
        self._busy.remove(item)
        log.warning("The item %s of the bank %s no longer matches too much: %s.", item.item, item.bank, reason)

    def _halve(self) -> None:
        """Halve all counts. Busy items whose matches are below ``QUIET_SHARE`` of the limit are no longer busy."""
        quiet = QUIET_SHARE * self._limit.matches(self._articles)
        ended = sorted(item for item in self._busy if self._matches[item] < quiet)
        for item in ended:
            self._remove_busy(item, f"{self._matches[item]} of the last {self._articles} articles")
        self._articles //= 2
        self._matches = Counter({item: count // 2 for item, count in self._matches.items() if count > 1})
        if ended:
            self._report_counts()

    def _report_counts(self) -> None:
        names: Mapping[str, object] = self._known.names
        if names is not self._compared_names:
            self._names = {name for name in self._names if name in names}
            self._compared_names = names
        busy = Counter((item.bank, item.action) for item in self._busy)
        self._report(BankItemsCounted(busy, len(names) - len(self._names)))
