"""Busy items in the loop: a batch counts once it is committed, and is withheld alike each time it is judged."""

from collections.abc import Sequence

import pytest
from typing_extensions import override

from consumer.banks.bank import Bank, BankItem
from consumer.banks.busy_items import BankMatchesWithheld, BusyItems, BusyLimit
from consumer.banks.known_texts import KnownTexts
from consumer.fingerprint import Fingerprinter, Scheme
from consumer.judge.detector import Detector
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import Abandoned
from consumer.model.record import End
from consumer.model.verdict import Verdict
from consumer.workers.word_files import load_lexicon
from storage.memory import MemoryStore
from tests.unit.pipeline.fakes import SETTINGS, TEXT, Ends, NotingJournal, line, pipeline


class LosingJournal(NotingJournal):
    """Loses its first batch when that is about to be committed."""

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        if "lost" not in self.steps:
            self.steps.append("lost")
            raise Abandoned("its transaction was lost")
        super().commit(end, verdicts, letters)


@pytest.fixture(scope="module")
def known() -> KnownTexts:
    """Return a process that holds the text of all articles."""
    known = KnownTexts(Fingerprinter(Scheme(), load_lexicon()), SETTINGS, lambda: 10_000)
    known.change([Bank(bank="spam", action="deny"), BankItem(bank="spam", item="cold", text=TEXT)])
    return known


def test_a_batch_that_is_lost_counts_nothing(known: KnownTexts) -> None:
    """What is delivered again begins with the counts before it."""
    batch = [line("a"), line("b"), line("c")]
    ends, store = Ends(batch, batch, [line("d")]), MemoryStore()
    ends.journal = LosingJournal(ends.steps)
    running = pipeline(ends, store)
    running.detector = Detector(store, SETTINGS, lambda: 10_000, with_bank_matches=known.with_matches)
    reports: list[object] = []
    running.busy_items = BusyItems(known, BusyLimit(0.5, 4), reports.append, withholds=True)
    running.run()
    assert "abandoned" in ends.steps
    assert [(answer.event.verdict.id, answer.match_withheld) for answer in ends.sink.answers] == [
        ("a", False), ("b", False), ("c", True), ("a", False), ("b", False), ("c", True), ("d", True),
    ]  # fmt: skip
    assert ends.sink.events[:3] == ends.sink.events[3:6]
    withheld = [each.by_bank for each in reports if isinstance(each, BankMatchesWithheld)]
    assert withheld == [{"spam": 1}, {"spam": 1}]


def test_without_banks_nothing_is_withheld() -> None:
    """Every answer says so."""
    ends = Ends([line("a"), line("b")])
    pipeline(ends, MemoryStore()).run()
    assert [answer.match_withheld for answer in ends.sink.answers] == [False, False]
