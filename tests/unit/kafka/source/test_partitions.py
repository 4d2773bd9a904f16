"""The bookkeeping of a consumer: no record is lost, and no offset is committed that was not answered or is not ours."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from consumer.kafka.message import Offsets, TopicRecord
from consumer.kafka.offset_metadata import EMPTY_NOTE, HoldReason, HoldRequest, Note
from consumer.kafka.source.partitions import Partitions
from consumer.kafka.source.progress import BEGINNING, CommitPoint, Start
from consumer.model.errors import Abandoned
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition, RawBatch
from tests.builders import raw_message
from tests.examples import examples

LIMITS = ReadLimits(batch_records_max=4, batch_bytes_max=1000)
P0, P1, P2 = ("t", 0), ("t", 1), ("t", 2)


def record(
    partition: Partition,
    offset: int,
    data: bytes = b"x",
    **fields: Any,  # noqa: ANN401  # as ``raw_message`` takes them
) -> TopicRecord:
    """A record of a partition."""
    topic, number = partition
    return raw_message(data, **{"key": b"k"} | fields, offset=offset, topic=topic, partition=number)


def records(partition: Partition, offsets: Iterable[int]) -> list[TopicRecord]:
    """Records of a partition."""
    return [record(partition, offset) for offset in offsets]


def owning(*partitions: Partition, at: int = 0) -> Partitions:
    """A bookkeeping that has these partitions, all committed up to an offset."""
    kept = Partitions(LIMITS, 2)
    kept.assign(dict.fromkeys(partitions, Start(at, committed=True)))
    return kept


def taken(kept: Partitions) -> RawBatch:
    """The next batch, which is there."""
    batch = kept.take()
    assert batch is not None
    return batch


def end_of(batch: RawBatch) -> Offsets:
    """Where the batch ends."""
    assert isinstance(batch.end, Offsets)
    return batch.end


def begun(kept: Partitions) -> Offsets:
    """The next batch, begun."""
    end = end_of(taken(kept))
    kept.begin(end)
    return end


def test_a_batch_has_what_was_delivered_and_where_it_ends() -> None:
    """Partitions take turns, each in its order, and the end of the batch is behind the last record of each."""
    kept = owning(P0, P1)
    kept.deliver([*records(P0, [0, 1]), record(P1, 7), record(P0, 5), record(P1, 8)])
    batch = taken(kept)
    assert [entry.start for entry in batch.records] == [0, 7, 1, 8]
    assert end_of(batch) == Offsets({P0: 2, P1: 9}, 0)
    assert [entry.start for entry in taken(kept).records] == [5]
    assert kept.take() is None


def test_batches_are_bounded_in_bytes() -> None:
    """A batch ends before the record that would make it too large; keys and headers count; one record always goes."""
    kept = owning(P0)
    kept.deliver([record(P0, 0, b"x" * 5000), record(P0, 1, b"x" * 600), record(P0, 2, b"x" * 600)])
    assert [len(taken(kept).records) for _ in range(3)] == [1, 1, 1]
    kept.deliver([record(P0, 3, b"", key=b"k" * 500, headers=(("h", b"v" * 600),)), record(P0, 4)])
    assert len(taken(kept).records) == 1


def test_what_is_buffered_is_bounded() -> None:
    """It is full at the batches that may be ahead, in records as in bytes, and overfull one batch later."""
    kept = owning(P0)
    assert (kept.room(), kept.room_bytes()) == (8, 2000)
    kept.deliver(records(P0, range(8)))
    assert (kept.room(), kept.is_overfull(), kept.has_full_batch()) == (0, False, True)
    kept.deliver(records(P0, range(8, 12)))
    assert kept.is_overfull()
    large = owning(P0)
    large.deliver([record(P0, 0, b"x" * 1500)])
    assert 0 < large.room_bytes() <= 500
    large.deliver([record(P0, 1, b"x" * 500)])
    assert large.room_bytes() == 0
    assert (large.room(), large.is_overfull(), large.has_full_batch()) == (0, False, True)
    large.deliver([record(P0, 2, b"x" * 1000)])
    assert large.is_overfull()


def test_nothing_comes_twice_or_from_elsewhere() -> None:
    """Records before the position, and of partitions that are not ours, are thrown away."""
    kept = owning(P0, at=5)
    kept.deliver([*records(P0, [3, 5, 5, 6, 4]), record(P1, 0)])
    assert [entry.start for entry in taken(kept).records] == [5, 6]


def test_a_batch_counts_once_it_is_acknowledged() -> None:
    """Before that there is nothing to commit, and afterwards the place behind it, with its leader's epoch."""
    kept = owning(P0)
    kept.deliver([record(P0, 0, leader_epoch=3), record(P0, 1, leader_epoch=4), record(P0, 2, leader_epoch=4)])
    end = begun(kept)
    kept.deliver([record(P0, 3, leader_epoch=5)])
    assert kept.uncommitted() == {}
    kept.acknowledge(end)
    assert kept.uncommitted() == {P0: CommitPoint(3, 4)}
    kept.note_committed(P0, CommitPoint(3, None))
    assert kept.uncommitted() == {}
    kept.acknowledge(begun(kept))
    assert kept.uncommitted() == {P0: CommitPoint(4, 5)}


