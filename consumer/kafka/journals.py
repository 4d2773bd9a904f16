"""Commits batches of topics: one journal for each delivery guarantee.

Neither counts verdicts or dead letters: a later run needs only the offsets of the group.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from typing_extensions import override

from consumer.kafka.message import Offsets
from consumer.kafka.offset_metadata import Ledger, Note, encode_note
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import OutcomeUnknown
from consumer.model.record import End, Partition
from consumer.model.verdict import Verdict
from consumer.pipeline.journal import Journal


class GroupSource(Protocol):
    """What a journal needs of a source that shares its partitions with other consumers of its group."""

    def begin(self, end: Offsets) -> Mapping[Partition, Note]:
        """Return the notes of a batch that is about to be judged. Raises ``Abandoned`` if its partitions are gone."""
        ...

    def commit(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """Have these offsets committed soon, with these notes. Raises ``Abandoned`` if its partitions are gone."""
        ...

    def done(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """Note that a transaction committed these offsets, with these notes."""
        ...

    def abandon(self) -> None:
        """Give up the current batch; partitions that stay resume at their last acknowledged offset."""
        ...

    def reread(self) -> None:
        """Give up the current batch; the brokers are asked where each partition resumes."""
        ...

    def group_metadata(self) -> Any:  # noqa: ANN401  # the client's own, passed on
        """Return this consumer's current group metadata. Raises ``Abandoned`` if the batch's partitions are gone."""
        ...


class Transactions(Protocol):
    """A sink that commits the offsets of the source together with what it wrote."""

    def commit(
        self,
        offsets: Mapping[Partition, int],
        group_metadata: Any,  # noqa: ANN401  # as above
        metadata: Mapping[Partition, str],
    ) -> None:
        """Commit the transaction, with the metadata of each offset.

        Raises ``Abandoned`` if it was not committed, ``OutcomeUnknown`` if that is not known.
        """
        ...

    def abort(self) -> None:
        """Abort the transaction."""
        ...


class KafkaJournal(Journal):
    """At least once: the source commits offsets some time after the sink was flushed.

    What the sink has of an abandoned batch is sent anyway; the consumer that judges the batch later sends it again.
    """

    def __init__(self, source: GroupSource, ledger: Ledger) -> None:
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

    @override
    def finish(self) -> None:
        """Do nothing: a topic has no end."""


class TransactionalJournal(Journal):
    """Exactly once: the transaction of the sink includes the offsets."""

    def __init__(self, source: GroupSource, sink: Transactions, ledger: Ledger) -> None:
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

    @override
    def finish(self) -> None:
        """Do nothing: a topic has no end."""


def _offsets(end: End) -> Offsets:
    if not isinstance(end, Offsets):
        raise TypeError("a batch of topics ends at offsets")
    return end
