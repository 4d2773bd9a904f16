"""Arrival times and places of records, and where a batch is split because an id occurs again."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.config.config import Config
from consumer.judge.versions import ArrivalTime
from consumer.kafka.offset_metadata import Ledger, Note
from consumer.kafka.opening import topic_arrivals
from consumer.kafka.source.arrivals import LiveArrivals, RecordTimeBehind, TopicArrivals
from consumer.model.article import Article
from consumer.model.hooks import Hooks
from consumer.pipeline.arrivals import ArchiveArrivals, FileArrivals, RecordTimeReplaced, StreamArrivals
from consumer.pipeline.loop import parts_with_distinct_ids
from consumer.wiring.feeds import topics_options
from storage.records import Tombstone, Version
from tests.builders import TIME_MS, make_tombstone, make_version, raw_line, raw_message
from tests.machine_clock import DAY_S, MachineClock

ARTICLE = Article("a", "text")

arrived = some.builds(make_version, some.sampled_from("abcdef"), some.binary(max_size=2)) | some.builds(
    make_tombstone, some.sampled_from("abcdef")
)


def owner(entry: Version | Tombstone) -> bytes:
    """Whose it is."""
    return entry.id_hash if isinstance(entry, Tombstone) else entry.record.id_hash


@given(batch=some.lists(arrived, max_size=20))
def test_a_batch_is_cut_only_where_an_id_comes_again(batch: list[Version | Tombstone]) -> None:
    """The parts add up to the batch, ids differ within each, and each part begins with an id of the previous one."""
    parts = list(parts_with_distinct_ids(batch))
    assert [version for part in parts for version in part] == batch
    for part in parts:
        assert len({owner(version) for version in part}) == len(part) > 0
    for before, after in pairwise(parts):
        assert owner(after[0]) in {owner(version) for version in before}


def test_the_records_of_a_file_all_came_when_its_run_began() -> None:
    """A resumed run gives each record the same arrival."""
    feed = FileArrivals(TIME_MS, b"identity", "feed")
    assert [feed.arrived_at(raw_line(number), ARTICLE) for number in (1, 2)] == [
        ArrivalTime(TIME_MS, 1, feed="feed", is_fixed=False),
        ArrivalTime(TIME_MS, 2, feed="feed", is_fixed=False),
    ]
    assert feed.record_name(raw_line(3)) == FileArrivals(TIME_MS + 99, b"identity", "feed").record_name(raw_line(3))
    assert (
        len(
            {
                feed.record_name(raw_line(3)),
                feed.record_name(raw_line(4)),
                FileArrivals(TIME_MS, b"another", "feed").record_name(raw_line(3)),
            }
        )
        == 3
    )


@pytest.mark.parametrize(
    ("clock", "expected"),
    [([5, 6, 7, 8], [6, 7, 8]), ([5, 9, 3, 4, 10], [9, 9, 9, 10]), ([5, 1], [5])],
)
def test_the_time_of_a_stream_never_falls(clock: list[int], expected: list[int]) -> None:
    """A clock that is set back does not move later records before earlier ones."""
    ticks = iter(clock)
    feed = StreamArrivals(lambda: next(ticks))
    assert [feed.arrived_at(raw_line(1), ARTICLE).time_ms for _ in expected] == expected


def test_a_line_of_another_stream_is_another_place() -> None:
    """A stream cannot be read again, so its third line is new in every run."""
    first, second = StreamArrivals(lambda: TIME_MS), StreamArrivals(lambda: TIME_MS + 1)
    assert first.record_name(raw_line(3)) == first.record_name(raw_line(3)) != second.record_name(raw_line(3))
    assert first.record_name(raw_line(3)) != first.record_name(raw_line(4))


def test_a_message_came_when_its_timestamp_says() -> None:
    """The sequence is the offset."""
    feed = TopicArrivals(lambda: TIME_MS + 5, 1_000, Hooks())
    assert feed.arrived_at(raw_message(b"", offset=7), ARTICLE) == ArrivalTime(TIME_MS, 7, feed="articles:0")
    assert feed.arrived_at(raw_message(b"", timestamp_ms=TIME_MS + 1_005, partition=3), ARTICLE) == ArrivalTime(
        TIME_MS + 1_005, 0, feed="articles:3"
    )


@pytest.mark.parametrize("timestamp_ms", [-1, TIME_MS + 1_001, -(1 << 63)])
def test_a_timestamp_that_cannot_be_is_replaced_and_counted(timestamp_ms: int) -> None:
    """Missing times, and times too far ahead, are replaced by the time of reading."""
    replaced: list[RecordTimeReplaced] = []
    hooks = Hooks()
    hooks.on(RecordTimeReplaced, replaced.append)
    feed = TopicArrivals(lambda: TIME_MS, 1_000, hooks)
    stamped_ms = timestamp_ms if timestamp_ms >= 0 else None
    assert feed.arrived_at(raw_message(b"", timestamp_ms=timestamp_ms, offset=7), ARTICLE) == ArrivalTime(
        TIME_MS, 7, stamped_ms, "articles:0", is_fixed=False
    )
    assert replaced == [RecordTimeReplaced()]


def test_a_message_is_named_by_topic_partition_and_offset() -> None:
    """The name is unique, and the same in every run."""
    feed = TopicArrivals(lambda: TIME_MS, 1_000, Hooks())
    places = {
        feed.record_name(raw_message(b"", offset=offset, topic=topic, partition=partition))
        for offset in (1, 11)
        for topic in ("a", "a:1")
        for partition in (1, 11)
    }
    assert len(places) == 8
    with pytest.raises(TypeError):
        feed.record_name(raw_line(1))


@pytest.mark.parametrize("published_at", [None, -1.0, TIME_MS / 1000 + 1])
def test_an_article_of_an_archive_came_when_it_was_published(published_at: float | None) -> None:
    """Without a usable time it arrives when the run begins, and is counted."""
    replaced: list[RecordTimeReplaced] = []
    hooks = Hooks()
    hooks.on(RecordTimeReplaced, replaced.append)
    feed = ArchiveArrivals(TIME_MS, b"archive", "feed", hooks)
    assert feed.arrived_at(raw_line(3), Article("a", "text", published_at=1.5)) == ArrivalTime(1_500, 3, feed="feed")
    assert feed.arrived_at(raw_line(3), Article("a", None, published_at=TIME_MS / 1000)) == ArrivalTime(
        TIME_MS, 3, feed="feed"
    )
    assert replaced == []
    assert feed.arrived_at(raw_line(4), Article("a", "text", published_at=published_at)) == ArrivalTime(
        TIME_MS, 4, feed="feed", is_fixed=False
    )
    assert replaced == [RecordTimeReplaced()]
    assert feed.record_name(raw_line(3)) == FileArrivals(0, b"archive", "feed").record_name(raw_line(3))


BEHIND_MS = 60_000
P0, P1 = ("articles", 0), ("articles", 1)


def own(time_ms: int, offset: int, partition: int = 0) -> ArrivalTime:
    """Return the arrival of a message at the time in its timestamp."""
    return ArrivalTime(time_ms, offset, feed=f"articles:{partition}")


def corrected(time_ms: int, offset: int, stamped_ms: int | None) -> ArrivalTime:
    """Return the arrival of a message at another time."""
    return ArrivalTime(time_ms, offset, stamped_ms, "articles:0", is_fixed=False)


class Live:
    """A feed over topics, its ledger, and how many records were behind."""

    def __init__(self, **notes: Note) -> None:
        self.ledger = Ledger()
        self.ledger.begin({P0: notes["p0"]} if notes else {})
        self.now_ms = TIME_MS
        self.behind = 0
        topics = TopicArrivals(lambda: self.now_ms, 300_000, Hooks())
        hooks = Hooks()
        hooks.on(RecordTimeBehind, self._count)
        self.feed = LiveArrivals(topics, self.ledger, BEHIND_MS, hooks)

    def _count(self, _: RecordTimeBehind) -> None:
        self.behind += 1

    def arrived_at(self, timestamp_ms: int, offset: int, partition: int = 0) -> ArrivalTime:
        """When a message of this timestamp arrives."""
        return self.feed.arrived_at(
            raw_message(b"", timestamp_ms=timestamp_ms, offset=offset, partition=partition), ARTICLE
        )

    def highest_ms(self, partition: int = 0) -> int | None:
        """The partition's highest arrival."""
        return self.ledger.note(("articles", partition)).highest_ms