def test_what_a_transaction_has_committed_is_not_committed_again() -> None:
    """It is the place to begin again, and the consumer has nothing to commit."""
    kept = owning(P0)
    kept.deliver(records(P0, range(3)))
    kept.acknowledge_committed(begun(kept))
    assert kept.uncommitted() == {}
    assert kept.owned() == {P0: CommitPoint(3, None)}


def test_a_start_at_the_beginning_is_never_committed() -> None:
    """It is no offset; a start at the end is one, and is committed before any record came."""
    kept = Partitions(LIMITS, 2)
    kept.assign({P0: Start(BEGINNING, committed=True), P1: Start(50, committed=False)})
    assert kept.uncommitted() == {P1: CommitPoint(50, None)}
    kept.deliver(records(P0, [17]))
    kept.revoke([])
    assert kept.seeks() == {P0: BEGINNING}


def test_a_revocation_voids_what_was_not_begun() -> None:
    """The begun batch counts, what was taken or buffered behind it does not, and is read again from behind it."""
    kept = owning(P0, P1)
    kept.deliver(records(P0, range(4)))
    end = begun(kept)
    kept.deliver([*records(P0, range(4, 7)), record(P1, 0), record(P0, 7)])
    prefetched = end_of(taken(kept))
    assert kept.revoke([P1]) is False
    kept.leave([P1], "gone")
    assert kept.buffered() == 0
    assert kept.seeks() == {P0: 4}
    kept.acknowledge(end)
    assert kept.uncommitted() == {P0: CommitPoint(4, None)}
    with pytest.raises(Abandoned):
        kept.begin(prefetched)


def test_until_a_seek_nothing_is_taken_in() -> None:
    """What the client still gives from before the seek is thrown away, also where its offset would fit."""
    kept = owning(P0)
    kept.deliver(records(P0, range(4)))
    kept.revoke([])
    kept.deliver(records(P0, [0, 4, 5]))
    assert kept.buffered() == 0
    kept.note_sought(P0, 3)
    assert kept.seeks() == {P0: 0}
    kept.note_sought(P0, 0)
    kept.deliver(records(P0, [0]))
    assert kept.buffered() == 1


def test_a_begun_batch_whose_partition_goes_is_waited_for_and_then_given_up() -> None:
    """Until the partition is gone the batch can be acknowledged; then it is void, and what stays is read again."""
    kept = owning(P0, P1)
    kept.deliver([*records(P0, range(2)), *records(P1, range(2))])
    end = begun(kept)
    assert kept.revoke([P1]) is True
    kept.check()
    kept.leave([P1], "gone")
    with pytest.raises(Abandoned, match="gone"):
        kept.check()
    with pytest.raises(Abandoned, match="gone"):
        kept.acknowledge(end)
    assert kept.uncommitted() == {}
    assert kept.seeks() == {P0: 0}
    kept.abandon()
    kept.check()


def test_a_begun_batch_that_is_finished_in_time_is_committed_before_its_partition_goes() -> None:
    """Acknowledged during the revocation it is there to be committed, for the leaving partition too."""
    kept = owning(P0, P1)
    kept.deliver([*records(P0, range(2)), *records(P1, range(2))])
    end = begun(kept)
    kept.revoke([P1])
    kept.acknowledge(end)
    assert kept.concerns([P1]) is False
    assert kept.uncommitted() == {P0: CommitPoint(2, None), P1: CommitPoint(2, None)}
    kept.leave([P1], "gone")
    assert kept.uncommitted() == {P0: CommitPoint(2, None)}
    assert kept.seeks() == {}


