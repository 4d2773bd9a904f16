"""Settling by compare-and-set, and reading what is settled: what a judge and a fill share."""

import pytest

from consumer.judge.events import kept_event
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import SettledVerdicts, Settlement, VerdictCells, verdict_of
from consumer.model.verdict import UnreadableEvent
from storage.errors import StoreError
from storage.memory import MemoryStore
from storage.records import StoredVersion
from tests.builders import TIME_MS, make_version

VERSIONS = [make_version(name) for name in ("a", "b")]
FIRST, SECOND = (version.record for version in VERSIONS)


def kept_at(decided_ms: int) -> list[Settlement]:
    """Return a verdict for each version; verdicts of other times differ."""
    return [(record, kept_event(record, truncated=False, decided_ms=decided_ms)) for record in (FIRST, SECOND)]


@pytest.fixture
def cells() -> VerdictCells:
    """Cells of two pending versions."""
    store = MemoryStore()
    store.create(VERSIONS)
    return VerdictCells(store, Tally())


def test_what_is_settled_is_returned_and_can_be_settled_again(cells: VerdictCells) -> None:
    """After an unknown outcome the same verdicts are written again, and count as written."""
    settlements = kept_at(TIME_MS)
    expected = SettledVerdicts({record.reference: event for record, event in settlements}, ())
    assert [cells.settle(settlements), cells.settle(settlements)] == [expected, expected]
    assert cells.verdicts([FIRST.reference, SECOND.reference]) == expected.written
    assert cells.tally.lost_compare_and_sets == 0


def test_a_lost_compare_and_set_leaves_the_verdict_of_the_other_process(cells: VerdictCells) -> None:
    """It is named and counted, and reading returns what is stored."""
    _, theirs = kept_at(TIME_MS + 5)[0]
    cells.settle([(FIRST, theirs)])
    ours = kept_at(TIME_MS)
    settled = cells.settle(ours)
    assert settled == SettledVerdicts({SECOND.reference: ours[1][1]}, [FIRST.reference])
    assert cells.verdicts(settled.lost) == {FIRST.reference: theirs}
    assert (cells.tally.lost_compare_and_sets, cells.tally.record_reads) == (1, 1)


def test_a_verdict_that_is_gone_or_damaged_is_an_error() -> None:
    """A version that was settled has a verdict that can be read."""
    with pytest.raises(StoreError, match="the verdict of 'a' was settled, but the store has none"):
        verdict_of(StoredVersion(FIRST, None, None))
    with pytest.raises(UnreadableEvent, match="cannot be read"):
        verdict_of(StoredVersion(FIRST, b"", None))


def test_nothing_is_asked_of_the_store_about_nothing(cells: VerdictCells) -> None:
    """Calls without versions cost nothing."""
    assert (cells.settle([]), cells.read([])) == (SettledVerdicts({}, ()), {})
    assert cells.tally.record_reads == 0
