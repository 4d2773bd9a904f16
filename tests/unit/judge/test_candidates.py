"""The choice of candidates from the rows of a look-up: which, in what order, and how many."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import msgspec
import numpy as np
import pytest

from consumer.fingerprint import Scheme, TextKind
from consumer.judge import near_postings
from consumer.judge.candidates import (
    CROWDED_VERIFICATIONS_MAX,
    Candidates,
    Probe,
    codes_to_seek,
    find_candidates,
    probe_keys,
)
from consumer.judge.settings import JudgeSettings
from storage.memory import MemoryStore
from storage.postings import KeyedCode, PostingRow, lane_of, postings_of
from storage.records import Record, Version
from tests.builders import TIME_MS
from tests.chaos.near_articles import SETTINGS, Text, edited, flips, new_text, version_of

BASE = new_text(random.Random("candidates"))


def off_by(bits: int, one_bits: int = 32) -> Text:
    """Return the base with some bits of its first block flipped; its one-bit minima are far unless given."""
    return replace(
        BASE,
        fingerprint=BASE.fingerprint ^ ((1 << bits) - 1) << 48,
        one_bits=BASE.one_bits ^ flips(random.Random("bits"), one_bits),
    )


def found(new: Version, those: Sequence[Version], settings: JudgeSettings = SETTINGS, row_max: int = 100) -> Candidates:
    """Return the candidates of a version among these."""
    store = MemoryStore(row_postings_max=row_max)
    store.add([version.record for version in those])
    keys = probe_keys(new.record, settings)
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    return find_candidates([Probe(new.record, keys)], rows, settings)[0]


def names(candidates: Candidates, those: Sequence[Version]) -> list[int]:
    """Return the places of candidates in the feed."""
    places = {version.record.reference: version.record.sequence for version in those}
    return [places[reference] for reference in candidates.references]


def test_the_nearest_come_first_and_the_earliest_of_those() -> None:
    """In a flood of equal copies the original is read, even where the limit leaves out the rest."""
    those = [version_of(f"article {n}", off_by(bits), n) for n, bits in enumerate((4, 2, 0, 2, 0))]
    assert names(found(version_of("new", BASE, 9), those), those) == [2, 4, 1, 3, 0]


@pytest.mark.parametrize(("limit", "expected"), [(1, [2]), (3, [2, 4, 1]), (5, [2, 4, 1, 3, 0])])
def test_beyond_the_limit_the_farthest_are_left_out_and_counted(limit: int, expected: list[int]) -> None:
    """``found`` counts all of them; as many as the limit are not truncated."""
    those = [version_of(f"article {n}", off_by(bits), n) for n, bits in enumerate((4, 2, 0, 2, 0))]
    candidates = found(version_of("new", BASE, 9), those, replace(SETTINGS, verifications_max=limit))
    assert names(candidates, those) == expected
    assert (candidates.found, candidates.truncated) == (5, limit < 5)


def test_those_with_the_same_fingerprint_are_named_where_letters_are_compared() -> None:
    """They may be equal texts with another sketch; elsewhere equal texts have equal sketches."""
    those = [version_of(f"article {n}", off_by(bits), n) for n, bits in enumerate((4, 0, 2, 0))]
    same = frozenset(version.reference for version in (those[1], those[3]))
    letters, words = (replace(SETTINGS, scheme=Scheme(f"jieba-tfidf/{number}")) for number in (3, 2))
    assert found(version_of("new", BASE, 9), those, letters).same_code == same
    assert found(version_of("new", BASE, 9), those, words).same_code == frozenset()


def test_a_row_that_was_cut_is_reported_even_where_nothing_was_found() -> None:
    """Postings that were not read might have been near."""
    those = [version_of(f"article {n}", off_by(14), n) for n in range(3)]
    assert found(version_of("new", BASE, 9), those, row_max=2) == Candidates((), 0, truncated=True)
    assert found(version_of("new", BASE, 9), those, row_max=3) == Candidates((), 0, truncated=False)


def test_of_versions_that_came_before_only_the_last_is_read() -> None:
    """Earlier versions of the same id are no longer in force; all later ones may match."""
    those = [version_of("changing", off_by(n), 2 * n) for n in range(6)]
    candidates = found(version_of("new", BASE, 5), those)
    assert names(candidates, those) == [4, 6, 8, 10]
    assert (candidates.found, candidates.truncated) == (4, False)


def test_what_was_replaced_by_something_farther_is_read_too() -> None:
    """It may be the text that is sent again: at most four, the nearest, the latest of those; no limit counts them."""
    articles = [(f"article {n // 2}", off_by(1 if n % 2 else 0), n) for n in range(10)]
    those = [version_of(*each) for each in [*articles, ("edited", off_by(3), 10), ("edited", off_by(2), 11)]]
    candidates = found(version_of("new", BASE, 20), those, replace(SETTINGS, verifications_max=6))
    assert names(candidates, those) == [1, 3, 5, 7, 9, 11]
    assert (candidates.found, candidates.truncated) == (6, False)
    assert names(candidates._replace(references=candidates.replaced), those) == [8, 6, 4, 2]
    assert candidates.read == candidates.references + candidates.replaced
    assert not found(version_of("new", BASE, 20), those[-2:]).replaced


@pytest.mark.parametrize("tied_before", [True, False])
def test_a_version_that_ties_in_time_and_sequence_ends_the_one_before_by_reference(*, tied_before: bool) -> None:
    """Where only the reference makes the next version later, the one before is still read."""
    those = [version_of("changing", off_by(n), 5 * n) for n in range(2)]
    tied = (version_of(f"new {n}", BASE, 5) for n in count())
    new = next(version for version in tied if (version.record.arrival < those[1].record.arrival) == tied_before)
    assert names(found(new, those), those) == ([0, 5] if tied_before else [5])


def test_an_article_is_no_candidate_of_itself_nor_of_its_other_versions() -> None:
    """Versions of the same id are left out before anything is read."""
    those = [version_of("new", off_by(n), n) for n in range(2)]
    assert found(version_of("new", BASE, 9), those) == Candidates((), 0, truncated=False)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("gap_ms", "expected"), [(SETTINGS.window_ms, 1), (SETTINGS.window_ms + 1, 0)])
def test_what_is_outside_the_window_is_not_read(sign: int, gap_ms: int, expected: int) -> None:
    """The posting's own arrival decides, before and after."""
    those = [version_of("other", BASE, 1, TIME_MS + sign * gap_ms)]
    assert found(version_of("new", BASE, 9), those).found == expected