def test_a_message_far_behind_its_partition_arrives_after_what_came_before_it() -> None:
    """Within a batch, too. The bound itself is allowed, and the original time is kept."""
    live = Live()
    assert live.arrived_at(TIME_MS - 10, 1) == own(TIME_MS - 10, 1)
    hour_ago = TIME_MS - 3_600_000
    assert live.arrived_at(hour_ago, 2) == corrected(TIME_MS - 10, 2, hour_ago)
    assert live.behind == 1
    bound = TIME_MS - 10 - BEHIND_MS
    assert live.arrived_at(bound, 3) == own(bound, 3)
    assert live.arrived_at(bound - 1, 4) == corrected(TIME_MS - 10, 4, bound - 1)
    assert (live.behind, live.highest_ms()) == (2, TIME_MS - 10)


def test_the_highest_arrival_is_what_the_note_says() -> None:
    """Otherwise the first message after a restart could have any time; partitions do not affect each other."""
    live = Live(p0=Note(highest_ms=TIME_MS - 5, window=((9, 1),)))
    assert live.arrived_at(0, 1) == corrected(TIME_MS - 5, 1, 0)
    assert live.arrived_at(0, 1, partition=1) == own(0, 1, 1)
    assert live.arrived_at(TIME_MS, 2) == own(TIME_MS, 2)
    assert live.ledger.note(P0) == Note(highest_ms=TIME_MS, window=((9, 1),))
    assert live.highest_ms(1) == 0


