"""The rounds and the switch of a migration, and when it refuses; groups and topics are played."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from consumer.kafka.groups import FILLING, SWITCHED, Committed
from consumer.kafka.offset_metadata import Held, Note
from consumer.kafka.offset_range import Ranges
from consumer.lifecycle.stopping import Stopping
from consumer.migration import fill_journal, migration
from consumer.migration.migration import CaughtUp, Migration, Moves, WindowGap
from consumer.migration.places import GAP_MS, filled_places, gap_in, places_of
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import Message, Offsets, Partition, Position, RawBatch, RawRecord

A, B = ("articles", 0), ("articles", 1)
NOW_MS = 1_700_000_000_000
WINDOW_MS = 3_600_000


class Cluster:
    """Two partitions, how far the old group is in them, and what has been filled of them."""

    def __init__(self) -> None:
        self.low = {A: 0, B: 0}
        self.high = {A: 100, B: 100}
        self.begins = {A: 10, B: 20}
        self.old: dict[Partition, int] = {A: 50, B: 60}
        self.old_notes: dict[Partition, Note] = {}
        self.members = 1
        self.asked_settled = False
        self.settled_ahead: set[tuple[Partition, int]] = set()
        self.filled: list[tuple[Partition, int]] = []
        self.adopted: list[tuple[Partition, int]] = []
        self.new: dict[Partition, Committed] = {}
        self.saved: list[tuple[dict[Partition, int], Note]] = []
        self.first_ms = NOW_MS - WINDOW_MS
        self.on_wait: Callable[[], None] = lambda: None
        self.on_ahead: Callable[[], None] = lambda: None
        self.batch = 7
        self.holes: set[tuple[Partition, int]] = set()

    # The topics

    def marks(self) -> dict[Partition, tuple[int, int]]:
        """As ``Topics``."""
        return {key: (self.low[key], self.high[key]) for key in self.low}

    def since(self, marks: Mapping[Partition, tuple[int, int]], time_ms: int) -> dict[Partition, int]:
        """As ``Topics``."""
        assert time_ms < NOW_MS - WINDOW_MS
        return {key: max(self.begins[key], self.low[key]) for key in marks}

    def empty(self, group: str) -> bool:
        """As ``Topics``."""
        assert group == "old"
        return self.members == 0


class OldGroup:
    """The group in force."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def committed(self, partitions: Sequence[Partition], *, settled: bool = False) -> dict[Partition, Committed]:
        """As ``Group``; while somebody is in the group, transactions are open all the time."""
        assert not settled or self._cluster.members == 0
        self._cluster.asked_settled = settled
        notes = self._cluster.old_notes
        return {
            key: Committed(self._cluster.old[key], notes.get(key, Note()))
            for key in partitions
            if key in self._cluster.old
        }


class NewGroup:
    """The group of the new consumers."""

    name = "new"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, Committed]:
        """As ``Group``."""
        return {key: one for key, one in self._cluster.new.items() if key in partitions}

    def commit(self, places: Mapping[Partition, Committed]) -> None:
        """As ``Group``."""
        (state,) = {one.note.migrate for one in places.values()}
        note = Note(migrate=state)
        assert note == FILLING or self._cluster.asked_settled, "a transaction may still move the old group"
        self._cluster.saved.append(({key: one.offset for key, one in places.items()}, note))
        self._cluster.new |= places


class Reading:
    """A source of ranges; every offset has a message."""

    def __init__(self, cluster: Cluster, ranges: Ranges) -> None:
        self.ranges = ranges
        self._cluster = cluster

    def records(self) -> list[tuple[Partition, int]]:
        """What it gives."""
        every = [(key, offset) for key, (start, end) in self.ranges.items() for offset in range(start, end)]
        return [place for place in every if place not in self._cluster.holes]

    def batches(self) -> Iterator[RawBatch]:
        """As the port says."""
        made = [record(key, offset, self._cluster.first_ms + offset) for key, offset in self.records()]
        yield RawBatch(tuple(made), Offsets({}, 0))

    def progress(self) -> tuple[int, int]:
        """All of it."""
        return len(self.records()), len(self.records())

    def close(self) -> None:
        """Nothing."""


