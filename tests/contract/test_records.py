"""Versions and tombstones: written once, and in force from their arrival to the next."""

from itertools import permutations

import pytest

from storage.interface import Store
from storage.records import Record, StoredVersion, Tombstone, Version, id_hash
from tests.builders import TIME_MS, make_record, make_tombstone, make_version
from tests.contract.conftest import Kind


def only(store: Store, reference: bytes) -> StoredVersion:
    """Return the version with this reference, which must be stored."""
    (stored,) = store.read([reference])
    assert stored is not None
    return stored


def test_a_new_version_is_returned_pending_and_as_it_was_given(store: Store) -> None:
    """A created version is read back with all fields, without a verdict and in force."""
    version = make_version(published_at=1.5, url="https://example.org/a", lang="en", keywords=(("渡轮", 0.1),))
    assert store.create([version]) == [StoredVersion(version.record, None, None)]
    assert store.read([version.record.reference]) == [StoredVersion(version.record, None, None)]


def test_the_first_writer_of_a_version_wins_all_of_it(store: Store) -> None:
    """A second delivery changes no field, and returns what is stored."""
    first = make_version(time_ms=TIME_MS + 5, sequence=7, title="first", body="first body")
    second = make_version(time_ms=TIME_MS, sequence=1, title="second", body="second body")
    assert first.record.reference == second.record.reference
    store.create([first])
    # Also together with a new one.
    assert store.create([second, make_version("b")])[0] == StoredVersion(first.record, None, None)
    assert store.read([first.record.reference]) == [StoredVersion(first.record, None, None)]
    assert store.bodies([first.record.reference]) == ["first body"]
    assert store.history(id_hash("a")) == [StoredVersion(first.record, None, None)]


def test_sketches_are_those_of_the_versions(store: Store) -> None:
    """Settled, or repeated in one call, at least once they were read; empty where nothing is stored."""
    versions = [make_version(name, name.encode()) for name in "ab"]
    references = [version.record.reference for version in versions]
    store.create(versions)
    store.settle([(references[0], b"kept")])
    asked = [references[1], b"\0" * len(references[0]), references[0], references[1]]
    first, second = (version.record.sketch for version in versions)
    before = store.sketches(asked)
    assert all(found in (b"", each) for found, each in zip(before, [second, b"", first, second], strict=True))
    store.read(asked)
    assert store.sketches(asked) == [second, b"", first, second]


def test_a_missing_body_is_added_while_there_is_no_verdict(store: Store) -> None:
    """A crash may have left it out; the body of a settled version stays missing."""
    pending, settled = (make_version(name, body=None) for name in "ab")
    references = [pending.record.reference, settled.record.reference]
    store.create([pending, settled])
    store.settle([(settled.record.reference, b"kept")])
    for body in ("The ferry came in.", "Another text."):
        store.create([pending._replace(body=body), settled._replace(body=body)])
        assert store.bodies(references) == ["The ferry came in.", None]


def test_creating_a_settled_version_again_returns_its_verdict(store: Store) -> None:
    """A replay returns the stored verdict."""
    version = make_version()
    store.create([version])
    store.settle([(version.record.reference, b"kept")])
    assert store.create([version]) == [StoredVersion(version.record, b"kept", None)]


def test_results_come_in_the_order_of_the_arguments(store: Store) -> None:
    """There is a result for each argument, None where nothing is stored, also for a repeated reference."""
    versions = [make_version(f"a{number}", body=f"body {number}") for number in (3, 1, 2)]
    references = [version.record.reference for version in versions]
    assert [stored.record for stored in store.create(versions)] == [version.record for version in versions]
    missing = make_record("missing").reference
    asked = [references[2], missing, references[0], references[2]]
    found = store.read(asked)
    assert [stored and stored.record.reference for stored in found] == [asked[0], None, asked[2], asked[0]]
    assert store.bodies(asked) == ["body 2", None, "body 3", "body 2"]


def test_empty_calls_do_nothing(store: Store) -> None:
    """A batch may be empty."""
    assert store.create([]) == []
    assert store.retract([]) == []
    assert store.read([]) == []
    assert store.bodies([]) == []
    assert store.settle([]) == []
    assert store.look_up([]) == []
    store.add([])
    store.remove([])
    assert store.history(id_hash("a")) == []
    assert store.latest([]) == []
    assert store.latest([id_hash("a")]) == [None]
    assert store.stats()[:5] == (0, 0, 0, 0, 0)


FIRST = make_record("a", b"one", time_ms=TIME_MS, sequence=9)
SECOND = make_record("a", b"two", time_ms=TIME_MS + 1, sequence=0)
RETRACTION = make_tombstone("a", time_ms=TIME_MS + 1, sequence=1)
THIRD = make_record("a", b"three", time_ms=TIME_MS + 1, sequence=2)
NEIGHBOUR = make_record("b", b"one", time_ms=TIME_MS + 1, sequence=0)