def test_a_message_that_is_ahead_makes_nobody_late() -> None:
    """It arrives at its own time, but later messages are compared with the clock only."""
    live = Live()
    ahead = TIME_MS + 200_000
    assert live.arrived_at(ahead, 1) == own(ahead, 1)
    assert live.highest_ms() == TIME_MS
    assert live.arrived_at(TIME_MS - BEHIND_MS, 2) == own(TIME_MS - BEHIND_MS, 2)
    assert live.behind == 0


@pytest.mark.parametrize(
    ("timestamp_ms", "stamped_ms"), [(-1, None), (1 << 62, None), (TIME_MS + 300_001, TIME_MS + 300_001)]
)
def test_a_time_that_cannot_be_is_that_of_reading_and_raises_the_highest(
    timestamp_ms: int, stamped_ms: int | None
) -> None:
    """A time after the year 9999, which no event can contain, is left out."""
    live = Live()
    assert live.arrived_at(timestamp_ms, 1) == corrected(TIME_MS, 1, stamped_ms)
    assert live.highest_ms() == TIME_MS


def test_only_messages_arrive_live() -> None:
    """Records of files are refused; messages are named as in any feed of topics."""
    live = Live()
    assert live.feed.record_name(raw_message(b"", offset=7)) == live.feed.topics.record_name(raw_message(b"", offset=7))
    with pytest.raises(TypeError):
        live.feed.arrived_at(raw_line(1), ARTICLE)


def test_messages_arrive_by_the_time_of_the_process(machine: MachineClock) -> None:
    """A clock that jumps with its producer moves no window; those with the right time keep it."""
    replaced: list[RecordTimeReplaced] = []
    hooks = Hooks()
    hooks.on(RecordTimeReplaced, replaced.append)
    arrivals = topic_arrivals(topics_options(Config()), hooks)
    machine.set_wall(20 * DAY_S)
    ahead_ms = TIME_MS + 20_000 * DAY_S
    stamped = [arrivals.arrived_at(raw_message(b"", timestamp_ms=time_ms), ARTICLE) for time_ms in (TIME_MS, ahead_ms)]
    assert [arrived_at.time_ms for arrived_at in stamped] == [TIME_MS, TIME_MS]
    assert len(replaced) == 1