def test_a_candidate_found_under_several_keys_counts_once_and_is_ranked_by_lane_1_first() -> None:
    """An article is in four rows of lane 0 and four of lane 1; lane 1 estimates the similarity of the sketches."""
    those = [version_of("a", off_by(0, one_bits=5), 0), version_of("b", off_by(3, one_bits=1), 1)]
    candidates = found(version_of("new", BASE, 9), those)
    assert names(candidates, those) == [1, 0]
    assert candidates.found == 2
    by_fingerprints = replace(SETTINGS, verify=False)
    assert names(found(version_of("new", BASE, 9), those, by_fingerprints), those) == [0, 1]


@pytest.mark.parametrize(("max_distance", "suspects"), [(0, 4), (2, 2), (3, 1), (4, 1)])
def test_what_only_the_sketch_can_tell_is_a_suspect(max_distance: int, suspects: int) -> None:
    """A suspect is further away than ``max_distance``, or found by a band only; counted before the limit."""
    by = replace(SETTINGS, max_distance=max_distance, verifications_max=1)
    bits = (1, 2, 3)
    those = [version_of(f"article {n}", off_by(distance), n) for n, distance in enumerate(bits)]
    those.append(version_of("by bands", replace(off_by(0, one_bits=5), fingerprint=~BASE.fingerprint & 2**64 - 1), 3))
    candidates = found(version_of("new", BASE, 9), those, by)
    assert (candidates.found, candidates.suspects) == (4, suspects)


