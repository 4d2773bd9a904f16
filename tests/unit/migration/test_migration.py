"""The rounds and the switch of a migration, and what it refuses; groups and topics are fakes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from consumer.kafka.groups import FILLING_NOTE, SWITCHED_NOTE, CommittedOffset
from consumer.kafka.message import Offsets
from consumer.kafka.offset_metadata import HoldReason, Note
from consumer.kafka.offset_range import Ranges
from consumer.lifecycle.stopping import StopSignal
from consumer.migration import migration, offsets
from consumer.migration.migration import FillCaughtUp, Migration, MigrationPlan, WindowGap
from consumer.migration.offsets import GAP_MS, filled_offsets, gap_in, group_offsets
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import Partition, RawBatch, RawRecord
from tests.builders import raw_message

A, B = ("articles", 0), ("articles", 1)
NOW_MS = 1_700_000_000_000
WINDOW_MS = 3_600_000
BATCH = 7


class OldGroup:
    """The group in force: its offsets with their notes, and how many members it has."""

    def __init__(self) -> None:
        self.offsets: dict[Partition, int] = {A: 50, B: 60}
        self.notes: dict[Partition, Note] = {}
        self.members = 1
        self.asked_settled = False

    def committed(self, partitions: Sequence[Partition], *, settled: bool = False) -> dict[Partition, CommittedOffset]:
        """Return the offsets. While the group has members, there is always an open transaction."""
        assert not settled or self.members == 0
        self.asked_settled = settled
        return {
            key: CommittedOffset(self.offsets[key], self.notes.get(key, Note()))
            for key in partitions
            if key in self.offsets
        }


class NewGroup:
    """The group of the new consumers: its offsets, and each commit that set them."""

    name = "new"

    def __init__(self, old: OldGroup) -> None:
        self.offsets: dict[Partition, CommittedOffset] = {}
        self.saved: list[tuple[dict[Partition, int], Note]] = []
        self._old = old

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, CommittedOffset]:
        """Return the offsets of a fill."""
        return {key: committed for key, committed in self.offsets.items() if key in partitions}

    def commit(self, places: Mapping[Partition, CommittedOffset]) -> None:
        """Set the offsets, all with the same note but for the switch."""
        (state,) = {committed.note.migrate for committed in places.values()}
        note = Note(migrate=state)
        assert note == FILLING_NOTE or self._old.asked_settled, "a transaction may still move the old group"
        self.saved.append(({key: committed.offset for key, committed in places.items()}, note))
        self.offsets |= places


class Log:
    """Two partitions: their first offsets and ends, where the window begins, and offsets without messages."""

    def __init__(self, old: OldGroup) -> None:
        self.low = {A: 0, B: 0}
        self.high = {A: 100, B: 100}
        self.begins = {A: 10, B: 20}
        self.holes: set[tuple[Partition, int]] = set()
        self.first_ms = NOW_MS - WINDOW_MS
        self._old = old

    def watermarks(self) -> dict[Partition, tuple[int, int]]:
        """Return the first offset and the end of each partition."""
        return {key: (self.low[key], self.high[key]) for key in self.low}

    def offsets_since(self, marks: Mapping[Partition, tuple[int, int]], time_ms: int) -> dict[Partition, int]:
        """Return where the window begins in each partition."""
        assert time_ms < NOW_MS - WINDOW_MS
        return {key: max(self.begins[key], self.low[key]) for key in marks}

    def is_empty(self, group: str) -> bool:
        """Return whether the old group has no members."""
        assert group == "old"
        return self._old.members == 0


class Adoption:
    """Adopts messages that the old consumers have settled beyond their commits: those in ``ahead``."""

    def __init__(self) -> None:
        self.ahead: set[tuple[Partition, int]] = set()
        self.adopted: list[tuple[Partition, int]] = []
        self.before: Callable[[], None] = lambda: None

    def __call__(self, records: Sequence[RawRecord]) -> int:
        """Call ``before``, adopt what is among these records, and return how many that are."""
        self.before()
        places = [(record.known_partition(), record.start) for record in records]
        found = [place for place in places if place in self.ahead]
        self.adopted += found
        return len(found)


class Cluster:
    """The fakes of one migration.

    ``filled`` has every message that was filled into the new store, in order; with ``has_more`` it has more
    articles than these.
    """

    def __init__(self) -> None:
        self.old = OldGroup()
        self.new = NewGroup(self.old)
        self.log = Log(self.old)
        self.adoption = Adoption()
        self.filled: list[tuple[Partition, int]] = []
        self.has_more = False
        self.on_wait: Callable[[], None] = lambda: None


class Reading:
    """A source of ranges; every offset has a message."""

    def __init__(self, log: Log, ranges: Ranges) -> None:
        self.ranges = ranges
        self._log = log

    def records(self) -> list[tuple[Partition, int]]:
        """Return the places of its messages."""
        every = [(key, offset) for key, (start, end) in self.ranges.items() for offset in range(start, end)]
        return [place for place in every if place not in self._log.holes]

    def batches(self) -> Iterator[RawBatch]:
        """Yield all messages at once."""
        messages = [record(key, offset, self._log.first_ms + offset) for key, offset in self.records()]
        yield RawBatch(tuple(messages), Offsets({}, 0))

    def progress(self) -> tuple[int, int]:
        """Return that everything is read."""
        return len(self.records()), len(self.records())

    def close(self) -> None:
        """Do nothing."""


class Filling:
    """A pipeline that fills what it reads, batch by batch."""

    def __init__(self, cluster: Cluster, source: Reading, journal: Any, stopping: StopSignal) -> None:  # noqa: ANN401
        self._cluster, self._source, self._journal, self._stopping = cluster, source, journal, stopping

    def run(self) -> None:
        """Fill all batches."""
        ahead = {key: start for key, (start, _) in self._source.ranges.items()}
        records = self._source.records()
        for start in range(0, len(records), BATCH):
            for key, offset in records[start : start + BATCH]:
                assert offset < self._cluster.old.offsets.get(key, self._cluster.log.low[key]), (
                    "beyond what is committed"
                )
                self._cluster.filled.append((key, offset))
                ahead[key] = offset + 1
            self._journal.commit(Offsets(dict(ahead), 0), [], [])


class Reports:
    """Keeps what a migration reports beside its batches."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen to both kinds of reports."""
        hooks.on(FillCaughtUp, lambda _: self.lines.append("caught up"))
        hooks.on(WindowGap, lambda gap: self.lines.append(gap.sentence))


