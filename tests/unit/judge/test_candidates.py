"""From the rows of a look-up to what is worth reading: which, in what order, and how many."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from consumer.candidates import Candidates, Probe, find_candidates, probe_keys
from consumer.settings import JudgeSettings
from storage.memory import MemoryStore
from storage.postings import lane_of
from storage.records import Version
from tests.builders import TIME_MS
from tests.chaos.near_articles import SETTINGS, Text, flips, new_text, version_of

BASE = new_text(random.Random("candidates"))


def off_by(bits: int, one_bits: int = 32) -> Text:
    """The base with so many bits of its first block flipped; by its one-bit minima it is far unless told."""
    return replace(
        BASE,
        fingerprint=BASE.fingerprint ^ ((1 << bits) - 1) << 48,
        one_bits=BASE.one_bits ^ flips(random.Random("bits"), one_bits),
    )


def found(new: Version, those: Sequence[Version], settings: JudgeSettings = SETTINGS, row_max: int = 100) -> Candidates:
    """The candidates of one among these."""
    store = MemoryStore(row_postings_max=row_max)
    store.add([version.record for version in those])
    keys = probe_keys(new.record, settings)
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    return find_candidates([Probe(new.record, keys)], rows, settings)[0]


def names(candidates: Candidates, those: Sequence[Version]) -> list[int]:
    """Which of these they are, by place in the feed."""
    places = {version.record.reference: version.record.sequence for version in those}
    return [places[reference] for reference in candidates.references]


def test_the_nearest_come_first_and_the_earliest_of_those() -> None:
    """In a flood of equal copies the original is read even where the limit leaves the rest out."""
    those = [version_of(f"article {n}", off_by(bits), n) for n, bits in enumerate((4, 2, 0, 2, 0))]
    assert names(found(version_of("new", BASE, 9), those), those) == [2, 4, 1, 3, 0]


@pytest.mark.parametrize(("limit", "expected"), [(1, [2]), (3, [2, 4, 1]), (5, [2, 4, 1, 3, 0])])
def test_beyond_the_limit_the_farthest_are_left_out_and_it_is_said(limit: int, expected: list[int]) -> None:
    """``found`` counts all of them; exactly as many as the limit are not cut."""
    those = [version_of(f"article {n}", off_by(bits), n) for n, bits in enumerate((4, 2, 0, 2, 0))]
    candidates = found(version_of("new", BASE, 9), those, replace(SETTINGS, verifications_max=limit))
    assert names(candidates, those) == expected
    assert (candidates.found, candidates.truncated) == (5, limit < 5)


def test_a_row_that_was_cut_is_said_also_where_nothing_was_found() -> None:
    """What was not read might have been near."""
    those = [version_of(f"article {n}", off_by(14), n) for n in range(3)]
    assert found(version_of("new", BASE, 9), those, row_max=2) == Candidates((), 0, truncated=True)
    assert found(version_of("new", BASE, 9), those, row_max=3) == Candidates((), 0, truncated=False)


def test_of_versions_that_came_before_only_the_last_is_read() -> None:
    """An earlier one of the same id is no longer in force; all that came later may still match."""
    those = [version_of("changing", off_by(n), 2 * n) for n in range(6)]
    assert names(found(version_of("new", BASE, 5), those), those) == [4, 6, 8, 10]


@pytest.mark.parametrize("tied_before", [True, False])
def test_a_version_that_ties_in_time_and_sequence_ends_the_one_before_by_reference(*, tied_before: bool) -> None:
    """Where the next version comes after by its reference alone, the one before it is still to be read."""
    those = [version_of("changing", off_by(n), 5 * n) for n in range(2)]
    tied = (version_of(f"new {n}", BASE, 5) for n in count())
    new = next(one for one in tied if (one.record.arrival < those[1].record.arrival) == tied_before)
    assert names(found(new, those), those) == ([0, 5] if tied_before else [5])


def test_an_article_is_no_candidate_of_itself_nor_of_its_other_versions() -> None:
    """The same id is left out before anything is read."""
    those = [version_of("new", off_by(n), n) for n in range(2)]
    assert found(version_of("new", BASE, 9), those) == Candidates((), 0, truncated=False)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("gap_ms", "expected"), [(SETTINGS.window_ms, 1), (SETTINGS.window_ms + 1, 0)])
def test_what_is_outside_the_window_is_not_read(sign: int, gap_ms: int, expected: int) -> None:
    """Told by the posting's own arrival, before and after."""
    those = [version_of("other", BASE, 1, TIME_MS + sign * gap_ms)]
    assert found(version_of("new", BASE, 9), those).found == expected


def test_a_candidate_found_under_several_keys_counts_once_at_its_nearest() -> None:
    """The same article stands in four rows of lane 0 and four of lane 1."""
    those = [version_of("a", off_by(0, one_bits=5), 0), version_of("b", off_by(3, one_bits=1), 1)]
    candidates = found(version_of("new", BASE, 9), those)
    assert names(candidates, those) == [0, 1]
    assert candidates.found == 2


@pytest.mark.parametrize(("max_distance", "suspects"), [(0, 4), (2, 2), (3, 1), (4, 1)])
def test_what_only_the_sketch_can_tell_is_a_suspect(max_distance: int, suspects: int) -> None:
    """Further away by fingerprint than what is searched for, or found by a band alone; counted before the limit."""
    by = replace(SETTINGS, max_distance=max_distance, verifications_max=1)
    bits = (1, 2, 3)
    those = [version_of(f"article {n}", off_by(distance), n) for n, distance in enumerate(bits)]
    those.append(version_of("by bands", replace(off_by(0, one_bits=5), fingerprint=~BASE.fingerprint & 2**64 - 1), 3))
    candidates = found(version_of("new", BASE, 9), those, by)
    assert (candidates.found, candidates.suspects) == (4, suspects)


def test_a_batch_gives_each_probe_what_it_gets_alone() -> None:
    """Rows are shared between the articles of a batch, candidates are not."""
    chance = random.Random("batch")
    those = [version_of(f"article {n}", off_by(chance.randrange(16), chance.randrange(33)), n) for n in range(30)]
    store = MemoryStore()
    store.add([version.record for version in those])
    probes = [Probe(version.record, probe_keys(version.record, SETTINGS)) for version in those]
    keys = sorted({key for probe in probes for key in probe.keys})
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    together = find_candidates(probes, rows, SETTINGS)
    assert together == [find_candidates([probe], rows, SETTINGS)[0] for probe in probes]


def test_without_keys_there_are_no_candidates() -> None:
    """Nothing to look up, nothing found, in an empty batch too."""
    empty = version_of("empty", Text(0, 0, (), bytes(256)), 0)
    blank = replace(SETTINGS, max_distance=7)
    assert find_candidates([], {}, SETTINGS) == []
    assert find_candidates([Probe(empty.record, [])], {}, blank) == [Candidates((), 0, truncated=False)]


@pytest.mark.parametrize(("max_distance", "blocks"), [(0, 4), (3, 4), (4, 68), (7, 68)])
def test_a_radius_is_probed_in_lane_0_only(max_distance: int, blocks: int) -> None:
    """From 4 bits on the neighbours of each block are read too; bands are read as they are."""
    record = version_of("a", BASE, 0).record
    keys = probe_keys(record, replace(SETTINGS, max_distance=max_distance))
    assert len(keys) == len(set(keys))
    assert [lane_of(key) for key in keys] == [0] * blocks + [1] * 4
    assert set(record.keys) <= set(keys)