class Filling:
    """A pipeline: what it reads is filled, batch by batch; ``ends_after`` so many batches it dies."""

    def __init__(self, cluster: Cluster, source: Reading, journal: Any, stopping: Stopping) -> None:  # noqa: ANN401
        self._cluster, self._source, self._journal, self._stopping = cluster, source, journal, stopping

    def run(self) -> None:
        """Fill."""
        ahead = {key: start for key, (start, _) in self._source.ranges.items()}
        records = self._source.records()
        for start in range(0, len(records), self._cluster.batch):
            for key, offset in records[start : start + self._cluster.batch]:
                assert offset < self._cluster.old.get(key, self._cluster.low[key]), "beyond what is committed"
                self._cluster.filled.append((key, offset))
                ahead[key] = offset + 1
            self._journal.commit(Offsets(dict(ahead), 0), [], [])


class Noting:
    """Notes what a migration reports beside its batches."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(CaughtUp, lambda _: self.told.append("caught up"))
        hooks.on(WindowGap, lambda gap: self.told.append(gap.sentence))


class Made:
    """A migration over a cluster."""

    def __init__(self, cluster: Cluster, *, allow_gap: bool = False) -> None:
        self.stopping = Stopping()
        self.noting = Noting()
        fakes: Any = {
            "topics": cluster,
            "old": OldGroup(cluster),
            "new": NewGroup(cluster),
            "detector": None,
            "source": lambda ranges: Reading(cluster, ranges),
            "pipeline": lambda source, journal: Filling(cluster, source, journal, self.stopping),
            "adopt": lambda records: self._adopt(cluster, records),
        }
        self.migration = Migration(
            moves=Moves("old", None, allow_gap),
            hooks=Hooks(self.noting),
            stopping=self.stopping,
            topic_names=["articles"],
            begin_ms=NOW_MS - 2 * WINDOW_MS,
            needed_ms=NOW_MS - WINDOW_MS,
            **fakes,
        )

    def _adopt(self, cluster: Cluster, records: Sequence[RawRecord]) -> int:
        cluster.on_ahead()
        places = [((one.message.topic, one.message.partition), one.start) for one in records if one.message]
        found = [place for place in places if place in cluster.settled_ahead]
        cluster.adopted += found
        return len(found)

    def stop(self) -> None:
        """As a signal would."""
        self.stopping.asked_by = 15


def record(key: Partition, offset: int, time_ms: int) -> RawRecord:
    """A message there."""
    message = Message(key[0], key[1], offset, b"a", (), time_ms)
    return RawRecord(0, offset, b"{}", 2, None, None, Position(), message)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster whose old group has one member; a wait calls ``on_wait``, which by default ends the member."""
    made = Cluster()

    def leave() -> None:
        made.members = 0

    made.on_wait = leave
    monkeypatch.setattr(Migration, "_wait", lambda _: made.on_wait())
    return made


def test_what_the_old_group_holds_the_new_one_holds(cluster: Cluster) -> None:
    """Its notes go over with the offsets, once; and a switch that has been made is known again."""
    held = Note(highest_ms=7, held=Held(bad=6, records=10))
    cluster.old_notes = {B: held}
    assert Made(cluster).migration.run()
    assert cluster.new[A] == Committed(50, SWITCHED)
    assert cluster.new[B] == Committed(60, msgspec.structs.replace(held, migrate="switched"))
    assert {note for _, note in cluster.saved[:-1]} == {FILLING}
    saved = len(cluster.saved)
    assert Made(cluster).migration.run()
    assert len(cluster.saved) == saved


