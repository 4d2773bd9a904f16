"""Text that moved is found wherever it went, and nothing else is called moved."""

import random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.text import moves as module
from consumer.text.diff import Stretch, difference
from consumer.text.moves import MOVED_WIDTH_MIN, with_moves
from tests.examples import examples
from tests.processor_time import within_processor_s

VOTE: Final = "The harbour council voted on Tuesday to rebuild the eastern ferry landing."
COST: Final = "Work begins in March and costs eleven million, of which the port pays half."
BOATS: Final = "Until then all boats leave from the old coal pier, an hour later than before."
CHINESE: Final = "港口委员会星期二投票决定重建东部轮渡码头，"
OTHER_CHINESE: Final = "工程将于三月开工，由港口承担一半费用，"


def found(a: str, b: str) -> list[Stretch]:
    """The difference of two texts with what moved."""
    return with_moves(difference(a, b))


def moved(stretches: list[Stretch]) -> tuple[list[str], list[str]]:
    """What moved away from A, and what moved to B."""
    of_kind = [stretch for stretch in stretches if stretch.kind == "moved"]
    return [stretch.a.strip() for stretch in of_kind if stretch.a], [
        stretch.b.strip() for stretch in of_kind if stretch.b
    ]


def assert_sound(stretches: list[Stretch], a: str, b: str) -> None:
    """Both texts can be put together again, and the same has moved away from A as to B, except for spaces."""
    assert "".join(stretch.a for stretch in stretches) == a
    assert "".join(stretch.b for stretch in stretches) == b
    at_a = at_b = 0
    for stretch in stretches:
        assert (stretch.at_a, stretch.at_b) == (at_a, at_b)
        assert stretch.kind != "equal" or stretch.a == stretch.b
        assert stretch.kind != "moved" or bool(stretch.a) != bool(stretch.b)
        at_a, at_b = at_a + len(stretch.a), at_b + len(stretch.b)
    away, to = moved(stretches)
    assert sorted("".join("".join(away).split())) == sorted("".join("".join(to).split()))


@pytest.mark.parametrize(
    ("sentences", "space"), [((VOTE, COST, BOATS), " "), ((VOTE, COST, BOATS), "\n\n"), ((CHINESE, OTHER_CHINESE), "")]
)
def test_a_sentence_that_changed_its_place_moved(sentences: tuple[str, ...], space: str) -> None:
    """On both sides, as a whole, and nothing else."""
    a, b = space.join(sentences), space.join((*sentences[1:], sentences[0]))
    stretches = found(a, b)
    assert_sound(stretches, a, b)
    away, to = moved(stretches)
    assert away == to
    assert "".join(away).rstrip(".，") in {sentence.rstrip(".，") for sentence in sentences}
    assert all(not (stretch.a + stretch.b).strip(" .，\n") for stretch in stretches if stretch.kind == "changed")


def test_words_that_happen_to_be_in_both_places_do_not_hide_a_move() -> None:
    """The difference aligns them, in the middle of what moved; they have moved with it."""
    a = f"{VOTE} {COST} {BOATS} The end of the report."
    b = f"All in all the council of the port has paid for the old landing. {BOATS} The end of the report. {VOTE} {COST}"
    stretches = found(a, b)
    assert_sound(stretches, a, b)
    assert moved(stretches) == ([f"{VOTE} {COST}"[:-1]], [f"{VOTE} {COST}"[:-1]])


def test_an_edit_within_what_moved_is_shown() -> None:
    """What stands around it moved; the word itself was replaced."""
    a = f"{VOTE} {COST} {BOATS} {BOATS[::-1]}"
    b = f"{BOATS} {BOATS[::-1]} {VOTE} {COST.replace('March', 'April')}"
    stretches = found(a, b)
    assert_sound(stretches, a, b)
    away, to = moved(stretches)
    assert away == to == [f"{VOTE} Work begins in", "and costs eleven million, of which the port pays half."]
    changed = [(stretch.a.strip(), stretch.b.strip()) for stretch in stretches if stretch.kind == "changed"]
    assert {("March", ""), ("", "April")} <= set(changed)


def test_figures_of_speech_have_not_moved() -> None:
    """A passage has to be long enough to be no accident, in letters or in ideographs, and of whole words."""
    phrase = "x" * (MOVED_WIDTH_MIN - 1)
    filler = [f"w{number}" for number in range(40)]
    for short, long in ((phrase, phrase + "y"), ("码" * 13, "码头" * 7)):
        for text, expected in ((short, []), (long, [long])):
            a = f"{text}。{' '.join(filler)}"
            b = f"{' '.join(filler)} zz。{text}"
            assert moved(found(a, b)) == (expected, expected)
    a, b = f"super{VOTE[4:]} {' '.join(filler)}", f"{' '.join(filler)} {VOTE}"
    assert moved(found(a, b)) == ([VOTE[12:]], [VOTE[12:]])


def test_what_is_there_twice_moved_once() -> None:
    """The second copy was added."""
    a, b = f"{VOTE} {COST} {BOATS}!", f"{COST} {BOATS} {VOTE} {VOTE}!"
    stretches = found(a, b)
    assert_sound(stretches, a, b)
    assert moved(stretches) == ([VOTE], [VOTE])
    assert VOTE[:-1] in [stretch.b.strip(" .") for stretch in stretches if stretch.kind == "changed"]
    assert moved(found(VOTE, f"{VOTE} {VOTE}")) == ([], [])


sentences = st.lists(st.sampled_from([VOTE, COST, BOATS, CHINESE, "the", "of 3.5", "\n", VOTE[7:50]]), max_size=8)


@examples(60)
@given(sentences, sentences, st.booleans())
def test_both_texts_can_be_put_together_again(one: list[str], other: list[str], spaced: bool) -> None:  # noqa: FBT001
    """Whatever moved where."""
    a, b = ("  ".join(one), "\n".join(other)) if spaced else ("".join(one), "".join(other))
    assert_sound(found(a, b), a, b)


@examples(60)
@given(st.text("ab ", max_size=60), st.text("ab ", max_size=60))
def test_any_characters(a: str, b: str) -> None:
    """With passages of any length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOVED_WIDTH_MIN", 3)
        patch.setattr(module, "_RUN_CHARS", 2)
        patch.setattr(module, "_STEP", 1)
        assert_sound(found(a, b), a, b)


def test_long_texts_take_little_time() -> None:
    """Some 100,000 characters that are hard: in another order, of few words, the same sentence again and again."""
    chance = random.Random("moves")
    words = [f"word{number}" for number in range(400)]
    lines = [" ".join(chance.sample(words, 20)) for _ in range(700)]
    few = [" ".join(chance.choices(["one", "two", "three"], k=16_000)) for _ in range(2)]
    repeated = f"{VOTE} {COST} " * 670
    pairs = [
        ("\n".join(lines), "\n".join(chance.sample(lines, len(lines)))),
        (few[0], few[1]),
        (repeated, f"{COST} x " * 50 + repeated[::-1] + repeated[40:]),
    ]
    for a, b in pairs:
        stretches = difference(a, b)
        with within_processor_s(4):
            with_moves(stretches)
