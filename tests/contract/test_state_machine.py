"""Random calls on each store and on the model, whose results are compared."""

from contextlib import ExitStack
from functools import partial

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from storage.postings import POSTING_LAYOUTS, postings_of
from storage.records import Record, Release, StoredVersion, Tombstone, Version, id_hash
from tests.builders import make_key, make_record, make_tombstone
from tests.contract.conftest import Kind, SetClock
from tests.contract.model import Model
from tests.examples import share_of

ROW_POSTINGS_MAX = 4
TIMES_MS = st.integers(0, 9)
KEYS = [make_key(value, lane=lane) for lane in (0, 1) for value in (0, 1)]
IDS = st.sampled_from("abc")
BODIES = st.sampled_from([None, "", "The ferry came in."])
TOMBSTONES = st.builds(
    make_tombstone,
    article_id=IDS,
    time_ms=TIMES_MS,
    sequence=st.integers(0, 2),
    event=st.sampled_from([b"gone", b"gone again"]),
    place=st.sampled_from([b"offset 1", b"offset 2"]),
)


def records_of(code_bytes: int) -> st.SearchStrategy[Record]:
    """Return records with fingerprints of this width."""
    return st.builds(
        partial(make_record, code_bytes=code_bytes),
        article_id=IDS,
        content=st.sampled_from([b"one", b"two", b"three"]),
        time_ms=TIMES_MS,
        sequence=st.integers(0, 2),
        keys=st.lists(st.sampled_from(KEYS), unique=True, max_size=3).map(tuple),
        title=st.sampled_from(["A ferry", "Two ferries"]),
    )


def reference_of(what: Version | Tombstone) -> bytes:
    """Return what makes the items of one call distinct."""
    return what.reference if isinstance(what, Tombstone) else what.record.reference


