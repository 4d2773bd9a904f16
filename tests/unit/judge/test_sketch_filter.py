"""Candidates that their sketches rule out are not read, and nothing else changes by that."""

import random
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import pytest
from typing_extensions import override

from consumer.fingerprint import TextKind, sketch_similarity
from consumer.judge import comparison
from consumer.judge.candidates import Candidates
from consumer.judge.detector import Detector
from consumer.judge.near_misses import NearMisses
from consumer.judge.settings import SourceRule
from consumer.judge.sketch_filter import without_dissimilar
from storage.memory import MemoryStore
from storage.records import Record, Version
from tests.builders import TIME_MS, make_record
from tests.chaos.near_articles import SETTINGS, edited, new_text, shuffled, version_of
from tests.examples import drawn

SKETCH: Final = bytes(range(256))
LEAST: Final = SETTINGS.similarity_min


class WholeStore(MemoryStore):
    """One that knows no sketch for less than a read."""

    @override
    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        return [b""] * len(references)


class CountingStore(MemoryStore):
    """Counts the versions that are read."""

    read_count = 0

    @override
    def read(self, references: Sequence[bytes]) -> list:  # type: ignore[type-arg]  # as the store's
        self.read_count += len(references)
        return super().read(references)


def agreeing(places: int) -> bytes:
    """A sketch with as many of the same minima."""
    return SKETCH[:places] + bytes((each + 1) % 256 for each in SKETCH[places:])


def stored(sketches: Sequence[bytes]) -> tuple[MemoryStore, tuple[bytes, ...]]:
    """A store with a version for each sketch, and their references."""
    store = MemoryStore()
    records = [make_record(f"other {number}", sketch=sketch) for number, sketch in enumerate(sketches)]
    store.create([Version(record, None) for record in records])
    return store, tuple(record.reference for record in records)


def probe(kind: TextKind = TextKind.LONG) -> Record:
    """The article that is looked up."""
    return make_record("asked", kind=int(kind), sketch=b"" if kind == TextKind.SHORT else SKETCH)


def crowd(chance: random.Random, size: int) -> list[Version]:
    """Edits of some texts that are hardly like each other by sketch, in one neighbourhood by fingerprint."""
    texts = [new_text(chance) for _ in range(3)]
    return [
        version_of(
            f"article {n}", edited(chance.choice(texts), chance, chance.uniform(0.0, 0.5)), n, source=f"source {n % 3}"
        )
        for n in range(size)
    ]


def test_what_is_like_enough_stays_in_its_order() -> None:
    """The least similarity is one; what is below goes, with its similarity."""
    sketches = [agreeing(256 - 2 * number) for number in range(54)]
    store, references = stored(sketches)
    found = without_dissimilar(
        store, [probe()], [Candidates(references[::-1], 66, truncated=True)], LEAST, sketch_similarity
    )
    (left,) = found.candidates
    kept = references[: len(left.references)]
    assert left == Candidates(kept[::-1], 66, truncated=True)
    assert 0 < len(kept) < len(references)
    assert found.sketches_read == len(references)
    assert len(found.similarities) == len(references) - len(kept)
    assert max(found.similarities) < LEAST
    at_the_edge = without_dissimilar(
        store, [probe()], [Candidates(references, 66, truncated=False)], max(found.similarities), sketch_similarity
    )
    assert len(at_the_edge.candidates[0].references) == len(kept) + 1


def test_articles_are_filtered_together_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs of all articles share the passes, whatever their number."""
    monkeypatch.setattr(comparison, "_PAIRS_AT_ONCE", 4)
    store, references = stored([agreeing(256 - 40 * number) for number in range(6)])
    every = [
        Candidates(references[first:last], last - first, truncated=False) for first, last in ((0, 6), (3, 3), (5, 6))
    ]
    probes = [probe() for _ in every]
    found = without_dissimilar(store, probes, every, LEAST, sketch_similarity)
    alone = [
        without_dissimilar(store, [own], [of_record], LEAST, sketch_similarity)
        for own, of_record in zip(probes, every, strict=True)
    ]
    assert found.candidates == [each.candidates[0] for each in alone]
    assert [len(of_record.references) for of_record in found.candidates] == [2, 0, 0]
    assert found.sketches_read == 6
    assert list(found.similarities) == [similarity for each in alone for similarity in each.similarities]


@pytest.mark.parametrize("kind", [TextKind.SHORT, TextKind.EMPTY])
def test_an_article_that_its_sketch_does_not_decide_about_keeps_all(kind: TextKind) -> None:
    """Short texts are compared by their words."""
    store, references = stored([agreeing(0)])
    every = [Candidates(references, len(references), truncated=False)]
    assert without_dissimilar(store, [probe(kind)], every, LEAST, sketch_similarity) == (every, 0, ())


def test_what_may_be_an_equal_text_by_its_fingerprint_stays() -> None:
    """Equal texts are near whatever their sketches, where letters are compared."""
    store, references = stored([agreeing(0)] * 4)
    same = references[1:3]
    every = [Candidates(references, len(references), truncated=False, same_code=frozenset(same))]
    (left,) = without_dissimilar(store, [probe()], every, LEAST, sketch_similarity).candidates
    assert left.references == same


def test_what_has_no_sketch_to_compare_stays() -> None:
    """It was swept meanwhile, or is of another scheme."""
    store, references = stored([agreeing(0), b"", b"short"])
    missing = b"\0" * len(references[0])
    every = [Candidates((*references, missing), 4, truncated=False)]
    (left,) = without_dissimilar(store, [probe()], every, LEAST, sketch_similarity).candidates
    assert left.references == (*references[1:], missing)


@pytest.mark.parametrize("seed", drawn(range(12), 3))
@pytest.mark.parametrize("share", [0.0, 1.0], ids=["verdicts alone", "with near misses"])
def test_verdicts_are_those_of_a_judge_that_reads_everything(seed: int, share: float) -> None:
    """Event by event with the near misses, in batches and of queries, where sources have rules; and less is read."""
    chance = random.Random(f"filter {seed}")
    rules = MappingProxyType({"source 1": SourceRule(similarity_min=0.9), "source 2": SourceRule(within_source=False)})
    settings = replace(SETTINGS, sources=rules)
    stores = CountingStore(), WholeStore()
    detectors = [
        Detector(store, settings, lambda: TIME_MS, near_misses=NearMisses(settings, share, 0.15) if share else None)
        for store in stores
    ]
    feed = shuffled(crowd(chance, 160), chance)
    for start in range(0, len(feed), 40):
        batch = feed[start : start + 40]
        assert detectors[0].query(batch) == detectors[1].query(batch)
        events = [detector.judge(batch) for detector in detectors]
        assert [(each.encoded, each.near_miss) for each in events[0]] == [
            (each.encoded, each.near_miss) for each in events[1]
        ]
    filtered, whole = (detector.tally for detector in detectors)
    assert filtered.sketch_reads > 0
    assert whole.sketch_reads == 0
    assert filtered.record_reads < whole.record_reads
    assert filtered.similarities.count <= whole.similarities.count
