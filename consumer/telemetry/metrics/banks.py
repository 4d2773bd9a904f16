"""Metrics of known texts."""

from typing import Final

import msgspec

from consumer.banks.known_texts import BankMatchesLimited, BanksRead, BanksUnreadable
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.telemetry.metrics.instruments import Group, Instruments, Label, Measure, reaction
from consumer.telemetry.source_names import OTHER, SourceNames

BANKS_MAX: Final = 100
"""Banks with series of their own."""

MATCHES: Final = Measure(
    "dupwatch_bank_matches_total",
    "counter",
    "Articles that repeat items of banks: each item of each article counts.",
    "matches",
    (Label("bank", (OTHER,), f"the first {BANKS_MAX} banks with a match"), Label("action", ("allow", "deny"))),
)
LIMITED: Final = Measure(
    "dupwatch_bank_matches_limited_total",
    "counter",
    "Articles that repeat more items of banks than a verdict names, or are alike more than are compared.",
    "articles",
)
ITEMS: Final = Measure("dupwatch_bank_items", "gauge", "Items of banks that articles are compared with.", "items")
FAILURES: Final = Measure(
    "dupwatch_bank_failures_total", "counter", "Attempts to read banks that cannot be used; they stay as they are.",
    "attempts",
)  # fmt: skip
INVALID: Final = Measure(
    "dupwatch_bank_entries_invalid_total", "counter", "Entries of banks that are not valid and were left out.",
    "entries",
)  # fmt: skip
GROUP: Final = Group("Banks", (MATCHES, LIMITED, ITEMS, FAILURES, INVALID))
REACTIONS: Final = (
    reaction(LIMITED, BankMatchesLimited, lambda limited: limited.articles),
    reaction(ITEMS, BanksRead, lambda read: read.items),
    reaction(FAILURES, BanksUnreadable),
    reaction(INVALID, BanksRead, lambda read: read.invalid),
)


class BankMetrics:
    """Counts what verdicts say of banks. Batches are reported by one thread."""

    def __init__(self, instruments: Instruments) -> None:
        self._matches = instruments.counter(MATCHES)
        self._names = SourceNames(BANKS_MAX)

    def listen(self, hooks: Hooks) -> None:
        """Count what is reported from now on."""
        hooks.on(BatchCommitted, self._committed)

    def _committed(self, batch: BatchCommitted) -> None:
        for verdict in batch.verdicts:
            if verdict.banks is not msgspec.UNSET:
                for mention in verdict.banks:
                    self._matches.labels(self._names.label(mention.bank), mention.action).inc()