def test_a_batch_gives_each_probe_what_it_gets_alone() -> None:
    """Articles of a batch share rows, and not candidates."""
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
    """Nothing is looked up and nothing found, in an empty batch too."""
    empty = version_of("empty", Text(0, 0, (), bytes(256)), 0)
    blank = replace(SETTINGS, max_distance=7)
    assert find_candidates([], {}, SETTINGS) == []
    assert find_candidates([Probe(empty.record, [])], {}, blank) == [Candidates((), 0, truncated=False)]


@pytest.mark.parametrize(("max_distance", "blocks"), [(0, 4), (3, 4), (4, 68), (7, 68)])
def test_a_radius_is_probed_in_lane_0_only(max_distance: int, blocks: int) -> None:
    """From 4 bits on, neighbours of each block are read too; bands are read unchanged."""
    record = version_of("a", BASE, 0).record
    keys = probe_keys(record, replace(SETTINGS, max_distance=max_distance))
    assert len(keys) == len(set(keys))
    assert [lane_of(key) for key in keys] == [0] * blocks + [1] * 4
    assert set(record.keys) <= set(keys)


def shuffles(count: int, chance: random.Random) -> list[Version]:
    """Return texts with the words of the base in different orders: the same fingerprint, and nothing else in common."""
    return [
        version_of(f"shuffle {n}", replace(new_text(chance), fingerprint=BASE.fingerprint), n) for n in range(count)
    ]


def test_in_a_crowd_what_lane_1_supports_is_read_and_little_else() -> None:
    """A copy and an edited copy precede all that share only the fingerprint, though they arrived later."""
    chance = random.Random("crowd")
    limit = replace(SETTINGS, verifications_max=200)
    crowd = shuffles(300, chance)
    copy, edit = version_of("copy", BASE, 400), version_of("edit", edited(BASE, chance, 0.05), 401)
    candidates = found(version_of("new", BASE, 500), [*crowd, edit, copy], limit, row_max=1_000)
    assert names(candidates, [*crowd, edit, copy])[:2] == [400, 401]
    assert names(candidates, [*crowd, edit, copy])[2:] == list(range(CROWDED_VERIFICATIONS_MAX))
    assert (candidates.found, candidates.truncated) == (302, True)


def test_without_bands_a_crowd_is_read_up_to_the_limit() -> None:
    """Plain SimHash and short texts have no second lane that could tell which are worth reading."""
    limit = replace(SETTINGS, verifications_max=200)
    crowd = shuffles(300, random.Random("crowd"))
    new = version_of("new", BASE, 500)
    plain = replace(limit, verify=False, lane1=False)
    short = Version(msgspec.structs.replace(new.record, kind=TextKind.SHORT, keys=new.record.keys[:4]), None)
    for article, settings in ((new, plain), (short, limit)):
        candidates = found(article, crowd, settings, row_max=1_000)
        assert names(candidates, crowd) == list(range(200))


def test_the_same_title_and_text_come_first() -> None:
    """The digest in a reference is of title and text, so a copy of a short text is found among its permutations."""
    limit = replace(SETTINGS, verifications_max=3)
    new = version_of("new", replace(BASE, kind=TextKind.SHORT), 500)
    crowd = [
        version_of(f"shuffle {n}", replace(BASE, kind=TextKind.SHORT, sketch=bytes([n]) * 256), n) for n in range(9)
    ]
    copy = version_of("copy", replace(BASE, kind=TextKind.SHORT), 400)
    assert names(found(new, [*crowd, copy], limit, row_max=1_000), [*crowd, copy]) == [400, 0, 1]


