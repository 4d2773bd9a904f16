"""Items of banks that match more than a share of the feed, and bank matches that are withheld because of them.

One item that matches half of the feed would fill the topic of bank matches, and whoever works through it. Such an item
is *busy*. It remains part of verdicts; only bank matches that name nothing else are withheld, until a person confirms
that the item may match that much.

Each process counts what it judges, over a recent window: once that has twice ``articles_min`` articles, all counts are
halved. So an item that stops matching is forgotten, and the counts have at most 2 × 10 × ``articles_min`` entries,
since a verdict names ten items at most.

A batch is counted on trial before its events are made, verdict by verdict, so that a batch full of copies is not sent
as a whole. The trial becomes part of the counts when the batch is committed. A batch that is judged again begins with
the counts before it: nothing is counted twice, and the same events are withheld.
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
"""A busy item is so until its matches are below this share of what makes an item busy.

An item between the two stays what it is: one whose matches vary around the limit does not become busy again and again.
"""


class BusyLimit(NamedTuple):
    """More matches than ``share`` of the recent articles make an item busy; that of at least ``articles_min``."""

    share: float
    articles_min: int

    def matches(self, articles: int) -> float:
        """Return how many matches of so many articles are not yet too many."""
        return self.share * max(articles, self.articles_min)


class BusyItem(NamedTuple):
    """An item as one entry states it: with another entry it is counted anew.

    ``entry_digest`` is None while this process does not compare articles with the item. Another process may, or did.
    """

    bank: str
    item: str
    action: str
    entry_digest: bytes | None


class BankMatchesWithheld(NamedTuple):
    """Bank matches were withheld, of a batch that is committed: so many, by the bank of the first item that denies."""

    by_bank: Mapping[str, int]


class BankItemsCounted(NamedTuple):
    """How many items are busy now, by bank and action, and how many never matched since this process started."""

    busy: Mapping[tuple[str, str], int]
    unmatched: int


@dataclass(slots=True)
class _Trial:
    """What the verdicts of one batch add: articles, matches, and items that become busy, with both numbers then."""

    articles: int = 0
    matches: Counter[BusyItem] = field(default_factory=Counter)
    busy: dict[BusyItem, tuple[int, int]] = field(default_factory=dict)
    withheld: Counter[str] = field(default_factory=Counter)
    names: set[str] = field(default_factory=set)


class BusyItems:
    """Finds the busy items among those of ``known``.

    One thread asks what is withheld, and commits; another one calls ``review`` when the banks may have changed.
    ``withholds`` says whether the run sends bank matches at all. ``report`` takes the occurrences of this module.
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
        """The names of items that have matched."""
        self._names_of: object = None
        """The names that were held when those that have matched were last compared with them."""
        self._trial = _Trial()
        self._lock = threading.Lock()

    def withheld(self, verdicts: Iterable[Verdict]) -> list[bool]:
        """Return for each verdict of a batch whether its bank match is withheld; the batch counts once committed."""
        with self._lock:
            self._trial = trial = _Trial()
            return [self._is_withheld(verdict, trial) for verdict in verdicts]

    def commit(self) -> None:
        """Count the verdicts of the last call of ``withheld``, whose batch is committed."""
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
                self._show()

    def review(self) -> None:
        """Look at the banks, which may have changed: an item that was confirmed, changed or removed is not busy."""
        with self._lock:
            for item in sorted(item for item in self._busy if not self._is_current(item)):
                self._end(item, "it was confirmed, changed, disabled or removed, or has ended")
                # The same entry may be stated again later.
                del self._matches[item]
            self._show()

    def _is_withheld(self, verdict: Verdict, trial: _Trial) -> bool:
        if verdict.version is None:
            # A retraction is no article.
            return False
        trial.articles += 1
        if verdict.banks is msgspec.UNSET:
            return False
        # Each item counts, whatever the others are.
        busy = [self._is_busy(mention, trial) for mention in verdict.banks]
        denied = [place for place, mention in enumerate(verdict.banks) if mention.action == DENY]
        if not self._withholds or not denied or not all(busy[place] for place in denied):
            return False
        trial.withheld[verdict.banks[denied[0]].bank] += 1
        return True

    def _is_busy(self, mention: BankMention, trial: _Trial) -> bool:
        held = self._known.held(mention.bank, mention.item, mention.action)
        if held is not None:
            trial.names.add(joined_name((mention.bank, mention.item)))
            if held.is_confirmed:
                return False
        item = BusyItem(mention.bank, mention.item, mention.action, None if held is None else held.entry_digest)
        trial.matches[item] += 1
        if item in self._busy or item in trial.busy:
            return True
        matches, articles = self._matches[item] + trial.matches[item], self._articles + trial.articles
        if matches <= self._limit.matches(articles):
            return False
        trial.busy[item] = matches, articles
        return True

    def _is_current(self, item: BusyItem) -> bool:
        """Return whether articles are compared with the item as this entry states it, and it is not confirmed."""
        held = self._known.held(item.bank, item.item, item.action)
        return held is not None and held.entry_digest == item.entry_digest and not held.is_confirmed

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
            return "Bank matches that name no other item that is denied are withheld"
        return "Verdicts still name it"

    def _end(self, item: BusyItem, why: str) -> None:
        self._busy.remove(item)
        log.warning("The item %s of the bank %s no longer matches too much: %s.", item.item, item.bank, why)

    def _halve(self) -> None:
        """Forget half of the past; what has become quiet is no longer busy."""
        quiet = QUIET * self._limit.matches(self._articles)
        ended = sorted(item for item in self._busy if self._matches[item] < quiet)
        for item in ended:
            self._end(item, f"{self._matches[item]} of the last {self._articles} articles")
        self._articles //= 2
        self._matches = Counter({item: count // 2 for item, count in self._matches.items() if count > 1})
        if ended:
            self._show()

    def _show(self) -> None:
        names: Mapping[str, object] = self._known.names
        if names is not self._names_of:
            self._names = {name for name in self._names if name in names}
            self._names_of = names
        busy = Counter((item.bank, item.action) for item in self._busy)
        self._report(BankItemsCounted(busy, len(names) - len(self._names)))