def test_a_batch_is_abandoned_by_its_judge() -> None:
    """Everything from its beginning on is read again, and what was prefetched is void."""
    kept = owning(P0)
    kept.deliver(records(P0, range(8)))
    end, prefetched = begun(kept), end_of(taken(kept))
    kept.abandon()
    assert kept.seeks() == {P0: 0}
    with pytest.raises(Abandoned):
        kept.begin(prefetched)
    with pytest.raises(ValueError, match="begun"):
        kept.acknowledge(end)


def test_abandoning_without_a_begun_batch_does_nothing() -> None:
    """A batch that could not be begun must not void the ones that were read since, which would go on for ever."""
    kept = owning(P0)
    kept.deliver(records(P0, range(4)))
    stale = end_of(taken(kept))
    kept.revoke([])
    kept.note_sought(P0, 0)
    kept.deliver(records(P0, range(4)))
    fresh = end_of(taken(kept))
    with pytest.raises(Abandoned):
        kept.begin(stale)
    kept.abandon()
    kept.begin(fresh)


def test_a_transaction_that_ended_after_the_deadline_still_counts() -> None:
    """Its offsets are committed, whatever we thought: the partition that stays is read on behind them."""
    kept = owning(P0, P1)
    kept.deliver([*records(P0, range(2)), *records(P1, range(2))])
    end = begun(kept)
    kept.revoke([P1])
    kept.leave([P1], "gone")
    kept.note_sought(P0, 0)
    kept.deliver(records(P0, range(2)))
    again = end_of(taken(kept))
    kept.acknowledge_committed(end)
    assert kept.seeks() == {}
    assert kept.position(P0) == 2
    with pytest.raises(Abandoned):
        kept.begin(again)


def test_a_late_transaction_takes_nothing_back() -> None:
    """A partition that went and came again, and is further by now, stays where it is."""
    kept = owning(P0)
    kept.deliver(records(P0, range(2)))
    end = begun(kept)
    kept.revoke([P0])
    kept.leave([P0], "gone")
    kept.assign({P0: Start(10, committed=True)})
    kept.acknowledge_committed(end)
    assert kept.owned() == {P0: CommitPoint(10, None)}


def test_batches_are_begun_in_order_and_one_at_a_time() -> None:
    """Anything else would acknowledge what was never judged, and is a defect."""
    kept = owning(P0)
    kept.deliver(records(P0, range(8)))
    first, second = end_of(taken(kept)), end_of(taken(kept))
    with pytest.raises(ValueError, match="order"):
        kept.begin(second)
    kept.begin(first)
    with pytest.raises(ValueError, match="after the previous one"):
        kept.begin(second)
    with pytest.raises(ValueError, match="begun"):
        kept.acknowledge(second)


def test_while_held_what_was_read_is_answered_and_nothing_more_is_taken_in() -> None:
    """Before a gap is bridged nothing is left in the judge's hands, and the place to begin again is behind it then."""
    kept = owning(P0, P1)
    kept.deliver(records(P0, range(5)))
    end = begun(kept)
    kept.suspend()
    kept.deliver(records(P1, [0]))
    assert (kept.room(), kept.is_overfull(), kept.unanswered()) == (0, False, True)
    kept.acknowledge(end)
    assert kept.unanswered()
    last = end_of(taken(kept))
    assert kept.unanswered()
    kept.begin(last)
    assert kept.unanswered()
    kept.acknowledge(last)
    assert not kept.unanswered()
    kept.jump(P0, 100)
    kept.resume()
    assert kept.uncommitted() == {P0: CommitPoint(100, None)}
    assert kept.seeks() == {P0: 100, P1: 0}
    assert kept.room() == 8


def test_a_jump_within_a_log_that_is_another_one() -> None:
    """All there is now is read, and committed, though the group knows of more."""
    kept = owning(P0, at=20)
    kept.suspend()
    kept.jump(P0, 0)
    kept.resume()
    kept.note_sought(P0, 0)
    assert kept.uncommitted() == {P0: CommitPoint(0, None)}
    kept.deliver(records(P0, [0]))
    kept.acknowledge(begun(kept))
    assert kept.uncommitted() == {P0: CommitPoint(1, None)}