class Moving:
    """A migration over a fake cluster."""

    def __init__(self, cluster: Cluster, *, allow_gap: bool = False) -> None:
        self.stopping = StopSignal()
        self.reports = Reports()
        fakes: Any = {
            "topics": cluster.log,
            "old": cluster.old,
            "new": cluster.new,
            "judge": None,
            "has_articles": lambda: bool(cluster.filled) or cluster.has_more,
            "open_source": lambda ranges: Reading(cluster.log, ranges),
            "build_pipeline": lambda source, journal: Filling(cluster, source, journal, self.stopping),
            "adopt": cluster.adoption,
            "copy_texts": lambda: 0,
        }
        self.migration = Migration(
            plan=MigrationPlan("old", None, allow_gap),
            into="lmdb:new",
            hooks=Hooks(self.reports),
            stopping=self.stopping,
            topic_names=["articles"],
            begin_ms=NOW_MS - 2 * WINDOW_MS,
            needed_ms=NOW_MS - WINDOW_MS,
            **fakes,
        )

    def stop(self) -> None:
        """Ask to stop, as a signal does."""
        self.stopping.requested_by = 15


def record(key: Partition, offset: int, time_ms: int) -> RawRecord:
    """Return a message at this place."""
    topic, number = key
    return raw_message(b"{}", offset=offset, topic=topic, partition=number, timestamp_ms=time_ms)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster whose old group has one member; a wait calls ``on_wait``, which by default removes the member."""
    fake = Cluster()

    def leave() -> None:
        fake.old.members = 0

    fake.on_wait = leave
    monkeypatch.setattr(Migration, "_wait", lambda _: fake.on_wait())
    return fake


def test_partitions_that_are_held_stay_held(cluster: Cluster) -> None:
    """The notes of the old group are copied with the offsets, once; a second run finds that the switch was made."""
    note = Note(highest_ms=7, held=HoldReason(bad=6, records=10))
    cluster.old.notes = {B: note}
    assert Moving(cluster).migration.run()
    assert cluster.new.offsets[A] == CommittedOffset(50, SWITCHED_NOTE)
    assert cluster.new.offsets[B] == CommittedOffset(60, msgspec.structs.replace(note, migrate="switched"))
    assert {saved for _, saved in cluster.new.saved[:-1]} == {FILLING_NOTE}
    saved = len(cluster.new.saved)
    assert Moving(cluster).migration.run()
    assert len(cluster.new.saved) == saved


def test_it_fills_a_window_up_to_the_commits_and_switches(cluster: Cluster) -> None:
    """From the beginning of the window to the old group's offsets, each message once; then the new group is there."""
    moving = Moving(cluster)
    assert moving.migration.run()
    assert sorted(cluster.filled) == [(A, n) for n in range(10, 50)] + [(B, n) for n in range(20, 60)]
    assert cluster.new.saved[-1] == ({A: 50, B: 60}, SWITCHED_NOTE)
    assert {saved for _, saved in cluster.new.saved[:-1]} == {FILLING_NOTE}
    assert moving.reports.lines == ["caught up"]
    assert moving.migration.progress() == (80, 80)


