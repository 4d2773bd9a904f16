"""Settings, sweeping, scanning and counting."""

import pytest

from storage.interface import Store
from storage.records import Record, Release, StoredVersion, Tombstone, id_hash
from tests.builders import TIME_MS, make_record, make_tombstone, make_version
from tests.contract.conftest import Kind, SetClock

HOUR_MS = 3_600_000


@pytest.fixture
def sweeping(kind: Kind, store: Store) -> Store:
    """Return an empty store of a kind that is swept."""
    if not kind.sweeps:
        pytest.skip("this store expires what is old by itself")
    return store


def left(store: Store) -> set[bytes]:
    """Return the references of everything that is stored."""
    return {what.reference if isinstance(what, Tombstone) else what.record.reference for what in store.scan()}


def test_the_first_settings_stand(store: Store) -> None:
    """Later callers get the settings that were stored first."""
    assert store.settings() is None
    assert store.agree(b"one") == b"one"
    assert store.agree(b"two") == b"one"
    assert store.settings() == b"one"
    assert store.agree(b"one") == b"one"


def test_a_store_is_made_for_nothing_unless_that_is_said(store: Store) -> None:
    """Settings say nothing of it: a store from before there were plans is used as it was."""
    assert store.planned() is None
    store.agree(b"one")
    assert store.planned() is None


def test_a_sweep_forgets_all_of_a_version(sweeping: Store, clock: SetClock) -> None:
    """Record, verdict, body, postings and history are removed; the id's later version stays complete."""
    old, new = make_version("a", b"old"), make_version("a", b"new", time_ms=TIME_MS + HOUR_MS)
    references = [old.record.reference, new.record.reference]
    sweeping.create([old, new])
    sweeping.add([old.record, new.record])
    sweeping.settle([(reference, b"kept") for reference in references])
    clock.ms += 2 * HOUR_MS
    assert sweeping.sweep(TIME_MS + 1, 100) == 1
    kept = StoredVersion(new.record, b"kept", None)
    assert sweeping.read(references) == [None, kept]
    assert sweeping.bodies(references) == [None, new.body]
    assert sweeping.history(id_hash("a")) == [kept]
    assert [len(row.postings) for row in sweeping.look_up(old.record.keys + new.record.keys)] == [0] * 8 + [1] * 8
    assert sweeping.stats()[:4] == (1, 1, 0, 8)


def test_a_sweep_forgets_a_release_with_its_version(sweeping: Store) -> None:
    """A version that arrives again is pending, and is settled as if it had never been released."""
    version = make_version()
    reference = version.record.reference
    sweeping.create([version])
    sweeping.settle([(reference, b"duplicate")])
    sweeping.release([Release(reference, b"released", b"\1" * 32)])
    assert sweeping.sweep(TIME_MS + 1, 1) == 1
    assert sweeping.create([version]) == [StoredVersion(version.record, None, None)]
    assert sweeping.settle([(reference, b"duplicate")]) == [True]
    assert sweeping.read([reference]) == [StoredVersion(version.record, b"duplicate", None)]


def test_what_was_swept_can_come_again(sweeping: Store) -> None:
    """It is a new version: no earlier verdict or arrival is left."""
    version = make_version()
    sweeping.create([version])
    sweeping.settle([(version.record.reference, b"kept")])
    assert sweeping.sweep(TIME_MS + 1, 1) == 1
    again = make_version(time_ms=TIME_MS + 9, body="again")
    assert sweeping.create([again]) == [StoredVersion(again.record, None, None)]
    assert sweeping.bodies([again.record.reference]) == ["again"]
    assert sweeping.history(id_hash("a")) == [StoredVersion(again.record, None, None)]


def test_a_sweep_forgets_tombstones_too(sweeping: Store) -> None:
    """They age and count like versions; a removed one no longer ends a version."""
    late = make_version("a", time_ms=TIME_MS - HOUR_MS)
    tombstone = make_tombstone("a")
    sweeping.retract([tombstone])
    assert sweeping.sweep(TIME_MS, 100) == 0
    sweeping.create([late])
    assert sweeping.stats().tombstones == 1
    assert sweeping.sweep(TIME_MS + 1, 100) == 2
    assert sweeping.stats()[:3] == (0, 0, 0)
    assert sweeping.history(id_hash("a")) == []


def test_the_bound_of_a_sweep_is_exclusive(sweeping: Store) -> None:
    """Exactly ``before_ms`` is not swept; a bound in the distant past sweeps nothing."""
    sweeping.create([make_version()])
    assert [sweeping.sweep(before_ms, 100) for before_ms in (-1, 0, TIME_MS, TIME_MS + 1)] == [0, 0, 0, 1]


def test_a_sweep_takes_the_oldest_first_up_to_its_limit(sweeping: Store) -> None:
    """In any order of writing; the next call continues."""
    offsets = [3, 0, 4, 1, 2]
    versions = [make_version(f"a{offset}", time_ms=TIME_MS + offset * HOUR_MS) for offset in offsets]
    reference = {offset: version.record.reference for offset, version in zip(offsets, versions, strict=True)}
    sweeping.create(versions)
    bound_ms = TIME_MS + 4 * HOUR_MS
    assert sweeping.sweep(bound_ms, 0) == 0
    assert sweeping.sweep(bound_ms, 2) == 2
    assert left(sweeping) == {reference[2], reference[3], reference[4]}
    assert [sweeping.sweep(bound_ms, 2) for _ in range(2)] == [2, 0]
    assert left(sweeping) == {reference[4]}