def test_it_fills_a_window_up_to_the_commits_and_switches(cluster: Cluster) -> None:
    """From where the window begins to where the old group is, each offset once; then the new group is there."""
    made = Made(cluster)
    assert made.migration.run()
    assert sorted(cluster.filled) == [(A, n) for n in range(10, 50)] + [(B, n) for n in range(20, 60)]
    assert cluster.saved[-1] == ({A: 50, B: 60}, SWITCHED)
    assert {note for _, note in cluster.saved[:-1]} == {FILLING}
    assert made.noting.told == ["caught up"]
    assert made.migration.progress() == (80, 80)


def test_it_follows_until_the_last_member_is_gone(cluster: Cluster) -> None:
    """What is committed meanwhile is filled in rounds, what was committed at the end too."""

    def on() -> None:
        cluster.old[A] += 10
        if cluster.old[A] == 80:
            cluster.members = 0

    cluster.on_wait = on
    assert Made(cluster).migration.run()
    assert sorted(cluster.filled) == [(A, n) for n in range(10, 80)] + [(B, n) for n in range(20, 60)]
    assert cluster.saved[-1] == ({A: 80, B: 60}, SWITCHED)


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_group_that_moves_on_at_the_switch_has_another_round(cluster: Cluster, comes_back: bool) -> None:  # noqa: FBT001
    """A consumer that was started once more, or a commit that came late, is waited for and filled."""

    def moves_on() -> None:
        cluster.on_ahead = lambda: None
        cluster.old[A] = 70
        cluster.members = int(comes_back)

    cluster.on_ahead = moves_on
    assert Made(cluster).migration.run()
    assert [note for _, note in cluster.saved].count(SWITCHED) == 1
    assert cluster.saved[-1] == ({A: 70, B: 60}, SWITCHED)
    assert max(offset for key, offset in cluster.filled if key == A) == 69


