"""Finds items that match too large a share of the feed, and withholds bank matches because of them.

An item that matches half of the feed would flood the topic of bank matches and its readers. Such an item is *busy*. It
stays in verdicts, but bank matches that name only busy items are withheld until a person confirms that the item may
match that much.

Each process counts the articles it judges. Once it has counted twice ``articles_min``, it halves all counts. So an item
that stops matching is forgotten. The counts have at most 2 × 10 × ``articles_min`` entries, since a verdict names at
most ten items.

A batch is counted on trial, verdict by verdict, before its events are made, so that even the first batch full of copies
is limited. The trial is added to the counts when the batch is committed. If a batch is judged again, its trial starts
over: nothing is counted twice, and the same events are withheld.
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

QUIET: Final = 0.25
"""An item stays busy until its matches fall below this share of the limit.

So an item whose matches vary around the limit does not change its state again and again.
"""


class BusyLimit(NamedTuple):
    """The limit on matches: a ``share`` of the recent articles, but of at least ``articles_min``."""

    share: float
    articles_min: int

    def matches(self, articles: int) -> float:
        """Return the most matches in ``articles`` that do not make an item busy."""
        return self.share * max(articles, self.articles_min)


class BusyItem(NamedTuple):
    """An item in the version of one entry. A changed item is counted from zero.

    ``entry_digest`` is None if this process does not compare articles with the item, although a verdict names it.
    """

    bank: str
    item: str
    action: str
    entry_digest: bytes | None


class BankMatchesWithheld(NamedTuple):
    """The number of withheld bank matches of a committed batch, by the bank of the first denied item."""

    by_bank: Mapping[str, int]


class BankItemsCounted(NamedTuple):
    """The number of busy items by bank and action, and of items without a match since this process started."""

    busy: Mapping[tuple[str, str], int]
    unmatched: int


@dataclass(slots=True)
class _Trial:
    """The additions of one batch: articles, matches, and newly busy items with their matches and articles."""

    articles: int = 0
    matches: Counter[BusyItem] = field(default_factory=Counter)
    busy: dict[BusyItem, tuple[int, int]] = field(default_factory=dict)
    withheld: Counter[str] = field(default_factory=Counter)
    names: set[str] = field(default_factory=set)


class BusyItems:
    """The busy items among those of ``known``.

    One thread calls ``withheld`` and ``commit``; another one calls ``review`` when the banks may have changed.
    ``withholds``: the run sends bank matches. ``report`` receives the occurrences of this module.
    """

    def __init__(
        self, known: KnownTexts, limit: BusyLimit, report: Callable[[object], None], *, withholds: bool
    ) -> None:
        self._known = known
        self._limit = limit
        self._report = report
        self._withholds = withholds
        self._articles = 0
        self._matches: Counter[BusyItem] = Counter()
        self._busy: set[BusyItem] = set()
        self._names: set[str] = set()
        """Names of items that have matched."""
        self._compared_names: object = None
        """The names of all items when ``_names`` was last compared with them."""
        self._trial = _Trial()
        self._lock = threading.Lock()

    def withheld(self, verdicts: Iterable[Verdict]) -> list[bool]:
        """Return for each verdict of a batch whether its bank match is withheld. ``commit`` counts the batch."""
        with self._lock:
            self._trial = trial = _Trial()
            return [self._is_withheld(verdict, trial) for verdict in verdicts]

    def commit(self) -> None:
        """Count the verdicts of the last call of ``withheld``."""
        with self._lock:
            trial, self._trial = self._trial, _Trial()
            self._articles += trial.articles
            self._matches.update(trial.matches)
            for item, (matches, articles) in trial.busy.items():
                if self._is_current(item):
                    self._begin(item, matches, articles)
            while self._articles >= 2 * self._limit.articles_min:
                self._halve()
            if trial.withheld:
                self._report(BankMatchesWithheld(trial.withheld))
            names = self._known.names
            new = {name for name in trial.names - self._names if name in names}
            if new or trial.busy:
                self._names |= new
                self._report_counts()

    def review(self) -> None:
        """Check busy items after a change of the banks. Confirmed, changed and removed items are no longer busy."""
        with self._lock:
            for item in sorted(item for item in self._busy if not self._is_current(item)):
                self._end(item, "it was confirmed, changed, disabled or removed, or has ended")
                # The same entry may be added again later.
                del self._matches[item]
            self._report_counts()

    def _is_withheld(self, verdict: Verdict, trial: _Trial) -> bool:
        if verdict.version is None:
            # A retraction is not an article.
            return False
        trial.articles += 1
        if verdict.banks is msgspec.UNSET:
            return False
        # Each item is counted, so no short circuit here.
        busy = [self._is_busy(mention, trial) for mention in verdict.banks]
        denied = [place for place, mention in enumerate(verdict.banks) if mention.action == DENY]
        if not self._withholds or not denied or not all(busy[place] for place in denied):
            return False
        trial.withheld[verdict.banks[denied[0]].bank] += 1
        return True

    def _is_busy(self, mention: BankMention, trial: _Trial) -> bool:
        active = self._known.active_item(mention.bank, mention.item, mention.action)
        if active is not None:
            trial.names.add(joined_name((mention.bank, mention.item)))
            if active.is_confirmed:
                return False
        item = BusyItem(mention.bank, mention.item, mention.action, None if active is None else active.entry_digest)
        trial.matches[item] += 1
        if item in self._busy or item in trial.busy:
            return True
        matches, articles = self._matches[item] + trial.matches[item], self._articles + trial.articles
        if matches <= self._limit.matches(articles):
            return False
        trial.busy[item] = matches, articles
        return True

    def _is_current(self, item: BusyItem) -> bool:
        """Return whether articles are compared with this version of the item, and it is not confirmed."""
        active = self._known.active_item(item.bank, item.item, item.action)
        return active is not None and active.entry_digest == item.entry_digest and not active.is_confirmed

    def _begin(self, item: BusyItem, matches: int, articles: int) -> None:
        self._busy.add(item)
        log.warning(
            "The item %(item)s of the bank %(bank)s matches too much: %(matches)d of the last %(articles)d articles. "
            "%(effect)s. If that is right: dupwatch bank confirm %(bank)s %(item)s. If it is not: dupwatch bank "
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

    def _end(self, item: BusyItem, why: str) -> None:
        self._busy.remove(item)
        log.warning("The item %s of the bank %s no longer matches too much: %s.", item.item, item.bank, why)

    def _halve(self) -> None:
        """Halve all counts, and end items that have become quiet."""
        quiet = QUIET * self._limit.matches(self._articles)
        ended = sorted(item for item in self._busy if self._matches[item] < quiet)
        for item in ended:
            self._end(item, f"{self._matches[item]} of the last {self._articles} articles")
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