@pytest.mark.parametrize("order", list(permutations([FIRST, SECOND, RETRACTION, THIRD])))
def test_a_version_ends_when_the_next_of_its_id_arrives_in_whatever_order_they_are_written(
    store: Store, order: tuple[Record | Tombstone, ...]
) -> None:
    """``ends_at`` and the history follow arrivals, not the order of writing; other ids have no effect."""
    store.create([Version(NEIGHBOUR, None)])
    for what in order:
        if isinstance(what, Tombstone):
            assert store.retract([what]) == [what]
        else:
            store.create([Version(what, None)])
    assert only(store, FIRST.reference).ends_at == SECOND.arrival
    assert only(store, SECOND.reference).ends_at == RETRACTION.arrival
    assert only(store, THIRD.reference).ends_at is None
    assert only(store, NEIGHBOUR.reference).ends_at is None
    assert store.history(id_hash("a")) == [
        StoredVersion(FIRST, None, SECOND.arrival),
        StoredVersion(SECOND, None, RETRACTION.arrival),
        RETRACTION,
        StoredVersion(THIRD, None, None),
    ]
    assert store.history(id_hash("b")) == [StoredVersion(NEIGHBOUR, None, None)]


@pytest.mark.parametrize("order", list(permutations([FIRST, SECOND, RETRACTION])))
def test_the_latest_of_an_id_is_what_arrived_last(store: Store, order: tuple[Record | Tombstone, ...]) -> None:
    """Not what was written last; ids that come before and after it in the store have no effect."""
    others = [make_record(f"other {number}", b"one", time_ms=TIME_MS + 9) for number in range(20)]
    store.create([Version(other, None) for other in others])
    written: list[Record | Tombstone] = []
    for what in order:
        written.append(what)
        if isinstance(what, Tombstone):
            store.retract([what])
        else:
            store.create([Version(what, None)])
        last = max(written, key=lambda each: each.arrival)
        expected = last if isinstance(last, Tombstone) else StoredVersion(last, None, None)
        assert store.latest([id_hash("a"), id_hash("nobody")]) == [expected, None]
    assert store.latest([other.id_hash for other in others]) == [StoredVersion(other, None, None) for other in others]


def test_create_returns_where_a_version_ends_already(store: Store) -> None:
    """A version that is written after its successor is returned as ended, also within one call."""
    store.create([Version(THIRD, None)])
    second, first = store.create([Version(SECOND, None), Version(FIRST, None)])
    assert (first.ends_at, second.ends_at) == (SECOND.arrival, THIRD.arrival)


def test_equal_times_and_sequences_are_ordered_by_reference(store: Store) -> None:
    """The reference breaks ties, so that one of two versions is always later."""
    low, high = sorted((make_record("a", b"one"), make_record("a", b"two")), key=lambda record: record.reference)
    store.create([Version(high, None), Version(low, None)])
    assert only(store, low.reference).ends_at == high.arrival
    assert only(store, high.reference).ends_at is None


def test_numbers_are_ordered_as_numbers(store: Store) -> None:
    """Times and sequences of more than one byte, and of more than 32 bits, keep their order."""
    times = [0, 1, 255, 256, 65_535, 2**32, 2**40, 2**53]
    records = [make_record("a", b"%d" % time_ms, time_ms=time_ms, sequence=2**53 - time_ms) for time_ms in times]
    store.create([Version(record, None) for record in reversed(records)])
    history = store.history(id_hash("a"))
    assert [what.record for what in history if isinstance(what, StoredVersion)] == records


def test_a_replayed_retraction_is_ignored(store: Store) -> None:
    """The first tombstone of its reference stays, with its arrival and its event."""
    first = make_tombstone(time_ms=TIME_MS + 5, event=b"first", place=b"offset 1")
    again = make_tombstone(time_ms=TIME_MS, event=b"second", place=b"offset 1")
    assert store.retract([first]) == [first]
    assert store.retract([again]) == [first]
    assert store.history(id_hash("a")) == [first]


def test_a_tombstone_is_not_a_version(store: Store) -> None:
    """A tombstone is not read, settled, or returned with a body."""
    tombstone = make_tombstone()
    store.retract([tombstone])
    assert store.read([tombstone.reference]) == [None]
    assert store.settle([(tombstone.reference, b"kept")]) == [False]
    assert store.bodies([tombstone.reference]) == [None]


def test_a_body_comes_back_as_it_was(store: Store) -> None:
    """Bodies keep every character; a missing body is None, an empty text is a text."""
    text = "渡轮黎明进港。\0 🛥 " + "long " * 50_000
    versions = [make_version("a", body=text), make_version("b", body=None), make_version("c", body="")]
    store.create(versions)
    assert store.bodies([version.record.reference for version in versions]) == [text, None, ""]


def test_thousands_of_versions_go_through_every_call(kind: Kind, store: Store) -> None:
    """A large batch works in one call."""
    count = 1_500 if kind.remote else 5_000
    versions = [make_version(f"a{number}", b"%d" % number, sequence=number) for number in range(count)]
    records = [version.record for version in versions]
    references = [record.reference for record in records]
    assert len(store.create(versions)) == count
    store.add(records)
    assert store.settle([(reference, reference) for reference in references]) == [True] * count
    assert store.read(references) == [StoredVersion(record, record.reference, None) for record in records]
    assert len(store.look_up(sorted({key for record in records for key in record.keys}))) > count
    assert store.stats()[:4] == (count, count, 0, sum(len(set(record.keys)) for record in records))
    store.remove(records)
    assert store.stats().postings == 0
