"""What the fact guard promises of stories in one frame and of light rewrites, on frames that it was not chosen on."""

import re
from random import Random

import pytest

from benchmarks.quality.frames import GROUPS, LANGUAGES, Frame, fill, frames, rewrite
from benchmarks.quality.templates import CHOSEN, SLOTS, THRESHOLDS, Frames, Guard, Point, curve, main, make_pairs
from consumer.workers.word_files import load_lexicon

PAIRS = 320


@pytest.fixture(scope="module")
def points() -> dict[Guard, Point]:
    """What the guards do: none, the recommended share of facts, and slots."""
    lexicon = load_lexicon()
    facts, slots = (make_pairs(Frames.HELD_OUT, PAIRS, 1, lexicon, guard) for guard in (CHOSEN, SLOTS))
    found = [*curve(facts, lexicon, (0.0, CHOSEN)), *curve(slots, lexicon, (SLOTS,))]
    return {point.guard: point for point in found}


def test_similarity_cannot_tell_stories_in_one_frame_apart(points: dict[Guard, Point]) -> None:
    """Without the guard every template pair is flagged, as is every rewrite: precision is a half."""
    off = points[0.0]
    assert (off.flagged, off.found) == (PAIRS, PAIRS)


def test_the_guard_tells_stories_from_rewrites(points: dict[Guard, Point]) -> None:
    """Precision of at least 0.95, with at least 0.9 of the rewrites found, also of those that correct two facts."""
    on = points[CHOSEN]
    assert (on.precision.value or 0) >= 0.95
    assert (on.recall.value or 0) >= 0.9
    assert on.found_of_two >= 0.9 * PAIRS


def test_slots_tell_stories_apart_and_rewrites_too(points: dict[Guard, Point]) -> None:
    """About 2 % of template pairs are flagged; a rewrite corrects a fact, so most are held back as well."""
    on = points[SLOTS]
    assert on.flagged <= 0.025 * PAIRS
    assert 0.2 * PAIRS < on.found < 0.6 * PAIRS


@pytest.mark.parametrize("which", Frames)
def test_the_command_prints_the_curve_and_the_kinds_of_text(which: Frames, capsys: pytest.CaptureFixture[str]) -> None:
    """Every threshold has its row, and every group of frames in every language."""
    main(seed=3, pairs=32, which=which)
    shown = capsys.readouterr().out
    assert "32 template pairs near without a guard" in shown
    assert re.findall(r"^│ (off|0\.\d+|slots) ", shown, re.MULTILINE) == [
        "off",
        *(f"{threshold:g}" for threshold in THRESHOLDS[1:]),
        SLOTS,
    ]
    groups = [group for group in GROUPS for _ in LANGUAGES]
    assert re.findall(rf"^│ ({'|'.join(GROUPS)}) ", shown, re.MULTILINE) == groups + groups


def test_there_are_enough_frames_of_every_kind() -> None:
    """At least twelve of each, half of them in each language."""
    for group in GROUPS:
        for language in LANGUAGES:
            assert sum((frame.group, frame.language) == (group, language) for frame in frames()) >= 6


@pytest.mark.parametrize("frame", frames(), ids=lambda frame: f"{frame.group}-{frame.language}-{frame.number}")
def test_a_story_is_filled_and_rewritten_as_its_seed_has_it(frame: Frame) -> None:
    """Equal seeds give equal texts; no slot is left; the next story has another text, and a rewrite one other fact."""
    story, again = (fill(frame, Random(7)) for _ in range(2))
    assert story == again
    assert re.search("[<>]", story.text) is None
    other = fill(frame, Random(8), story.lasting)
    assert other.text != story.text
    assert other.lasting == story.lasting
    rewritten = rewrite(story, Random(9))
    corrected = {slot for slot, now in zip(story.slots, rewritten.slots, strict=True) if slot != now}
    assert len(corrected) == 1