def test_what_was_settled_and_not_committed_is_taken_over(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as there is any within a look, and the places stay those of the commits."""
    monkeypatch.setattr(migration, "AHEAD_OFFSETS", 5)
    cluster.settled_ahead = {(A, 51), (A, 53), (A, 57), (B, 99)}
    made = Made(cluster)
    assert made.migration.run()
    assert cluster.adopted == [(A, 51), (A, 53), (A, 57)]
    assert made.migration.ahead == 3
    assert cluster.saved[-1] == ({A: 50, B: 60}, SWITCHED)


@pytest.mark.parametrize("batches", range(1, 13))
def test_killed_anywhere_it_goes_on_without_a_hole(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    """What was not saved is filled again, nothing is left out."""

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

    monkeypatch.setattr(fill_journal, "SAVE_S", 0.0)
    made = Made(cluster)
    made.migration.pipeline = lambda source, journal: Dying(cluster, source, journal, made.stopping)  # type: ignore[arg-type,assignment,return-value]
    with pytest.raises(KilledError):
        made.migration.run()
    saved = {key: one.offset for key, one in cluster.new.items()}
    assert all((key, offset) in cluster.filled for key in (A, B) for offset in range(cluster.begins[key], saved[key]))
    assert sum(saved.values()) > 30
    assert Made(cluster).migration.run()
    assert set(cluster.filled) == {(A, n) for n in range(10, 50)} | {(B, n) for n in range(20, 60)}


def test_stopped_it_saves_and_does_not_switch(cluster: Cluster) -> None:
    """A signal ends it before the switch; started again it fills only what came since."""
    made = Made(cluster)
    cluster.on_wait = made.stop
    assert not made.migration.run()
    assert cluster.saved[-1] == ({A: 50, B: 60}, FILLING)
    cluster.filled.clear()
    cluster.old[B] = 65
    cluster.members = 0
    assert Made(cluster).migration.run()
    assert cluster.filled == [(B, n) for n in range(60, 65)]


def test_offsets_without_messages_are_done(cluster: Cluster) -> None:
    """The markers of transactions at the end of a stretch are not waited for, nor read again."""
    cluster.holes = {(A, 48), (A, 49)}
    made = Made(cluster)
    cluster.on_wait = made.stop
    assert not made.migration.run()
    assert cluster.saved[-1] == ({A: 50, B: 60}, FILLING)


def test_a_switch_that_was_made_stays(cluster: Cluster) -> None:
    """Killed after the last request, and started again, there is nothing left to do."""
    cluster.new = {A: Committed(50, SWITCHED), B: Committed(60, SWITCHED)}
    assert Made(cluster).migration.run()
    assert (cluster.saved, cluster.filled) == ([], [])


def test_a_partition_that_nobody_had_begins_where_it_does(cluster: Cluster) -> None:
    """No message of it was judged, so the new consumers judge all."""
    del cluster.old[B]
    cluster.low[B] = 3
    cluster.begins[B] = 3
    assert Made(cluster, allow_gap=True).migration.run()
    assert cluster.saved[-1] == ({A: 50, B: 3}, SWITCHED)
    assert {key for key, _ in cluster.filled} == {A}


def test_a_group_behind_the_window_is_filled_from_nowhere(cluster: Cluster) -> None:
    """Where the old group has not reached the window, nothing is filled, and the new one goes on there."""
    cluster.begins[A] = 80
    assert Made(cluster).migration.run()
    assert {key for key, _ in cluster.filled} == {B}
    assert cluster.saved[-1] == ({A: 50, B: 60}, SWITCHED)


def test_what_retention_took_is_refused_or_told(cluster: Cluster) -> None:
    """The beginning of the window is gone in one partition."""
    cluster.low[B] = 30
    cluster.first_ms = NOW_MS - WINDOW_MS // 2
    with pytest.raises(SourceError, match=r"articles \[1\] .* 1,800 s are missing.*--allow-gap"):
        Made(cluster).migration.run()
    assert cluster.saved == []
    allowed = Made(cluster, allow_gap=True)
    assert allowed.migration.run()
    assert [told for told in allowed.noting.told if "missing" in told]
    assert min(offset for key, offset in cluster.filled if key == B) == 30


def test_what_retention_took_since_is_looked_at(cluster: Cluster) -> None:
    """A fill that was away so long that messages it had yet to read were deleted."""
    cluster.new = {A: Committed(40, FILLING), B: Committed(25, FILLING)}
    cluster.low[B] = 30
    made = Made(cluster)
    assert made.migration.run()
    assert cluster.filled[-1] == (B, 59)
    assert (B, 29) not in cluster.filled
    cluster.new = {A: Committed(40, FILLING), B: Committed(25, FILLING)}
    cluster.first_ms = NOW_MS
    with pytest.raises(SourceError, match="3,600 s are missing"):
        Made(cluster).migration.run()


@pytest.mark.parametrize(
    ("first_ms", "said"),
    [
        (None, "nothing left"),
        (NOW_MS - 1, None),
        (NOW_MS + GAP_MS, None),
        (NOW_MS + GAP_MS + 1_000, "61 s are missing"),
    ],
)
def test_gaps(first_ms: int | None, said: str | None) -> None:
    """Up to a minute nothing seems to be missing; where nothing is left nobody can tell."""
    sentence = gap_in(A, first_ms, NOW_MS)
    assert (sentence is None) if said is None else (sentence is not None and said in sentence)


def test_groups_that_cannot_be_meant() -> None:
    """An old group that has committed nothing, and a new one whose offsets are not those of a fill."""
    with pytest.raises(ConfigError, match="--from-group"):
        places_of({}, {A: (0, 5)}, ["articles"], "old")
    assert places_of({A: Committed(3)}, {A: (0, 5), B: (2, 9)}, ["articles"], "old") == {A: 3, B: 2}
    with pytest.raises(ConfigError, match="in use"):
        filled_places({A: Committed(3, FILLING), B: Committed(3)}, "new")
    assert filled_places({A: Committed(3, FILLING)}, "new") == {A: 3}