def test_a_copy_is_found_by_its_code_where_every_row_was_cut() -> None:
    """A place of lane 1 is returned only where all its rows were cut; of lane 0 where there is no lane 1."""
    chance = random.Random("cut")
    new = version_of("new", BASE, 500).record
    short = msgspec.structs.replace(new, keys=new.keys[:4])
    cut, whole = PostingRow(b"", truncated=True), PostingRow(b"", truncated=False)
    rows = dict.fromkeys(new.keys, cut)
    minima, fingerprint = KeyedCode(new.keys[4], new.one_bits), KeyedCode(new.keys[0], new.fingerprint)
    assert codes_to_seek(new, rows, SETTINGS) == [minima]
    assert codes_to_seek(new, rows | {new.keys[7]: whole}, SETTINGS) == []
    assert codes_to_seek(new, rows, replace(SETTINGS, verify=False)) == [fingerprint]
    assert codes_to_seek(short, rows, SETTINGS) == [fingerprint]
    assert codes_to_seek(short, rows | {new.keys[0]: whole}, SETTINGS) == []
    assert codes_to_seek(msgspec.structs.replace(new, keys=()), {}, SETTINGS) == []
    copy = version_of("copy", BASE, 400)
    tail = postings_of(copy.record)[4][1]
    crowd = [version_of(f"crowd {n}", edited(BASE, chance, 0.2), n) for n in range(3)]
    probe = Probe(new, list(new.keys))
    assert find_candidates([probe], rows, SETTINGS)[0] == Candidates((), 0, truncated=True)
    sought = {minima: PostingRow(tail, truncated=False)}
    assert names(find_candidates([probe], rows, SETTINGS, sought)[0], [*crowd, copy]) == [400]


def one_by_one(new: Version, those: Sequence[Version], settings: JudgeSettings) -> tuple[list[int], int]:
    """Return what ``find_candidates`` should for whole rows, in plain Python: the places, and their number."""
    own = new.record
    seen: list[tuple[Record, list[int], int]] = []
    for other in (version.record for version in those):
        keys = set(own.keys) & set(other.keys)
        distances = []
        for lane, code, limit in ((0, "fingerprint", settings.suspect_distance_max), (1, "one_bits", 16)):
            bits = (int.from_bytes(getattr(own, code)) ^ int.from_bytes(getattr(other, code))).bit_count()
            distances.append(bits if bits <= limit and any(lane_of(key) == lane for key in keys) else 255)
        shared = sum(distances[lane_of(key)] < 255 for key in keys)
        if shared and own.id != other.id and abs(own.time_ms - other.time_ms) <= settings.window_ms:
            seen.append((other, distances, shared))
    ranked = [
        (
            own.reference[16:] != other.reference[16:],
            *(reversed(distances) if settings.verify else distances),
            -shared,
            other.arrival,
            other.sequence,
        )
        for other, distances, shared in seen
        if not any(other.id == version.id and other.arrival < version.arrival < own.arrival for version, _, _ in seen)
    ]
    return [sequence for *_, sequence in sorted(ranked)], len(ranked)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("verify", [True, False])
def test_it_chooses_as_if_everything_were_looked_at_one_by_one(seed: int, *, verify: bool) -> None:
    """It agrees on copies, edits, shuffles, successive versions, ties in time, and versions outside of the window."""
    chance = random.Random(seed)
    settings = replace(SETTINGS, verify=verify, window_ms=1_000)
    texts = [BASE, edited(BASE, chance, 0.1), replace(new_text(chance), fingerprint=BASE.fingerprint), new_text(chance)]
    those = []
    for number in range(chance.choice([3, 40, 400])):
        text = chance.choice([*texts, edited(BASE, chance, chance.random() / 2)])
        name = f"article {chance.randrange(300)}"
        those.append(version_of(name, text, number, TIME_MS + chance.randrange(-1_200, 1_200) // 50 * 50))
    those = list({version.record.reference: version for version in those}.values())
    new = version_of("article 7", BASE, 200)
    candidates = found(new, those, settings, row_max=1_000)
    assert (names(candidates, those), candidates.found) == one_by_one(new, those, settings)
    few = found(new, those, replace(settings, verifications_max=9), row_max=1_000)
    assert few.references == candidates.references[:9]


def test_versions_whose_digests_begin_alike_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are sorted by a mark of 64 bits; where the marks are equal, whole references are compared."""
    monkeypatch.setattr(near_postings, "WORD_SPREAD", np.uint64(0))
    those = [version_of(f"article {n}", BASE, n) for n in range(5)]
    candidates = found(version_of("new", replace(BASE, sketch=bytes(256)), 9), those)
    assert (names(candidates, those), candidates.found) == ([0, 1, 2, 3, 4], 5)
