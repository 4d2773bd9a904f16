"""When a batch that the client cannot unpack holds its partition: the counting, and what the client's thread does."""

from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError

from consumer.kafka.message import Offsets, TopicRecord
from consumer.kafka.offset_metadata import HoldReason, Note, decode_note, encode_note
from consumer.kafka.source.handover import Handover
from consumer.kafka.source.partitions import Partitions
from consumer.kafka.source.progress import BEGINNING, CommitPoint, Start
from consumer.kafka.source.unpacking import FAILURES_MAX, AttemptCounter, UnpackingFailures, is_final
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition
from tests.builders import raw_message

P0, P1 = ("t", 0), ("t", 1)
TOO_LARGE = KafkaError(KafkaError._BAD_COMPRESSION)
BAD_CHECKSUM = KafkaError(KafkaError._BAD_MSG)
HELD = HoldReason(bad=0, records=0, reason="bad_compression", batch_offset=7)


def records(partition: Partition, *offsets: int) -> list[TopicRecord]:
    """Records of a partition."""
    topic, number = partition
    return [raw_message(b"x", b"k", offset=offset, topic=topic, partition=number) for offset in offsets]


class Given:
    """Two partitions of ours, and the counting of what cannot be unpacked of them."""

    def __init__(self, at: int = 5, *, transactional: bool = False) -> None:
        self.partitions = Partitions(ReadLimits(batch_records_max=4), 2, transactional=transactional)
        self.partitions.assign({partition: Start(at, committed=True) for partition in (P0, P1)})
        self.unpacking = UnpackingFailures(Handover(self.partitions))

    def fail(self, times: int, offset: int = 7, error: KafkaError = TOO_LARGE) -> None:
        """The client cannot unpack the batch of P0 at an offset, so many times."""
        for _ in range(times):
            self.unpacking.note_failure(error, P0, offset)

    def held(self) -> HoldReason | None:
        """Why P0 is held by now."""
        self.partitions.hold_blocked()
        return self.partitions.holds()[P0]

    def begin(self) -> Offsets:
        """Begin the next batch."""
        batch = self.partitions.take()
        assert batch is not None
        assert isinstance(batch.end, Offsets)
        self.partitions.begin(batch.end)
        return batch.end


def test_only_attempts_on_one_batch_at_one_position_count() -> None:
    """Progress, another batch, and having been away start the count again; other partitions have their own."""
    attempts = AttemptCounter()
    assert [attempts.count_failure(P0, 5, 7) for _ in range(3)] == [1, 2, 3]
    assert attempts.count_failure(P1, 5, 7) == 1
    assert attempts.count_failure(P0, 6, 7) == 1
    assert attempts.count_failure(P0, 6, 8) == 1
    assert attempts.count_failure(P0, 6, 8) == 2
    attempts.forget(P0)
    assert attempts.count_failure(P0, 6, 8) == 1
    attempts.forget(P0)
    attempts.forget(P0)


def test_a_reader_that_does_not_seek_back_ends_before_records_are_lost() -> None:
    """The client goes on behind a batch with a wrong checksum by itself."""
    assert [is_final(TOO_LARGE, times) for times in (1, FAILURES_MAX - 1, FAILURES_MAX)] == [False, False, True]
    assert is_final(BAD_CHECKSUM, 1)


def test_damage_that_heals_holds_nothing() -> None:
    """One attempt less, and then the batch comes; after that it takes all attempts again."""
    given = Given()
    given.fail(FAILURES_MAX - 1, 5)
    given.partitions.deliver(records(P0, 5, 6))
    given.partitions.acknowledge(given.begin())
    given.fail(FAILURES_MAX - 1)
    assert given.held() is None
    given.fail(1)
    assert given.held() == HELD