def test_it_follows_until_the_last_member_is_gone(cluster: Cluster) -> None:
    """What is committed meanwhile is filled in rounds, up to the last commit."""

    def on() -> None:
        cluster.old.offsets[A] += 10
        if cluster.old.offsets[A] == 80:
            cluster.old.members = 0

    cluster.on_wait = on
    assert Moving(cluster).migration.run()
    assert sorted(cluster.filled) == [(A, n) for n in range(10, 80)] + [(B, n) for n in range(20, 60)]
    assert cluster.new.saved[-1] == ({A: 80, B: 60}, SWITCHED_NOTE)


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_group_that_moves_during_the_switch_needs_another_round(cluster: Cluster, comes_back: bool) -> None:  # noqa: FBT001
    """A consumer that was started again, or a late commit, is followed before the switch."""

    def moves_on() -> None:
        cluster.adoption.before = lambda: None
        cluster.old.offsets[A] = 70
        cluster.old.members = int(comes_back)

    cluster.adoption.before = moves_on
    assert Moving(cluster).migration.run()
    assert [note for _, note in cluster.new.saved].count(SWITCHED_NOTE) == 1
    assert cluster.new.saved[-1] == ({A: 70, B: 60}, SWITCHED_NOTE)
    assert max(offset for key, offset in cluster.filled if key == A) == 69


