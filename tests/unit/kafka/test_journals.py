"""The journals of both delivery guarantees: what they call, and in which order."""

from collections.abc import Mapping
from typing import Any

import pytest

from consumer.files.lines import Position
from consumer.kafka.message import Offsets
from consumer.kafka.offset_metadata import Ledger, Note
from consumer.kafka.opening import KafkaJournal, TransactionalJournal
from consumer.model.errors import Abandoned, OutcomeUnknown
from consumer.model.record import Partition

P0 = ("articles", 0)
END = Offsets({P0: 7}, 3)
BEFORE, AFTER = Note(highest_ms=8), Note(highest_ms=9)


class Told:
    """A source and a sink that note their calls; ``raising`` is what the sink's commit raises."""

    def __init__(self, raising: Exception | None = None) -> None:
        self.calls: list[object] = []
        self.raising = raising

    def begin(self, end: Offsets) -> Mapping[Partition, Note]:
        """As a source or an outbox does."""
        self.calls.append(("begin", end))
        return {P0: BEFORE}

    def note_committed(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """As a source or an outbox does."""
        self.calls.append(("note_committed", end, dict(notes)))

    def abandon(self) -> None:
        """As a source or an outbox does."""
        self.calls.append("abandon")

    def reset_positions(self) -> None:
        """As a source or an outbox does."""
        self.calls.append("reset_positions")

    def abort(self) -> None:
        """As a source or an outbox does."""
        self.calls.append("abort")

    def group_metadata(self) -> str:
        """As a source or an outbox does."""
        return f"metadata {len(self.calls)}"

    def commit(self, end: object, *more: object) -> None:
        """As a source does, or an outbox."""
        self.calls.append(("commit", end, *more))
        if self.raising is not None:
            raise self.raising


def told(raising: Exception | None = None) -> Any:  # noqa: ANN401  # in place of a source or an outbox
    """What notes its calls."""
    return Told(raising)


def test_at_least_once_the_source_commits() -> None:
    """A batch is begun, committed and given up at the source."""
    source, ledger = told(), Ledger()
    journal = KafkaJournal(source, ledger)
    journal.begin(END)
    assert ledger.note(P0) == BEFORE
    ledger.put(P0, AFTER)
    journal.commit(END, [], [])
    journal.abandon()
    journal.finish()
    assert source.calls == [("begin", END), ("commit", END, {P0: AFTER}), "abandon"]


def test_exactly_once_the_sink_commits_before_the_source_hears_of_it() -> None:
    """Each commit uses fresh group metadata, and the source learns of it afterwards."""
    source, sink, ledger = told(), told(), Ledger()
    journal = TransactionalJournal(source, sink, ledger)
    for number in (1, 3):
        journal.begin(END)
        assert ledger.note(P0) == BEFORE
        ledger.put(P0, AFTER)
        journal.commit(END, [], [])
        assert sink.calls[-1] == ("commit", END.next, f"metadata {number}", {P0: '{"dupwatch":1,"highest_ms":9}'})
        assert source.calls[-1] == ("note_committed", END, {P0: AFTER})
    journal.finish()


@pytest.mark.parametrize(("error", "then"), [(Abandoned("x"), "abandon"), (OutcomeUnknown("x"), "reset_positions")])
def test_what_was_not_committed_is_read_again(error: Exception, then: str) -> None:
    """The sink aborts; if the outcome of a commit is unknown, the brokers are asked, once."""
    source, sink = told(), told(error)
    journal = TransactionalJournal(source, sink, Ledger())
    journal.begin(END)
    with pytest.raises(type(error)):
        journal.commit(END, [], [])
    journal.abandon()
    assert sink.calls[-1] == "abort"
    assert source.calls == [("begin", END), then]
    journal.begin(END)
    journal.abandon()
    assert source.calls[2:] == [("begin", END), "abandon"]


def test_a_place_in_a_file_is_no_offset() -> None:
    """A journal of a topic refuses a batch of a file."""
    with pytest.raises(TypeError, match="offsets"):
        KafkaJournal(told(), Ledger()).begin(Position())