def test_a_jump_of_a_partition_that_has_gone_does_nothing() -> None:
    """It may go while the brokers are asked for its gap."""
    kept = owning(P0)
    kept.jump(P1, 7)
    assert kept.owned() == {P0: CommitPoint(0, None)}


def test_in_transactions_the_group_is_told_of_a_gap_by_a_batch_without_records() -> None:
    """Once, with nothing in between; while it is held there is none; and one that was abandoned comes again."""
    kept = Partitions(LIMITS, 2, transactional=True)
    kept.assign({P0: Start(5, committed=True), P1: Start(BEGINNING, committed=True)})
    kept.suspend()
    kept.jump(P0, 100)
    assert kept.take() is None
    kept.resume()
    batch = taken(kept)
    assert (batch.records, end_of(batch).next) == ((), {P0: 100})
    assert kept.take() is None
    kept.begin(end_of(batch))
    assert kept.take() is None
    kept.abandon()
    kept.acknowledge_committed(begun(kept))
    assert kept.take() is None
    assert kept.uncommitted() == {}


def test_in_transactions_a_place_goes_with_records_of_others() -> None:
    """And those of its own partition have a later one."""
    kept = Partitions(LIMITS, 2, transactional=True)
    kept.assign({P0: Start(5, committed=True), P1: Start(0, committed=True)})
    kept.jump(P0, 100)
    kept.deliver(records(P1, [0]))
    assert end_of(taken(kept)).next == {P0: 100, P1: 1}
    kept.abandon()
    kept.revoke([])
    kept.note_sought(P0, 100)
    kept.deliver(records(P0, [100]))
    assert end_of(taken(kept)).next == {P0: 101}


def test_what_the_group_does_not_know_is_not_read() -> None:
    """Where a partition begins that the group has no place of is committed before anything of it is taken in."""
    kept = Partitions(LIMITS, 2)
    kept.assign({P0: Start(50, committed=False)})
    kept.deliver(records(P0, [50]))
    assert kept.buffered() == 0
    kept.note_committed(P0, CommitPoint(50, None))
    assert kept.seeks() == {P0: 50}
    kept.note_sought(P0, 50)
    kept.deliver(records(P0, [50]))
    assert kept.buffered() == 1


def test_a_transaction_tells_the_group_where_a_partition_begins() -> None:
    """By a batch without records, where the first commit did not come through."""
    kept = Partitions(LIMITS, 2, transactional=True)
    kept.assign({P0: Start(50, committed=False)})
    kept.deliver(records(P0, [50]))
    batch = taken(kept)
    assert (batch.records, end_of(batch).next) == ((), {P0: 50})
    kept.begin(end_of(batch))
    kept.acknowledge_committed(end_of(batch))
    assert kept.seeks() == {P0: 50}


def test_where_nobody_knows_what_was_committed_the_brokers_are_asked() -> None:
    """What they say counts; where the group has no place, nothing was committed, and it is where it was."""
    kept = Partitions(LIMITS, 2, transactional=True)
    kept.assign({P0: Start(3, committed=True), P1: Start(BEGINNING, committed=True), P2: Start(50, committed=False)})
    kept.deliver([*records(P0, range(3, 5)), *records(P1, range(2))])
    begun(kept)
    kept.lose_places()
    kept.deliver(records(P0, [5]))
    assert kept.buffered() == 0
    kept.restart({P0: Start(5, committed=True), P1: None, P2: None})
    assert kept.seeks() == {P0: 5, P1: BEGINNING, P2: 50}
    assert kept.uncommitted() == {P2: CommitPoint(50, None)}


def test_offsets_without_records_are_passed_over_once_all_before_them_is_answered() -> None:
    """What stands behind the last record of a partition, such as ends of transactions, is committed like a record."""
    kept = owning(P0)
    kept.deliver(records(P0, [0, 1]))
    kept.note_end(P0, 9)
    end = begun(kept)
    kept.pass_over()
    assert kept.position(P0) == 2
    kept.acknowledge(end)
    assert kept.uncommitted() == {P0: CommitPoint(2, None)}
    kept.pass_over()
    assert (kept.uncommitted(), kept.position(P0), kept.seeks()) == ({P0: CommitPoint(9, None)}, 9, {})
    kept.deliver([record(P0, 9)])
    assert begun(kept).next == {P0: 10}


