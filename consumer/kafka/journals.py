"""Commits batches of topics: one journal for each delivery guarantee.

Neither counts verdicts or dead letters: a later run needs only the offsets of the group.
"""

from collections.abc import Sequence

from typing_extensions import override

from consumer.kafka.message import Offsets
from consumer.kafka.offset_metadata import Ledger, encode_note
from consumer.kafka.sink.transactions import TransactionalOutbox
from consumer.kafka.source.group_source import KafkaSource
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import OutcomeUnknown
from consumer.model.record import End
from consumer.model.verdict import Verdict
from consumer.pipeline.journal import Journal


class KafkaJournal(Journal):
    """At least once: the source commits offsets some time after the sink was flushed.

    What the sink has of an abandoned batch is sent anyway; the consumer that judges the batch later sends it again.
    """

    def __init__(self, source: KafkaSource, ledger: Ledger) -> None:
        self._source = source
        self._ledger = ledger

    @override
    def begin(self, end: End) -> None:
        self._ledger.begin(self._source.begin(_offsets(end)))

    @override
    def abandon(self) -> None:
        self._source.abandon()

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        self._source.commit(_offsets(end), self._ledger.notes)


class TransactionalJournal(Journal):
    """Exactly once: the transaction of the sink includes the offsets."""

    def __init__(self, source: KafkaSource, sink: TransactionalOutbox, ledger: Ledger) -> None:
        self._source = source
        self._sink = sink
        self._ledger = ledger
        self._unknown = False

    @override
    def begin(self, end: End) -> None:
        self._unknown = False
        self._ledger.begin(self._source.begin(_offsets(end)))

    @override
    def abandon(self) -> None:
        # The sink first: the source asks the brokers what was committed.
        self._sink.abort()
        if self._unknown:
            self._source.reread()
        else:
            self._source.abandon()

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        offsets, notes = _offsets(end), self._ledger.notes
        metadata = {partition: encode_note(note) for partition, note in notes.items()}
        try:
            self._sink.commit(offsets.next, self._source.group_metadata(), metadata)
        except OutcomeUnknown:
            self._unknown = True
            raise
        self._source.done(offsets, notes)


def _offsets(end: End) -> Offsets:
    if not isinstance(end, Offsets):
        raise TypeError("a batch of topics ends at offsets")
    return end