def test_an_old_article_written_just_now_is_not_swept(sweeping: Store, clock: SetClock) -> None:
    """A backfill of last year's articles is kept until the time of writing is old too."""
    backfilled = make_version("old", time_ms=TIME_MS - 365 * 24 * HOUR_MS)
    retraction = make_tombstone("old", time_ms=TIME_MS - 365 * 24 * HOUR_MS + 1)
    sweeping.create([backfilled])
    sweeping.retract([retraction])
    assert sweeping.sweep(TIME_MS, 100) == 0
    clock.ms += HOUR_MS
    assert sweeping.sweep(TIME_MS, 100) == 0
    assert sweeping.sweep(TIME_MS + 1, 100) == 2


def test_an_article_from_the_future_is_not_swept_by_its_time_of_writing(sweeping: Store) -> None:
    """The later of arrival and time of writing counts."""
    sweeping.create([make_version(time_ms=TIME_MS + HOUR_MS)])
    assert [sweeping.sweep(TIME_MS + 1, 9), sweeping.sweep(TIME_MS + HOUR_MS + 1, 9)] == [0, 1]


def test_the_newest_is_known(sweeping: Store, clock: SetClock) -> None:
    """Of all, or of what came before a time; by the later of arrival and writing, as a sweep has it."""
    assert sweeping.newest_ms(1 << 62) is None
    sweeping.create([make_version("a"), make_version("old", time_ms=TIME_MS - 2 * HOUR_MS)])
    sweeping.retract([make_tombstone("a", time_ms=TIME_MS + HOUR_MS)])
    sweeping.create([make_version("ahead", time_ms=TIME_MS + 5 * HOUR_MS)])
    clock.ms += 2 * HOUR_MS
    sweeping.create([make_version("b")])
    hours = [-1, 0, 1, 2, 5]
    before = {hour: sweeping.newest_ms(TIME_MS + hour * HOUR_MS + 1) for hour in hours}
    assert before == {hour: None if hour < 0 else TIME_MS + hour * HOUR_MS for hour in hours}
    assert [sweeping.newest_ms(TIME_MS + HOUR_MS), sweeping.newest_ms(1 << 62)] == [TIME_MS, TIME_MS + 5 * HOUR_MS]
    assert [sweeping.newest_ms(before_ms) for before_ms in (-1, 0)] == [None, None]


def test_a_replay_does_not_make_a_version_younger(sweeping: Store, clock: SetClock) -> None:
    """The time of the first writing counts, not that of a second delivery."""
    sweeping.create([make_version()])
    sweeping.retract([make_tombstone("b")])
    clock.ms += HOUR_MS
    sweeping.create([make_version()])
    sweeping.retract([make_tombstone("b")])
    assert sweeping.sweep(TIME_MS + 1, 9) == 2


def test_a_scan_sees_everything_once(store: Store) -> None:
    """Versions with verdict and end, and tombstones, over more than one page of any store."""
    records = [make_record(f"a{number % 300}", b"%d" % number, sequence=number) for number in range(900)]
    store.create([make_version(f"a{n % 300}", b"%d" % n, sequence=n) for n in range(900)])
    tombstones = [make_tombstone(f"a{number}", sequence=1_000) for number in range(300)]
    store.retract(tombstones)
    store.settle([(record.reference, b"kept") for record in records[:100]])
    following: list[Record | Tombstone] = [*records[300:], *tombstones]
    expected = [
        StoredVersion(record, b"kept" if number < 100 else None, following[number].arrival)
        for number, record in enumerate(records)
    ]
    scanned = list(store.scan())
    assert len(scanned) == 1_200
    versions = {what.record.reference: what for what in scanned if isinstance(what, StoredVersion)}
    assert versions == {stored.record.reference: stored for stored in expected}
    assert {what.reference for what in scanned if isinstance(what, Tombstone)} == {
        what.reference for what in tombstones
    }


def test_a_scan_survives_what_happens_between_its_steps(store: Store, clock: SetClock) -> None:
    """A scan that is interrupted by many writes and sweeps returns what was stored all the time exactly once."""
    stays = [make_version(f"stays {n}", time_ms=TIME_MS + HOUR_MS) for n in range(600)]
    goes = [make_version(f"goes {n}") for n in range(600)]
    store.create(stays + goes)
    scan = store.scan()
    seen = [next(scan) for _ in range(5)]
    store.sweep(TIME_MS + 1, 10_000)
    store.create([make_version(f"new {n}", b"%d" % n, body="x" * 500, time_ms=TIME_MS + HOUR_MS) for n in range(3_000)])
    seen += scan
    ids = [what.record.id for what in seen if isinstance(what, StoredVersion)]
    assert len(ids) == len(set(ids))
    assert {version.record.id for version in stays} <= set(ids)


def test_stats_count_what_there_is(store: Store) -> None:
    """Counts of versions, verdicts, tombstones, postings and rows with postings."""
    twin, other = make_version("a"), make_version("b")
    store.create([twin, other])
    store.add([twin.record, other.record])
    store.settle([(twin.record.reference, b"kept")])
    store.retract([make_tombstone("a")])
    assert store.stats()[:5] == (2, 1, 1, 16, 8)
    store.remove([twin.record])
    assert store.stats()[:5] == (2, 1, 1, 8, 8)
    size_bytes = store.stats().size_bytes
    assert size_bytes is None or size_bytes > 0