def test_an_end_that_was_told_before_a_record_came_says_nothing_of_what_follows() -> None:
    """What was reached once was passed by a record since; and before a partition's beginning there is nothing."""
    kept = Partitions(LIMITS, 2)
    kept.assign({P0: Start(BEGINNING, committed=True)})
    kept.note_end(P0, 0)
    kept.pass_over()
    assert kept.uncommitted() == {}
    kept.note_end(P0, 5)
    kept.deliver([record(P0, 7)])
    kept.acknowledge(begun(kept))
    kept.pass_over()
    assert kept.uncommitted() == {P0: CommitPoint(8, None)}


@pytest.mark.parametrize("how", ["seek", "held", "lost", "gone", "unknown start"])
def test_an_end_counts_only_where_everything_before_it_was_taken_in(how: str) -> None:
    """What the client gave before a seek, or what was thrown away, is read again: its end must not be jumped to."""
    kept = Partitions(LIMITS, 2)
    kept.assign({P0: Start(0, committed=how != "unknown start")})
    if how == "seek":
        kept.rewind()
    elif how == "held":
        kept.suspend()
    elif how == "lost":
        kept.lose_places()
    elif how == "gone":
        kept.leave([P0], "gone")
    kept.deliver(records(P0, [0, 1]))
    kept.note_end(P0, 2)
    kept.pass_over()
    assert kept.position(P0) in {0, None}
    assert kept.uncommitted() in ({}, {P0: CommitPoint(0, None)})


def test_an_end_is_forgotten_where_reading_begins_again() -> None:
    """A batch that is given up is read again: what was behind it must not be jumped to before that."""
    kept = owning(P0)
    kept.deliver(records(P0, [0, 1]))
    kept.note_end(P0, 9)
    begun(kept)
    kept.abandon()
    kept.note_sought(P0, 0)
    kept.pass_over()
    assert (kept.position(P0), kept.uncommitted()) == (0, {})


def test_in_transactions_what_is_passed_over_is_told_by_a_batch_without_records() -> None:
    """The group hears of places only with a transaction."""
    kept = Partitions(LIMITS, 2, transactional=True)
    kept.assign({P0: Start(3, committed=True)})
    kept.note_end(P0, 8)
    assert kept.take() is None
    kept.pass_over()
    batch = taken(kept)
    assert (batch.records, end_of(batch).next) == ((), {P0: 8})
    kept.begin(end_of(batch))
    kept.note_end(P0, 12)
    kept.pass_over()
    kept.acknowledge_committed(end_of(batch))
    kept.pass_over()
    assert end_of(taken(kept)).next == {P0: 12}


HELD = HoldReason(bad=3, records=4)


def test_a_note_is_committed_with_the_offset_that_it_belongs_to() -> None:
    """Whoever begins a batch has the note of what was answered before it, committed or not."""
    kept = Partitions(LIMITS, 2)
    kept.assign({P0: Start(0, committed=True, note=Note(highest_ms=1)), P1: Start(0, committed=True)})
    kept.deliver(records(P0, range(4)))
    end = end_of(taken(kept))
    kept.deliver([*records(P0, [4]), record(P1, 0)])
    assert kept.begin(end) == {P0: Note(highest_ms=1)}
    assert kept.uncommitted() == {}
    kept.acknowledge(end, {P0: Note(highest_ms=2)})
    assert kept.uncommitted() == {P0: CommitPoint(4, None, Note(highest_ms=2))}
    end = end_of(taken(kept))
    assert kept.begin(end) == {P0: Note(highest_ms=2), P1: EMPTY_NOTE}
    kept.acknowledge_committed(end, {P0: Note(highest_ms=3), P1: Note(highest_ms=1)})
    assert kept.uncommitted() == {}
    assert kept.owned() == {P0: CommitPoint(5, None, Note(highest_ms=3)), P1: CommitPoint(1, None, Note(highest_ms=1))}


