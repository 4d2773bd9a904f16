"""Records that wait to be judged: partitions take turns, and memory has a bound."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as some

from consumer.kafka.message import TopicRecord
from consumer.kafka.source.buffer import Buffer, memory_bytes
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition
from tests.builders import raw_message

LIMITS = ReadLimits(batch_records_max=6, batch_bytes_max=1_000)
Coming = Sequence[tuple[int, int]]
"""The partition of each record, and its size."""


def record(partition: int, offset: int, size_bytes: int = 1) -> TopicRecord:
    """A record of a partition."""
    return raw_message(b"x" * size_bytes, None, offset=offset, partition=partition)


def filled(coming: Coming) -> Buffer:
    """A buffer with these records; offsets count up in each partition."""
    buffer, offsets = Buffer(LIMITS, 2), Counter[int]()
    for partition, size_bytes in coming:
        buffer.add(record(partition, offsets[partition], size_bytes))
        offsets[partition] += 1
    return buffer


def places(records: Sequence[TopicRecord]) -> list[tuple[int, int]]:
    """Partition and offset of each."""
    return [(message.partition[1], message.start) for message in records]


def test_a_backlog_of_one_partition_does_not_delay_another() -> None:
    """Ten records of one came first, and the two of the other are in the first batch."""
    buffer = filled([*[(0, 1)] * 10, (1, 1), (1, 1)])
    records, ends = buffer.take()
    assert places(records) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (0, 3)]
    assert ends == {("articles", 0): 4, ("articles", 1): 2}
    assert places(buffer.take()[0]) == [(0, offset) for offset in range(4, 10)]


def test_a_turn_goes_on_with_the_next_batch() -> None:
    """A partition whose record did not fit comes first in the batch after."""
    buffer = filled([(0, 1), (1, 999), (0, 1), (2, 1)])
    assert [places(buffer.take()[0]) for _ in range(3)] == [[(0, 0), (1, 0)], [(2, 0), (0, 1)], []]


sizes = some.sampled_from([1, 300, 700, 2_000])


@given(coming=some.lists(some.tuples(some.integers(0, 3), sizes), max_size=60))
def test_every_record_comes_once_in_the_order_of_its_partition(coming: Coming) -> None:
    """In batches within the limits, whose ends are behind their records; and then there is room again."""
    buffer = filled(coming)
    room, room_bytes = filled([]).room(), filled([]).room_bytes()
    came: list[tuple[int, int]] = []
    ends: dict[Partition, int] = {}
    while len(buffer):
        records, moved = buffer.take()
        size_bytes = sum(map(memory_bytes, records))
        assert 1 <= len(records) <= LIMITS.batch_records_max
        assert len(records) == 1 or size_bytes <= LIMITS.batch_bytes_max
        came += places(records)
        ends |= moved
        assert ends == {("articles", partition): offset + 1 for partition, offset in came}
    counts = Counter(partition for partition, _ in coming)
    assert len(came) == len(coming)
    for partition, count in counts.items():
        assert [offset for of, offset in came if of == partition] == list(range(count))
    assert (buffer.room(), buffer.room_bytes(), buffer.take()) == (room, room_bytes, ([], {}))


@given(waiting=some.lists(some.integers(1, 30), min_size=2, max_size=4))
def test_partitions_come_evenly_while_all_have_records(waiting: list[int]) -> None:
    """However many records each has, and whichever came first."""
    buffer = filled([(partition, 1) for partition, count in enumerate(waiting) for _ in range(count)])
    came = Counter[int]()
    while all(came[partition] < count for partition, count in enumerate(waiting)):
        for partition, _ in places(buffer.take()[0]):
            came[partition] += 1
            left = [count - came[other] for other, count in enumerate(waiting)]
            if min(left) == 0:
                return
            assert max(came.values()) - min(came[other] for other in range(len(waiting))) <= 1


def test_cleared_it_has_room_for_all_again() -> None:
    """As where partitions leave."""
    buffer = filled([(0, 900), (1, 900), (0, 900)])
    assert buffer.room() == buffer.room_bytes() == 0
    buffer.clear()
    assert (len(buffer), buffer.room(), buffer.room_bytes()) == (0, 12, 2_000)