class StoreMachine(RuleBasedStateMachine):
    """A store and the model, which get the same calls."""

    def __init__(self, kind: Kind, code_bytes: int) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.sweeps = kind.sweeps
        self.clock = SetClock(0)
        self.store = self.stack.enter_context(kind.opened(self.clock, ROW_POSTINGS_MAX))
        self.model = Model()
        self.known: dict[bytes, Record] = {}
        self.records = records_of(code_bytes)

    def teardown(self) -> None:
        """Close the store, in which everything can be read."""
        with self.stack:
            self.store.check()

    @rule(ms=st.integers(1, 4))
    def wait(self, ms: int) -> None:
        """Advance the clock."""
        self.clock.ms += ms

    @rule(data=st.data())
    def create(self, data: st.DataObject) -> None:
        """Both have the same contents afterwards."""
        some = st.builds(Version, self.records, BODIES)
        versions = data.draw(st.lists(some, max_size=4, unique_by=reference_of))
        stored = self.store.create(versions)
        for version in versions:
            self.known.setdefault(version.record.reference, version.record)
            self.model.create(version, self.clock.ms)
        assert stored == [self.model.stored(version.record.reference) for version in versions]

    @rule(tombstones=st.lists(TOMBSTONES, max_size=3, unique_by=reference_of))
    def retract(self, tombstones: list[Tombstone]) -> None:
        """Both have the same contents afterwards."""
        stored = self.store.retract(tombstones)
        assert stored == [self.model.retract(tombstone, self.clock.ms) for tombstone in tombstones]

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        """Postings of any record, stored or not, in both."""
        records = data.draw(st.lists(self.records, max_size=4))
        self.store.add(records)
        self.model.postings |= {posting for record in records for posting in postings_of(record)}

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Postings of any record, stored or not, in both."""
        records = data.draw(st.lists(self.records, max_size=4))
        self.store.remove(records)
        self.model.postings -= {posting for record in records for posting in postings_of(record)}

    @precondition(lambda self: self.known)
    @rule(data=st.data(), verdict=st.sampled_from([b"kept", b"duplicate", b""]))
    def settle(self, data: st.DataObject, verdict: bytes) -> None:
        """The same verdict is stored in both."""
        references = data.draw(st.lists(st.sampled_from(sorted(self.known)), unique=True))
        verdicts = [(reference, verdict) for reference in references]
        assert self.store.settle(verdicts) == [self.model.settle(*item) for item in verdicts]

    @precondition(lambda self: self.known)
    @rule(data=st.data(), event=st.sampled_from([b"released", b"kept", b""]))
    def release(self, data: st.DataObject, event: bytes) -> None:
        """The same release is stored in both."""
        some = st.lists(st.sampled_from(sorted(self.known)), unique=True)
        releases = [Release(reference, event, reference[::-1]) for reference in data.draw(some)]
        assert self.store.release(releases) == [self.model.release(release) for release in releases]

    @rule(given=st.sampled_from([b"one", b"two"]))
    def agree(self, given: bytes) -> None:
        """The first settings are kept."""
        self.model.settings = self.model.settings or given
        assert self.store.agree(given) == self.model.settings

    @precondition(lambda self: self.sweeps)
    @rule(before_ms=st.integers(0, 20), versions_max=st.integers(0, 5))
    def sweep(self, before_ms: int, versions_max: int) -> None:
        """The same number is removed; among those of equal age the store chooses."""
        due = self.model.due(before_ms)
        assert self.store.sweep(before_ms, versions_max) == min(len(due), versions_max)
        left = {reference_of_stored(what) for what in self.store.scan()}
        gone = [age for age in due if age[1] not in left]
        assert [at_ms for at_ms, _ in gone] == [at_ms for at_ms, _ in due[:versions_max]]
        for _, reference in gone:
            self.model.forget(reference)

    @invariant()
    def everything_reads_the_same(self) -> None:
        """Reads by reference, id and key, scans and counts agree."""
        references = sorted(self.known)
        versions = self.model.versions
        assert self.store.read(references) == [
            self.model.stored(reference) if reference in versions else None for reference in references
        ]
        assert self.store.bodies(references) == [
            versions[reference].body if reference in versions else None for reference in references
        ]
        expected: list[StoredVersion | Tombstone] = []
        for article_id in "abc":
            history = [self.model.whole(what) for what in self.model.of_id(id_hash(article_id))]
            assert self.store.history(id_hash(article_id)) == history
            expected += history
        assert sorted(self.store.scan(), key=reference_of_stored) == sorted(expected, key=reference_of_stored)
        self.rows_read_the_same()

    def rows_read_the_same(self) -> None:
        """Rows are whole up to the cap, and partial above."""
        rows = [self.model.row(key) for key in KEYS]
        for row, found in zip(rows, self.store.look_up(KEYS), strict=True):
            raw = sorted(posting.tobytes() for posting in found.postings)
            assert found.truncated == (len(row) > ROW_POSTINGS_MAX)
            assert set(raw) <= set(row)
            assert len(set(raw)) == len(raw) == min(len(row), ROW_POSTINGS_MAX)
        assert self.store.stats()[:5] == (
            len(self.model.versions),
            len(self.model.verdicts),
            len(self.model.tombstones),
            len(self.model.postings),
            sum(1 for row in rows if row),
        )


def reference_of_stored(what: StoredVersion | Tombstone) -> bytes:
    """Return the reference of a version or tombstone, as a store returns it."""
    return what.reference if isinstance(what, Tombstone) else what.record.reference


@pytest.mark.parametrize("code_bytes", POSTING_LAYOUTS)
def test_random_calls_give_what_the_model_gives(kind: Kind, code_bytes: int) -> None:
    """Any sequence of calls has the results that follow from the contract."""
    run_state_machine_as_test(
        partial(StoreMachine, kind, code_bytes),  # type: ignore[arg-type]  # any callable that makes a machine will do
        settings=settings(
            max_examples=share_of(kind.rounds),
            stateful_step_count=25,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