def test_settled_messages_without_a_commit_are_taken_over(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a search finds none; the offsets stay those that were committed."""
    monkeypatch.setattr(migration, "SEARCH_OFFSETS", 5)
    cluster.adoption.ahead = {(A, 51), (A, 53), (A, 57), (B, 99)}
    moving = Moving(cluster)
    assert moving.migration.run()
    assert cluster.adoption.adopted == [(A, 51), (A, 53), (A, 57)]
    assert moving.migration.adopted_ahead == 3
    assert cluster.new.saved[-1] == ({A: 50, B: 60}, SWITCHED_NOTE)


@pytest.mark.parametrize("batches", range(1, 13))
def test_a_killed_fill_resumes_without_a_hole(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    """What was not saved is filled again, and nothing is skipped."""

    class KilledError(Exception):
        pass

    class Dying(Filling):
        def run(self) -> None:
            commit, left = self._journal.commit, [batches]

            def counted(*args: object) -> None:
                commit(*args)
                left[0] -= 1
                if left[0] == 0:
                    raise KilledError

            self._journal.commit = counted
            super().run()

    monkeypatch.setattr(offsets, "SAVE_EVERY_S", 0.0)
    moving = Moving(cluster)
    moving.migration.build_pipeline = lambda source, journal: Dying(cluster, source, journal, moving.stopping)  # type: ignore[arg-type,assignment,return-value]
    with pytest.raises(KilledError):
        moving.migration.run()
    saved = {key: committed.offset for key, committed in cluster.new.offsets.items()}
    assert all(
        (key, offset) in cluster.filled for key in (A, B) for offset in range(cluster.log.begins[key], saved[key])
    )
    assert sum(saved.values()) > 30
    assert Moving(cluster).migration.run()
    assert set(cluster.filled) == {(A, n) for n in range(10, 50)} | {(B, n) for n in range(20, 60)}


def test_an_empty_store_is_filled_with_all_of_the_window(cluster: Cluster) -> None:
    """Though the group has filled another one before: the first part would be missing, and its copies count as new."""
    moving = Moving(cluster)
    cluster.on_wait = moving.stop
    assert not moving.migration.run()
    assert cluster.new.offsets == {A: CommittedOffset(50, FILLING_NOTE), B: CommittedOffset(60, FILLING_NOTE)}
    cluster.filled.clear()
    cluster.old.members = 0
    assert Moving(cluster).migration.run()
    assert sorted(cluster.filled) == [(A, n) for n in range(10, 50)] + [(B, n) for n in range(20, 60)]


def test_after_the_switch_an_empty_store_is_refused(cluster: Cluster) -> None:
    """It would be said to be filled; but not where there was nothing to fill."""
    assert Moving(cluster).migration.run()
    cluster.filled.clear()
    with pytest.raises(ConfigError, match=r"lmdb:new is empty, but the group new has been switched.*--store.*--group"):
        Moving(cluster).migration.run()
    cluster.log.begins = {A: 50, B: 60}
    assert Moving(cluster).migration.run()


def test_a_store_with_articles_of_others_is_refused(cluster: Cluster) -> None:
    """Verdicts would name articles that readers of this feed do not know."""
    cluster.has_more = True
    with pytest.raises(ConfigError, match=r"lmdb:new has articles already.*an empty store"):
        Moving(cluster).migration.run()
    assert cluster.new.saved == []
    assert cluster.filled == []


def test_a_stopped_migration_saves_and_does_not_switch(cluster: Cluster) -> None:
    """Rerun, it fills only what was committed since."""
    moving = Moving(cluster)
    cluster.on_wait = moving.stop
    assert not moving.migration.run()
    assert cluster.new.saved[-1] == ({A: 50, B: 60}, FILLING_NOTE)
    cluster.filled.clear()
    cluster.has_more = True
    cluster.old.offsets[B] = 65
    cluster.old.members = 0
    assert Moving(cluster).migration.run()
    assert cluster.filled == [(B, n) for n in range(60, 65)]


def test_offsets_without_messages_count_as_filled(cluster: Cluster) -> None:
    """The markers of transactions at the end of a range are neither waited for nor read again."""
    cluster.log.holes = {(A, 48), (A, 49)}
    moving = Moving(cluster)
    cluster.on_wait = moving.stop
    assert not moving.migration.run()
    assert cluster.new.saved[-1] == ({A: 50, B: 60}, FILLING_NOTE)


def test_after_the_switch_nothing_is_done(cluster: Cluster) -> None:
    """A migration that was killed after its last request can be rerun."""
    cluster.new.offsets = {A: CommittedOffset(50, SWITCHED_NOTE), B: CommittedOffset(60, SWITCHED_NOTE)}
    cluster.has_more = True
    assert Moving(cluster).migration.run()
    assert (cluster.new.saved, cluster.filled) == ([], [])


def test_a_partition_without_an_offset_starts_at_its_first_message(cluster: Cluster) -> None:
    """Nobody has judged it, so the new consumers judge all of it."""
    del cluster.old.offsets[B]
    cluster.log.low[B] = 3
    cluster.log.begins[B] = 3
    assert Moving(cluster, allow_gap=True).migration.run()
    assert cluster.new.saved[-1] == ({A: 50, B: 3}, SWITCHED_NOTE)
    assert {key for key, _ in cluster.filled} == {A}


def test_nothing_is_filled_where_the_old_group_is_behind_the_window(cluster: Cluster) -> None:
    """The new group starts at the old group's offset."""
    cluster.log.begins[A] = 80
    assert Moving(cluster).migration.run()
    assert {key for key, _ in cluster.filled} == {B}
    assert cluster.new.saved[-1] == ({A: 50, B: 60}, SWITCHED_NOTE)


def test_a_gap_in_the_window_is_refused_or_reported(cluster: Cluster) -> None:
    """The beginning of the window was deleted in one partition."""
    cluster.log.low[B] = 30
    cluster.log.first_ms = NOW_MS - WINDOW_MS // 2
    with pytest.raises(SourceError, match=r"articles \[1\] .* 1,800 s of the window are missing.*--allow-gap"):
        Moving(cluster).migration.run()
    assert cluster.new.saved == []
    allowed = Moving(cluster, allow_gap=True)
    assert allowed.migration.run()
    assert [line for line in allowed.reports.lines if "missing" in line]
    assert min(offset for key, offset in cluster.filled if key == B) == 30


def test_a_gap_that_has_appeared_since_is_found(cluster: Cluster) -> None:
    """The fill was stopped for so long that messages it had yet to read were deleted."""
    cluster.new.offsets = {A: CommittedOffset(40, FILLING_NOTE), B: CommittedOffset(25, FILLING_NOTE)}
    cluster.log.low[B] = 30
    moving = Moving(cluster)
    assert moving.migration.run()
    assert cluster.filled[-1] == (B, 59)
    assert (B, 29) not in cluster.filled
    cluster.new.offsets = {A: CommittedOffset(40, FILLING_NOTE), B: CommittedOffset(25, FILLING_NOTE)}
    cluster.log.first_ms = NOW_MS
    with pytest.raises(SourceError, match="3,600 s of the window are missing"):
        Moving(cluster).migration.run()


@pytest.mark.parametrize(
    ("first_ms", "phrase"),
    [
        (None, "nothing left"),
        (NOW_MS - 1, None),
        (NOW_MS + GAP_MS, None),
        (NOW_MS + GAP_MS + 1_000, "61 s of the window are missing"),
    ],
)
def test_gaps(first_ms: int | None, phrase: str | None) -> None:
    """Up to a minute does not count; an empty partition does."""
    sentence = gap_in(A, first_ms, NOW_MS)
    assert (sentence is None) if phrase is None else (sentence is not None and phrase in sentence)


def test_unsuitable_groups_are_refused() -> None:
    """An old group that has committed nothing, and a new one whose offsets are not those of a fill."""
    with pytest.raises(ConfigError, match="--from-group"):
        group_offsets({}, {A: (0, 5)}, ["articles"], "old")
    assert group_offsets({A: CommittedOffset(3)}, {A: (0, 5), B: (2, 9)}, ["articles"], "old") == {A: 3, B: 2}
    with pytest.raises(ConfigError, match="in use"):
        filled_offsets({A: CommittedOffset(3, FILLING_NOTE), B: CommittedOffset(3)}, "new")
    assert filled_offsets({A: CommittedOffset(3, FILLING_NOTE)}, "new") == {A: 3}