def test_all_records_before_the_batch_are_answered_first() -> None:
    """Buffered, taken, begun: until then it is not held, and what still comes from behind it is not taken in."""
    given = Given()
    given.partitions.deliver(records(P0, 5, 6))
    given.fail(FAILURES_MAX)
    given.partitions.deliver(records(P0, 9))
    given.partitions.note_end(P0, 20)
    given.partitions.pass_over()
    assert given.held() is None
    end = given.begin()
    assert given.held() is None
    given.partitions.acknowledge(end, {P0: Note(highest_ms=3)})
    assert given.held() == HELD
    assert given.partitions.uncommitted() == {P0: CommitPoint(7, None, Note(highest_ms=3, held=HELD))}
    given.partitions.deliver(records(P1, 5))
    given.partitions.acknowledge(given.begin())
    assert given.partitions.uncommitted()[P1] == CommitPoint(6, None)


def test_where_a_batch_before_it_is_given_up_its_records_are_read_again() -> None:
    """The hold is forgotten, since the position has gone back; the batch is met again."""
    given = Given()
    given.partitions.deliver(records(P0, 5, 6))
    given.fail(FAILURES_MAX)
    given.begin()
    given.partitions.abandon()
    assert given.held() is None
    assert given.partitions.seeks() == {P0: 5}
    given.fail(FAILURES_MAX)
    assert given.held() is None
    given.partitions.note_sought(P0, 5)
    given.partitions.deliver(records(P0, 5, 6))
    given.partitions.acknowledge(given.begin())
    given.fail(FAILURES_MAX)
    assert given.held() == HELD


def test_a_batch_in_hand_that_names_the_partition_does_not_undo_the_hold() -> None:
    """In transactions a batch without records may tell the group a place; its notes were given before the hold."""
    given = Given(BEGINNING, transactional=True)
    given.partitions.note_end(P0, 7)
    given.partitions.pass_over()
    end = given.begin()
    assert end.next == {P0: 7}
    given.fail(FAILURES_MAX)
    assert given.held() is None
    given.partitions.acknowledge_committed(end, {P0: Note()})
    assert given.held() == HELD
    assert given.begin().next == {P0: 7}


def test_a_partition_that_begins_with_the_batch_has_an_offset() -> None:
    """The beginning is none, and cannot be committed."""
    given = Given(BEGINNING)
    given.fail(FAILURES_MAX)
    assert given.held() == HELD
    assert given.partitions.uncommitted() == {P0: CommitPoint(7, None, Note(held=HELD))}


def test_what_the_client_skips_is_sought_back() -> None:
    """Behind a wrong checksum the client goes on: nothing of that is taken in, and the batch is fetched again."""
    given = Given()
    for _ in range(FAILURES_MAX - 1):
        given.fail(1, 5, BAD_CHECKSUM)
        given.partitions.deliver(records(P0, 9))
        assert given.partitions.seeks() == {P0: 5}
        given.partitions.note_sought(P0, 5)
    given.fail(1, 5, BAD_CHECKSUM)
    assert given.held() == HoldReason(bad=0, records=0, reason="bad_msg", batch_offset=5)
    assert given.partitions.buffered() == 0


@pytest.mark.parametrize("state", ["not ours", "not sought", "held"])
def test_what_is_not_read_is_not_counted(state: str) -> None:
    """Errors may come that were fetched before."""
    given = Given()
    if state == "not ours":
        given.partitions.leave([P0], "gone")
    elif state == "not sought":
        given.partitions.rewind()
    else:
        given.partitions.assign({P0: Start(5, committed=True, note=Note(held=HoldReason(bad=1, records=2)))})
    before: Mapping[Partition, HoldReason | None] = given.partitions.holds()
    given.fail(2 * FAILURES_MAX)
    given.partitions.hold_blocked()
    assert given.partitions.holds() == before


def test_the_note_says_so_also_to_older_versions() -> None:
    """They need the two counts, without which they would take no notice of the hold; other holds are as they were."""
    written = encode_note(Note(held=HELD))
    assert '"bad":0' in written
    assert '"records":0' in written
    assert decode_note(written) == Note(held=HELD)
    assert HELD.sentence() == "the client cannot unpack the batch at offset 7: bad_compression"
    assert "--skip-to" in HELD.remedy()
    assert (
        encode_note(Note(held=HoldReason(bad=1, records=2)))
        == '{"dupwatch":1,"held":{"bad":1,"reason":"","records":2}}'
    )
