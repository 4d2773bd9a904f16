"""Metrics of banks, their items and their matches."""

from collections import Counter
from typing import Final

import msgspec

from consumer.banks.busy_items import BankItemsCounted, BankMatchesWithheld
from consumer.banks.known_texts import BankMatchesLimited, BanksLoaded, BanksUnreadable
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.telemetry.metrics.instruments import Instruments, Label, Measure, MetricGroup, reaction
from consumer.telemetry.source_names import OTHER, SourceNames

BANKS_MAX: Final = 100
"""The maximum number of banks with series of their own."""

_BANK: Final = Label("bank", (OTHER,), f"the first {BANKS_MAX} banks with a match")
_ACTION: Final = Label("action", ("allow", "deny"))

MATCHES: Final = Measure(
    "dupwatch_bank_matches_total",
    "counter",
    "Matches of articles with bank items. An article that matches several items counts once for each.",
    "matches",
    (_BANK, _ACTION),
)
WITHHELD: Final = Measure(
    "dupwatch_bank_matches_withheld_total",
    "counter",
    "Bank matches not sent because all denied items in them are busy, counted for the bank of the first denied item.",
    "messages",
    (_BANK,),
)
LIMITED: Final = Measure(
    "dupwatch_bank_matches_limited_total",
    "counter",
    "Articles that repeat more bank items than a verdict names, or have more candidates than are compared.",
    "articles",
)
ITEMS: Final = Measure("dupwatch_bank_items", "gauge", "Bank items that articles are compared with.", "items")
BUSY: Final = Measure(
    "dupwatch_bank_items_busy",
    "gauge",
    "Items that match more than banks.busy_share of the articles, and are not confirmed.",
    "items",
    (_BANK, _ACTION),
)
UNMATCHED: Final = Measure(
    "dupwatch_bank_items_unmatched", "gauge", "Items that no article has matched since this process started.", "items"
)
FAILURES: Final = Measure(
    "dupwatch_bank_failures_total", "counter", "Failed attempts to read the banks; the known banks stay in use.",
    "attempts",
)  # fmt: skip
INVALID: Final = Measure(
    "dupwatch_bank_entries_invalid_total", "counter", "Invalid entries of banks, which were left out.",
    "entries",
)  # fmt: skip
GROUP: Final = MetricGroup("Banks", (MATCHES, WITHHELD, LIMITED, ITEMS, BUSY, UNMATCHED, FAILURES, INVALID))
REACTIONS: Final = (
    reaction(LIMITED, BankMatchesLimited, lambda limited: limited.articles),
    reaction(ITEMS, BanksLoaded, lambda read: read.items),
    reaction(UNMATCHED, BankItemsCounted, lambda counted: counted.unmatched),
    reaction(FAILURES, BanksUnreadable),
    reaction(INVALID, BanksLoaded, lambda read: read.invalid),
)


class BankMetrics:
    """Counts of bank matches and busy items. Only one thread may report batches."""

    def __init__(self, instruments: Instruments) -> None:
        self._matches = instruments.counter(MATCHES)
        self._withheld = instruments.counter(WITHHELD)
        self._busy = instruments.gauge(BUSY)
        self._busy_labels: set[tuple[str, str]] = set()
        self._names = SourceNames(BANKS_MAX)

    def listen(self, hooks: Hooks) -> None:
        """Count occurrences from now on."""
        hooks.on(BatchCommitted, self._count_matches)
        hooks.on(BankMatchesWithheld, self._count_withheld)
        hooks.on(BankItemsCounted, self._show_busy)

    def _count_matches(self, batch: BatchCommitted) -> None:
        for verdict in batch.verdicts:
            if verdict.banks is not msgspec.UNSET:
                for mention in verdict.banks:
                    self._matches.labels(self._names.label(mention.bank), mention.action).inc()

    def _count_withheld(self, withheld: BankMatchesWithheld) -> None:
        for bank, count in withheld.by_bank.items():
            self._withheld.labels(self._names.label(bank)).inc(count)

    def _show_busy(self, counted: BankItemsCounted) -> None:
        busy: Counter[tuple[str, str]] = Counter(dict.fromkeys(self._busy_labels, 0))
        for (bank, action), items in counted.busy.items():
            busy[self._names.label(bank), action] += items
        for labels, items in busy.items():
            self._busy.labels(*labels).set(items)
        self._busy_labels = {labels for labels, items in busy.items() if items}
