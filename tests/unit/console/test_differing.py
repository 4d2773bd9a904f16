"""What differs between two texts, in parts that a page can hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.console.pages import text_differences as module
from consumer.console.pages.text_differences import COMPARED_CHARS_MAX, PART_CHARS_MAX, Piece, compare_part, plain_part
from consumer.text import moves
from consumer.text.diff import Stretch, difference

WORDS = "The harbour council voted on Tuesday to rebuild the eastern ferry landing. "


def told(pieces: tuple[Piece, ...], mark: str) -> list[str]:
    """The texts of the pieces with this mark."""
    return [piece.text for piece in pieces if piece.mark == mark]


def whole(article: str, original: str) -> tuple[str, str]:
    """Both texts, put together again from all parts."""
    first = compare_part(article, original)
    found = [compare_part(article, original, number).part for number in range(1, first.parts + 1)]
    sides = zip(*[(part.article, part.original) for part in found], strict=True)
    texts = ["".join(piece.text for pieces in side for piece in pieces) for side in sides]
    return texts[0], texts[1]


def test_what_differs_is_marked_on_its_own_side() -> None:
    """A word that was replaced is marked in both texts, what surrounds it in neither."""
    found = compare_part("rebuilt on Tuesday evening", "rebuilt on Friday evening")
    assert found.part.article == (Piece("rebuilt on ", "same"), Piece("Tuesday", "changed"), Piece(" evening", "same"))
    assert told(found.part.original, "changed") == ["Friday"]
    assert (found.number, found.parts, found.is_compared) == (1, 1, True)
    assert not found.is_equal
    assert not found.is_same_folded


def test_text_that_stands_elsewhere_has_moved() -> None:
    """It is marked so on both sides, and not as if it were in one of them only."""
    sentence = "Half of what that costs comes from those who own its boats"
    found = compare_part(f"{sentence}. {WORDS * 3}", f"{WORDS * 3} {sentence}.")
    assert [text.strip(" .") for text in told(found.part.article, "moved")] == [sentence]
    assert [text.strip(" .") for text in told(found.part.original, "moved")] == [sentence]
    assert "".join(told(found.part.article + found.part.original, "changed")).strip(" .") == ""


def test_equal_texts_are_said_to_be_equal() -> None:
    """Nothing is marked."""
    found = compare_part(WORDS, WORDS)
    assert found.is_equal
    assert found.part.article == found.part.original == (Piece(WORDS, "same"),)


def test_characters_that_verdicts_take_for_the_same_do_not_differ() -> None:
    """Full-width letters, digits and marks, and capitals; each side is shown as it was written."""
    article, original = "Ｔｈｅ　Ｍａｐ，１８８４", "the map,1884"
    found = compare_part(article, original)
    assert found.part.article == (Piece(article, "same"),)
    assert found.part.original == (Piece(original, "same"),)
    assert found.is_same_folded
    assert not found.is_equal
    changed = compare_part("Ｔｈｅ　Ｍａｐ，１８８４", "the map,1885")
    assert not changed.is_same_folded
    assert told(changed.part.article, "changed") == ["１８８４"]


@pytest.mark.parametrize(("article", "original"), [("ma\u200bp", "map"), ("map …", "map ..."), ("a  b\n", "a b")])
def test_texts_can_be_the_same_though_some_of_their_characters_are_marked(article: str, original: str) -> None:
    """A reader sees which, and that they do not count."""
    found = compare_part(article, original)
    assert found.is_same_folded
    assert told(found.part.article, "changed") != []


def test_long_texts_are_not_said_to_be_the_same() -> None:
    """Their ends were not compared."""
    text = "Map " * (COMPARED_CHARS_MAX // 4 + 1)
    assert not compare_part(text, text.upper()).is_same_folded


def test_single_letters_in_common_are_no_islands() -> None:
    """Two sentences that share a few characters are one change, not a patchwork; a line end stays as it is."""
    found = compare_part("码头重建工程开工", "码头东部轮渡重修")
    assert told(found.part.article, "same") == ["码头"]
    lines = compare_part("one\ntwo", "three\nfour")
    assert told(lines.part.article, "same") == ["\n"]


@pytest.mark.parametrize(("article", "original"), [("", ""), ("text", ""), ("", "text")])
def test_a_text_may_be_empty(article: str, original: str) -> None:
    """Then all of the other one differs."""
    found = compare_part(article, original)
    assert [piece.text for piece in found.part.article] == [article] * bool(article)
    assert told(found.part.original, "changed") == [original] * bool(original)


def test_what_could_harm_is_not_shown() -> None:
    """Characters that turn or control the text around them are replaced, on both sides."""
    found = compare_part("a\u202eb\x1b[31m", "a\u202ec\x07")
    shown = "".join(piece.text for piece in found.part.article + found.part.original)
    assert not {"\u202e", "\x1b", "\x07"} & set(shown)
    assert "\ufffd" in shown


@given(st.text("ab \n码", max_size=400), st.text("ab \n码", max_size=400), st.integers(20, 90), st.integers(1, 60))
def test_the_parts_hold_both_texts_within_bounds(article: str, original: str, compared: int, chars: int) -> None:
    """Put together again they are the texts, and no part shows more than it may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "COMPARED_CHARS_MAX", compared)
        patch.setattr(module, "PART_CHARS_MAX", chars)
        patch.setattr(moves, "MOVED_WIDTH_MIN", 8)
        patch.setattr(moves, "_RUN_CHARS", 4)
        assert whole(article, original) == (article, original)
        for number in range(1, compare_part(article, original).parts + 1):
            part = compare_part(article, original, number).part
            for side in (part.article, part.original):
                assert sum(len(piece.text) for piece in side) <= chars


def test_text_behind_what_is_compared_is_not_marked() -> None:
    """It says that it was not compared, though it may differ."""
    article = WORDS * (COMPARED_CHARS_MAX // len(WORDS) + 2000)
    found = compare_part(article, article + "More.", 10**9)
    assert found.number == found.parts > 5
    assert not found.is_compared
    assert {piece.mark for piece in found.part.original} == {"not compared"}
    assert {piece.mark for piece in compare_part(article, article + "More.").part.original} == {"same"}


def test_no_more_than_so_much_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte costs a page no more than a long article, and is told to be compared in part."""
    compared: list[tuple[int, int]] = []

    def noted(a: str, b: str) -> list[Stretch]:
        compared.append((len(a), len(b)))
        return difference(a, b)

    monkeypatch.setattr(module, "difference", noted)
    found = compare_part("码头" * 500_000, "轮渡" * 500_000)
    assert compared == [(COMPARED_CHARS_MAX, COMPARED_CHARS_MAX)]
    assert sum(len(piece.text) for piece in found.part.article) == PART_CHARS_MAX
    assert not found.is_compared


def test_insertions_do_not_make_what_stands_between_them_differ() -> None:
    """The other text goes on unchanged there."""
    found = compare_part("机\u200b场\u200b线", "机场线")
    assert told(found.part.original, "changed") == []
    assert told(found.part.article, "changed") == ["\ufffd"] * 2


def test_a_text_alone_is_shown_in_parts_too() -> None:
    """Where the other text is missing there is nothing to compare with, and the bounds hold all the same."""
    piece, number, parts = plain_part("x" * (PART_CHARS_MAX + 1), 2)
    assert (piece, number, parts) == (Piece("x", "not compared"), 2, 2)
    assert plain_part("", 5) == (Piece("", "not compared"), 1, 1)
