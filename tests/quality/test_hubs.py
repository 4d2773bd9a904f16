"""A bare frame that is posted first hides no ordinary notice behind it, and what that costs."""

import re
from collections.abc import Iterator
from random import Random

import pytest

from benchmarks.quality import hubs
from benchmarks.quality.frames import Frame, fill, frames
from benchmarks.quality.hubs import (
    NOTICES,
    OWN_FACTS,
    SHARED_FACTS,
    bare,
    cut,
    cut_pairs,
    has_few_facts,
    judges,
    main,
    notice_pairs,
    sharing,
)
from benchmarks.quality.templates import Frames, frames_of, near, stored
from consumer.fingerprint import Fingerprinter, Lexicon
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.workers.word_files import load_lexicon
from storage.memory import MemoryStore
from storage.records import StoredVersion, Version

SEEDS = 20


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The default dictionaries."""
    return load_lexicon()


@pytest.fixture(scope="module")
def ordinary(lexicon: Lexicon) -> dict[int, list[Frame]]:
    """Frames with many slots, by how many facts all their notices share."""
    fingerprinter = Fingerprinter(judges(lexicon).off.scheme, lexicon)
    several = [frame for frame in frames() if not has_few_facts(frame)]
    return {
        shared: list(filter(None, (sharing(frame, shared, fingerprinter) for frame in several)))
        for shared in SHARED_FACTS
    }


def attacks(
    seed: int, ordinary: dict[int, list[Frame]], lexicon: Lexicon
) -> Iterator[tuple[StoredVersion, list[StoredVersion]]]:
    """Yield a hub and the notices that follow, for 0 and 3 to 6 facts that all share; 0 to 2 are the hub's own."""
    random, off = Random(f"attack {seed}"), judges(lexicon).off
    fingerprinter = Fingerprinter(off.scheme, lexicon)
    for shared, several in ordinary.items():
        frame = random.choice(several)
        stories = [fill(frame, random) for _ in range(NOTICES + 1)]
        own = OWN_FACTS[(seed + shared) % len(OWN_FACTS)]
        bodies = [bare(stories[0], own, random), *(story.text for story in stories[1:])]
        hub, *notices = stored("", bodies, [frame.language] * len(bodies), off, fingerprinter)
        yield hub, notices


def flagged(hub: StoredVersion | None, notices: list[StoredVersion], by: JudgeSettings) -> int:
    """Return how many of the notices the judge flags, with or without a hub before them."""
    detector = Detector(MemoryStore(), by, lambda: 0)
    versions = [Version(each.record, None) for each in ([] if hub is None else [hub]) + notices]
    return sum(event.verdict.duplicate_of is not None for event in detector.judge(versions))


def test_no_ordinary_notice_is_flagged_behind_a_hub(ordinary: dict[int, list[Frame]], lexicon: Lexicon) -> None:
    """In twenty seeds none of ten is; the first revision of the guard hides most of them."""
    first, second = judges(lexicon).revisions
    hidden = 0
    for seed in range(SEEDS):
        for hub, notices in attacks(seed, ordinary, lexicon):
            assert (flagged(None, notices, first), flagged(hub, notices, second)) == (0, 0), seed
            hidden += flagged(hub, notices, first)
    assert hidden > SEEDS * len(SHARED_FACTS) * NOTICES / 2


def test_copies_are_lost_only_where_facts_were_cut(lexicon: Lexicon) -> None:
    """Of the copies that lack 20 to 40 % of the text and are found without a guard, more than half are still found."""
    by = judges(lexicon, similarity_min=0.5)
    copies = [each.pair for seed in range(3) for each in cut_pairs(Frames.HELD_OUT, seed, lexicon)]
    found = [copy for copy in copies if near(copy, by.off)]
    first, second = (sum(near(copy, settings) for copy in found) for settings in by.revisions)
    assert len(found) > 100
    assert first == len(found)
    assert 0.5 * len(found) < second < len(found)


def test_a_hub_lowers_the_threshold_without_a_guard(lexicon: Lexicon) -> None:
    """Two notices that are 0.65 alike are hardly ever flagged alone, and mostly behind what they have in common."""
    pairs = notice_pairs(Frames.HELD_OUT, 1, lexicon)
    added = [pair for pair in pairs if pair.added and 0.64 < pair.jaccard < 0.69]
    assert len(added) >= 10
    assert sum(pair.alone for pair in added) <= 0.2 * len(added)
    assert sum(pair.behind_hub for pair in added) > 0.7 * len(added)


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_a_cut_copy_lacks_one_stretch(share: float) -> None:
    """What is left is the text's beginning and end."""
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 500)))
    for seed in range(9):
        rest = cut(text, share, Random(seed))
        assert len(rest) == 500 - 500 * share
        start = next((place for place in range(len(rest)) if rest[place] != text[place]), len(rest))
        assert text.endswith(rest[start:])


def test_the_command_prints_all_measurements(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table each for hubs, cut copies, and the two kinds of notices; with every fifth frame here."""
    monkeypatch.setattr(hubs, "frames_of", lambda which: frames_of(which)[::5])
    main(seeds=1, which=Frames.TUNING)
    shown = capsys.readouterr().out
    assert len(re.findall(r"^│ (?:many|few) +│ [03456] ", shown, re.MULTILINE)) == 2 * len(SHARED_FACTS)
    assert re.findall(r"^│ (0\.75|0\.5) +│ (20%–30%|30%–40%) ", shown, re.MULTILINE) == [
        (least, bounds) for least in ("0.75", "0.5") for bounds in ("20%–30%", "30%–40%")
    ]
    assert shown.count("Two notices in one frame") == 2
