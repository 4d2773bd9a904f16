"""When a batch of a topic counts: the journals of the two ways of delivery.

Neither counts verdicts or letters: the group's offsets are all that a later run needs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from consumer.kafka.offset_metadata import Note, encode_note
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import OutcomeUnknown
from consumer.model.record import End, Offsets, Partition
from consumer.model.verdict import Verdict
from consumer.pipeline.partition_notes import Ledger


class GroupSource(Protocol):
    """A source whose partitions are shared with other consumers of its group, as its journal sees it."""

    def begin(self, end: Offsets) -> Mapping[Partition, Note]:
        """The batch is about to be judged, and these are its notes; raises ``Abandoned`` where its partitions went."""
        ...

    def commit(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """These offsets may be committed, with these notes; raises ``Abandoned`` where its partitions went."""
        ...

    def done(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """These offsets were committed in a transaction, with these notes."""
        ...

    def abandon(self) -> None:
        """The batch that was begun is given up, and every partition that stays goes on where it was acknowledged."""
        ...

    def reread(self) -> None:
        """The same, but where each partition goes on is asked of the brokers."""
        ...

    def group_metadata(self) -> Any:  # noqa: ANN401  # the client's own, handed on
        """Who this consumer is in its group just now; raises ``Abandoned`` where the batch's partitions went."""
        ...


class Transactions(Protocol):
    """A sink that commits the source's offsets with what it wrote."""

    def commit(
        self,
        offsets: Mapping[Partition, int],
        group_metadata: Any,  # noqa: ANN401  # as above
        metadata: Mapping[Partition, str],
    ) -> None:
        """All of it counts, with the metadata of each offset.

        Raises ``Abandoned`` where nothing does, ``OutcomeUnknown`` where nobody knows.
        """
        ...

    def abort(self) -> None:
        """Nothing of it counts."""
        ...


class KafkaJournal:
    """At least once: offsets are committed after the sink was flushed, by the source, some time later.

    What a sink has of a batch that was abandoned is sent all the same; whoever judges the batch sends it again.
    """

    def __init__(self, source: GroupSource, ledger: Ledger) -> None:
        self._source = source
        self._ledger = ledger

    def begin(self, end: End) -> None:
        """As the port says."""
        self._ledger.begin(self._source.begin(_offsets(end)))

    def abandon(self) -> None:
        """As the port says."""
        self._source.abandon()

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:  # noqa: ARG002
        """As the port says."""
        self._source.commit(_offsets(end), self._ledger.notes)

    def finish(self) -> None:
        """Nothing: a topic has no end."""


class TransactionalJournal:
    """Exactly once: the sink's transaction has the offsets as well."""

    def __init__(self, source: GroupSource, sink: Transactions, ledger: Ledger) -> None:
        self._source = source
        self._sink = sink
        self._ledger = ledger
        self._unknown = False

    def begin(self, end: End) -> None:
        """As the port says."""
        self._unknown = False
        self._ledger.begin(self._source.begin(_offsets(end)))

    def abandon(self) -> None:
        """As the port says. The sink comes first: the source asks the brokers what was committed."""
        self._sink.abort()
        if self._unknown:
            self._source.reread()
        else:
            self._source.abandon()

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:  # noqa: ARG002
        """As the port says."""
        offsets, notes = _offsets(end), self._ledger.notes
        metadata = {partition: encode_note(note) for partition, note in notes.items()}
        try:
            self._sink.commit(offsets.next, self._source.group_metadata(), metadata)
        except OutcomeUnknown:
            self._unknown = True
            raise
        self._source.done(offsets, notes)

    def finish(self) -> None:
        """Nothing: a topic has no end."""


def _offsets(end: End) -> Offsets:
    if not isinstance(end, Offsets):
        raise TypeError("the places of a topic are offsets")
    return end