def test_a_held_partition_waits_where_it_was_answered_and_the_others_go_on() -> None:
    """The group is told beside the same offset; nothing of it is taken in, sought or in the way of others."""
    kept = owning(P0, P1, at=5)
    kept.deliver([*records(P0, range(5, 9)), *records(P0, range(9, 12)), record(P1, 5)])
    end = begun(kept)
    kept.hold_poisoned(end, {P0: HoldRequest(5, HELD)})
    kept.abandon()
    assert kept.holds()[P0] == HELD
    assert kept.uncommitted() == {P0: CommitPoint(5, None, Note(held=HELD))}
    assert kept.seeks() == {P1: 5}
    kept.note_sought(P1, 5)
    kept.deliver([*records(P0, range(5, 9)), *records(P1, range(5, 8))])
    assert kept.buffered() == 3
    kept.acknowledge(begun(kept), {P1: Note(highest_ms=1)})
    assert kept.uncommitted() == {
        P0: CommitPoint(5, None, Note(held=HELD)),
        P1: CommitPoint(8, None, Note(highest_ms=1)),
    }
    kept.note_committed(P0, CommitPoint(5, None, Note(held=HELD)))
    assert kept.uncommitted() == {P1: CommitPoint(8, None, Note(highest_ms=1))}


def test_a_partition_that_is_held_before_anything_was_committed_has_an_offset() -> None:
    """The beginning is none: the first record that came stands for it."""
    kept = owning(P0, at=BEGINNING)
    kept.deliver(records(P0, range(17, 21)))
    kept.hold_poisoned(begun(kept), {P0: HoldRequest(17, HELD)})
    kept.abandon()
    assert kept.uncommitted() == {P0: CommitPoint(17, None, Note(held=HELD))}


def test_nothing_is_taken_in_of_a_partition_that_comes_held() -> None:
    """Before the client has paused it, it may have fetched something."""
    kept = Partitions(LIMITS, 2)
    kept.assign({P0: Start(5, committed=True, note=Note(held=HELD))})
    kept.deliver(records(P0, [5]))
    assert kept.buffered() == 0


def test_the_end_of_a_held_partition_moves_nobody_past_its_records() -> None:
    """The client may report the end of what it fetched before the partition was paused."""
    kept = Partitions(LIMITS, 2)
    kept.assign({P0: Start(5, committed=True, note=Note(held=HELD))})
    kept.deliver(records(P0, [5]))
    kept.note_end(P0, 6)
    kept.pass_over()
    assert kept.position(P0) == 5
    assert kept.uncommitted() == {}


def test_of_a_batch_that_was_given_up_nothing_is_held() -> None:
    """Its partitions may be another's by now, or have come back further on."""
    kept = owning(P0, P1)
    kept.deliver([*records(P0, range(2)), *records(P1, range(2))])
    end = begun(kept)
    kept.revoke([P1])
    kept.leave([P1], "gone")
    with pytest.raises(Abandoned, match="gone"):
        kept.hold_poisoned(end, {P0: HoldRequest(0, HELD), P1: HoldRequest(0, HELD)})
    assert set(kept.holds().values()) == {None}


def test_in_transactions_a_hold_is_told_by_a_batch_without_records() -> None:
    """Once; and one whose end nobody knows is asked of the brokers, as its offset is."""
    kept = Partitions(LIMITS, 2, transactional=True)
    kept.assign({P0: Start(5, committed=True, note=Note(highest_ms=7))})
    kept.deliver(records(P0, range(5, 9)))
    kept.hold_poisoned(begun(kept), {P0: HoldRequest(5, HELD)})
    kept.abandon()
    batch = taken(kept)
    assert (batch.records, end_of(batch).next) == ((), {P0: 5})
    note = Note(highest_ms=7, held=HELD)
    assert kept.begin(end_of(batch)) == {P0: note}
    kept.acknowledge_committed(end_of(batch), {P0: note})
    assert kept.take() is None
    kept.lose_places()
    kept.restart({P0: Start(5, committed=True, note=note)})
    assert kept.holds()[P0] == HELD
    assert kept.take() is None
    kept.lose_places()
    kept.restart({P0: Start(5, committed=True)})
    assert set(kept.holds().values()) == {None}


def test_a_jump_keeps_the_note() -> None:
    """Records that were deleted unread change nothing of what is known of their partition."""
    kept = Partitions(LIMITS, 2)
    kept.assign({P0: Start(5, committed=True, note=Note(highest_ms=7))})
    kept.suspend()
    kept.jump(P0, 100)
    kept.resume()
    assert kept.uncommitted() == {P0: CommitPoint(100, None, Note(highest_ms=7))}


