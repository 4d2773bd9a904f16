"""The limit on bad records: a few become dead letters, too many hold their partition."""

from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.kafka.message import Offsets
from consumer.kafka.offset_metadata import HoldReason, HoldRequest, Ledger, Note
from consumer.kafka.source.holds import PartitionGate
from consumer.model.dead_letter import LetterPosition, dead_letter
from consumer.model.errors import Abandoned, BadRecord
from consumer.model.ports import Rejection
from consumer.model.record import Partition, RawBatch, RawRecord
from consumer.pipeline.dead_letter_policy import WINDOW_COUNTS_MAX, PoisonLimit, Window, totals

P0, P1 = ("articles", 0), ("articles", 1)


def exceeded(limit: PoisonLimit, batches: Iterable[tuple[int, int]], window: Window = ()) -> tuple[bool, Window]:
    """Whether the limit is exceeded after all of these, and was not before the last; and the window then."""
    over = False
    for records, bad in batches:
        assert not over
        window = limit.advance(window, records, bad)
        over = limit.is_exceeded(window)
    return over, window


def test_a_few_records_say_nothing_yet() -> None:
    """Below the minimum number of records no share is too much."""
    over, window = exceeded(PoisonLimit(0.5, 100), [(10, 10)] * 9)
    assert not over
    over, window = exceeded(PoisonLimit(0.5, 100), [(10, 5)], window)
    assert over
    assert totals(window) == (100, 95)


def test_the_share_itself_is_allowed() -> None:
    """Half is not more than half."""
    over, window = exceeded(PoisonLimit(0.5, 100), [(10, 5)] * 1_001)
    assert not over
    assert exceeded(PoisonLimit(0.5, 100), [(10, 6)], window)[0]


def test_what_was_good_long_ago_does_not_count() -> None:
    """A feed that turned bad is held soon, after any number of good records."""
    _, window = exceeded(PoisonLimit(0.5, 100), [(10, 0)] * 10_000)
    assert exceeded(PoisonLimit(0.5, 100), [(1, 1)] * 50 + [(15, 15)], window)[0]


def test_what_was_bad_long_ago_does_not_count_either() -> None:
    """A corrected feed continues."""
    assert exceeded(PoisonLimit(0.5, 10), [(9, 9), (1, 1)])[0]
    assert not exceeded(PoisonLimit(0.9, 10), [(10, 9), *[(10, 1)] * 20])[0]


def test_a_share_of_one_is_never_exceeded() -> None:
    """With a share of 1 the limit is off."""
    assert not exceeded(PoisonLimit(1.0, 1), [(10, 10)] * 100)[0]


@given(
    st.floats(0, 1),
    st.integers(1, 2_000),
    st.lists(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=60),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=WINDOW_COUNTS_MAX).map(tuple),
)
def test_a_window_has_the_last_records_and_stays_small(
    share_max: float, records_min: int, batches: Sequence[tuple[int, int]], before: Window
) -> None:
    """For any batch sizes, and after the limit was changed."""
    limit, window = PoisonLimit(share_max, records_min), before
    for at, (records, bad) in enumerate(batches):
        window = limit.advance(window, records, bad)
        assert len(window) <= WINDOW_COUNTS_MAX
        if not before:
            seen = [*batches[: at + 1]]
            assert totals(window)[0] >= min(records_min, sum(number for number, _ in seen))
            # All but a 20th, and the batches at both ends.
            assert totals(window)[0] < records_min + records_min / 20 + 2 * 300


def record(partition: Partition, offset: int) -> RawRecord:
    """A record of a partition."""
    return RawRecord(0, offset, b"x", 1, None, None, partition=partition)


class Gate:
    """A gate over notes that outlive it, as those of a group do; notes what it holds."""

    def __init__(self, share_max: float = 0.5, records_min: int = 10) -> None:
        self.notes: dict[Partition, Note] = {}
        self.holdings: Mapping[Partition, HoldRequest] = {}
        self.ledger = Ledger()
        self.gate = PartitionGate(PoisonLimit(share_max, records_min), self.ledger, self._hold)

    def _hold(self, end: Offsets, holdings: Mapping[Partition, HoldRequest]) -> None:
        del end
        self.holdings = holdings

    def see(self, *parts: tuple[Partition, Sequence[int], Sequence[int]]) -> None:
        """A batch of offsets of partitions, some of which are bad."""
        records = {(part, offset): record(part, offset) for part, offsets, _ in parts for offset in offsets}
        bad = [records[part, offset] for part, _, offsets in parts for offset in offsets]
        letter = dead_letter(BadRecord("invalid_json", "x"), LetterPosition(source="s", line=0, offset=0), b"")
        letters = [Rejection(bad_record, letter) for bad_record in bad]
        end = Offsets({part: max(offsets) + 1 for part, offsets, _ in parts}, 0)
        self.ledger.begin({part: self.notes.get(part, Note()) for part, _, _ in parts})
        self.gate.before_judging(RawBatch(tuple(records.values()), end), letters)
        self.notes |= self.ledger.notes


def test_each_partition_is_counted_by_itself() -> None:
    """A bad partition is held where its part of the batch begins; a good one beside it is not."""
    given = Gate()
    given.see((P0, range(6), range(6)), (P1, range(40), []))
    with pytest.raises(Abandoned, match="articles:0 is held"):
        given.see((P0, range(6, 12), range(6, 12)), (P1, range(40, 80), []))
    assert given.holdings == {P0: HoldRequest(6, HoldReason(bad=12, records=12, reason="invalid_json"))}
    assert totals(given.notes[P0].window) == (6, 6)


def test_a_good_batch_holds_nothing() -> None:
    """After the limit was lowered, a partition is held only when its next bad record arrives."""
    given = Gate()
    given.notes[P0] = Note(window=((10, 8),))
    given.see((P0, [10], []))
    with pytest.raises(Abandoned):
        given.see((P0, [11], [11]))


def test_what_a_person_let_through_does_not_count() -> None:
    """Records up to the named offset do not count; later ones do."""
    given = Gate()
    given.notes[P0] = Note(free_until=100)
    given.see((P0, range(50), range(50)))
    assert given.notes[P0] == Note(free_until=100)
    given.see((P0, range(90, 105), range(90, 105)))
    assert given.notes[P0] == Note(window=((5, 5),))
    with pytest.raises(Abandoned):
        given.see((P0, range(105, 112), range(105, 112)))