class Consumer(RuleBasedStateMachine):
    """A client, a judge and a second consumer do what they may at any time; a log of each partition never ends.

    ``answered`` is what counts for good: the group's offsets. The note of a place says how many records before it were
    ``judged``, and whether the partition is held. Each offset is delivered by a log in order from wherever
    the client stands, with holes, as compaction leaves them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept = Partitions(LIMITS, 2)
        self.group = dict.fromkeys((P0, P1, P2), 0)
        self.notes = dict.fromkeys((P0, P1, P2), EMPTY_NOTE)
        self.begun_notes: Mapping[Partition, Note] = {}
        self.judged: dict[Partition, set[int]] = {P0: set(), P1: set(), P2: set()}
        self.client: dict[Partition, int] = {}
        self.waiting: list[RawBatch] = []
        self.begun: RawBatch | None = None
        self.answered: dict[Partition, set[int]] = {P0: set(), P1: set(), P2: set()}

    @staticmethod
    def exists(offset: int) -> bool:
        """Every third record was compacted away."""
        return offset % 3 != 2

    @rule(partition=st.sampled_from([P0, P1, P2]))
    def assigned(self, partition: Partition) -> None:
        """A partition comes, with what the group has committed."""
        if partition not in self.client:
            self.kept.assign({partition: Start(self.group[partition], committed=True, note=self.notes[partition])})
            self.client[partition] = self.group[partition]

    @rule(partition=st.sampled_from([P0, P1, P2]), count=st.integers(1, 6))
    def delivered(self, partition: Partition, count: int) -> None:
        """The client gives what is there from where it stands."""
        if partition in self.client:
            begin = self.client[partition]
            arrived = records(partition, filter(self.exists, range(begin, begin + count)))
            self.client[partition] = begin + count
            self.kept.deliver(arrived)

    @rule(partition=st.sampled_from([P0, P1, P2]))
    def comes_to_the_end(self, partition: Partition) -> None:
        """The client says that for now nothing follows on what it gave."""
        if partition in self.client:
            self.kept.note_end(partition, self.client[partition])

    @rule()
    def passes_over(self) -> None:
        """Time for what has no records."""
        self.kept.pass_over()

    @rule()
    def sought(self) -> None:
        """The client goes where it has to."""
        for partition, offset in self.kept.seeks().items():
            self.client[partition] = offset
            self.kept.note_sought(partition, offset)

    @rule(partition=st.sampled_from([P0, P1, P2]))
    def fetched_before_the_callback(self, partition: Partition) -> None:
        """A record comes in the call in which a rebalance was answered, and may be of another time altogether."""
        if partition in self.client:
            self.kept.rewind()
            self.kept.deliver(records(partition, [self.client[partition] + 3]))

    @rule()
    def taken(self) -> None:
        """The judge's side reads ahead."""
        batch = self.kept.take()
        if batch is not None:
            self.waiting.append(batch)

    @precondition(lambda self: self.waiting and self.begun is None)
    @rule()
    def begins(self) -> None:
        """The judge begins the next batch."""
        batch = self.waiting.pop(0)
        try:
            self.begun_notes = self.kept.begin(end_of(batch))
        except Abandoned:
            self.kept.abandon()
            return
        self.begun = batch
        for partition, note in self.begun_notes.items():
            before = self.kept.owned()[partition].offset
            assert (note.highest_ms or 0) == sum(offset < before for offset in self.judged[partition])

    @precondition(lambda self: self.begun is not None)
    @rule(partition=st.sampled_from([P0, P1, P2]))
    def poisoned(self, partition: Partition) -> None:
        """A partition of the batch is held, and the batch abandoned."""
        assert self.begun is not None
        end = end_of(self.begun)
        if partition not in end.next:
            return
        self.begun = None
        with suppress(Abandoned):
            self.kept.hold_poisoned(end, {partition: HoldRequest(0, HELD)})
        self.kept.abandon()

    @rule(partition=st.sampled_from([P0, P1, P2]))
    def cannot_be_unpacked(self, partition: Partition) -> None:
        """The client fails on the batch that follows, often enough."""
        if self.kept.readable_position(partition) is not None:
            self.kept.block(partition, HoldRequest(self.client[partition], HELD))

    @rule()
    def holds_blocked(self) -> None:
        """A partition is held only with all that was read of it answered, and with nothing in hand that names it."""
        before = self.kept.holds()
        self.kept.hold_blocked()
        for partition, reason in self.kept.holds().items():
            if reason != before[partition]:
                assert self.kept.owned()[partition].offset == self.kept.position(partition)
                in_hand = [*self.waiting, *filter(None, [self.begun])]
                assert all(
                    partition not in end_of(end).next
                    for end in in_hand
                    if end_of(end).assignment == self.kept.assignment
                )

    @rule(partition=st.sampled_from([P0, P1, P2]))
    def resumed(self, partition: Partition) -> None:
        """A person lets a partition go on while nobody has it."""
        if partition not in self.client:
            self.notes[partition] = msgspec.structs.replace(self.notes[partition], held=None)

    @precondition(lambda self: self.begun is not None)
    @rule(in_transaction=st.booleans())
    def finishes(self, in_transaction: bool) -> None:  # noqa: FBT001
        """The judge has answered; in a transaction, only where the batch is still ours."""
        assert self.begun is not None
        batch, self.begun = self.begun, None
        try:
            self.kept.check()
        except Abandoned:
            self.kept.abandon()
            return
        for entry in batch.records:
            partition = entry.known_partition()
            assert partition in self.client, "answered for a partition that is not ours"
            assert entry.start not in self.answered[partition], "answered twice"
            assert self.begun_notes[partition].held is None, "answered of a partition that is held"
            self.answered[partition].add(entry.start)
            self.judged[partition].add(entry.start)
        notes = {
            partition: msgspec.structs.replace(note, highest_ms=len(self.judged[partition]))
            for partition, note in self.begun_notes.items()
        }
        if in_transaction:
            self.kept.acknowledge_committed(end_of(batch), notes)
            for partition, offset in end_of(batch).next.items():
                if offset >= self.group[partition]:
                    self.group[partition], self.notes[partition] = offset, notes[partition]
        else:
            self.kept.acknowledge(end_of(batch), notes)

    @rule(partition=st.sampled_from([P0, P1, P2]), count=st.integers(1, 6))
    def goes_unread(self, partition: Partition, count: int) -> None:
        """Records are deleted that nobody has read; with others in the judge's hands it is tried again later."""
        self.kept.suspend()
        position = self.kept.position(partition)
        if position is not None and not self.kept.unanswered():
            self.kept.jump(partition, position + count)
            self.answered[partition].update(filter(self.exists, range(position, position + count)))
        self.kept.resume()

    @precondition(lambda self: self.begun is not None)
    @rule()
    def gives_up(self) -> None:
        """The judge's transaction was aborted."""
        self.begun = None
        self.kept.abandon()

    @rule()
    def commits(self) -> None:
        """The client commits what may be committed."""
        for partition, place in self.kept.uncommitted().items():
            assert partition in self.client, "committed for a partition that is not ours"
            self.group[partition], self.notes[partition] = place.offset, place.note
            self.kept.note_committed(partition, place)

    @rule(partition=st.sampled_from([P0, P1, P2]), finished=st.booleans())
    def revoked(self, partition: Partition, finished: bool) -> None:  # noqa: FBT001
        """A partition goes; the judge finishes in time or not."""
        if partition not in self.client:
            return
        if self.kept.revoke([partition]) and finished:
            self.finishes(in_transaction=False)
        self.commits()
        self.kept.leave([partition], "gone")
        del self.client[partition]

    @rule(partition=st.sampled_from([P0, P1, P2]))
    def lost(self, partition: Partition) -> None:
        """A partition was gone before anybody was asked; what was answered and not committed is answered again."""
        if partition in self.client:
            self.kept.revoke([partition])
            self.kept.leave([partition], "lost")
            del self.client[partition]
            for kept in (self.answered, self.judged):
                kept[partition] = {offset for offset in kept[partition] if offset < self.group[partition]}

    @invariant()
    def nothing_is_passed_over(self) -> None:
        """Everything before a committed place was answered, and nothing was left out before what was answered."""
        for partition, offset in self.group.items():
            assert all(offset in self.answered[partition] for offset in filter(self.exists, range(offset)))
            answered = self.answered[partition]
            assert answered == set(filter(self.exists, range(max(answered, default=-1) + 1)))


Consumer.TestCase.settings = settings(examples(150), stateful_step_count=60)
TestConsumer = Consumer.TestCase
