"""What pages draw and advise, without a page: the bars of a timeline, the table of sources, the rule."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.console.pages.rule_advice import advice
from consumer.console.pages.story_pages import (
    BARS,
    HEAT_STEPS,
    HEIGHT,
    NAMES_MAX,
    WIDTH,
    PairLine,
    source_matrix,
    timeline,
)
from consumer.reviews.stories import Bucket


def buckets(*counts: int) -> list[Bucket]:
    """Spans of a second."""
    return [Bucket(n * 1_000, (n + 1) * 1_000, count) for n, count in enumerate(counts)]


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=BARS))
def test_bars_stay_in_the_picture(counts: list[int]) -> None:
    """Each span with copies has a bar that is to be seen, none overlaps, and the highest is as high as the picture."""
    drawn = timeline(buckets(*counts))
    assert len(drawn.bars) == sum(count > 0 for count in counts)
    for bar in drawn.bars:
        assert 0 < bar.height <= HEIGHT
        assert bar.y + bar.height == HEIGHT
        assert bar.width > 0
        assert bar.x + bar.width <= WIDTH
    assert all(a.x + a.width <= b.x for a, b in zip(drawn.bars, drawn.bars[1:], strict=False))
    assert not any(counts) or max(bar.height for bar in drawn.bars) == HEIGHT
    assert drawn.most == max(counts)


def test_a_story_without_copies_has_no_bars() -> None:
    """All were released."""
    assert timeline([]).bars == ()


def pairs(*given: tuple[str, str, int]) -> list[PairLine]:
    """Pairs of sources."""
    return [PairLine(source, original, copies, 1, "") for source, original, copies in given]


def test_the_table_has_the_sources_with_the_most_copies() -> None:
    """Most first, each pair in its cell, and shades by the largest."""
    found = source_matrix(pairs(("a", "x", 5), ("b", "x", 8), ("a", "y", 1)), lambda a, b: f"{a}>{b}")
    assert found.columns == ("x", "y")
    assert [row.name for row in found.rows] == ["b", "a"]
    assert [[cell.copies for cell in row.cells] for row in found.rows] == [[8, 0], [5, 1]]
    assert [[cell.step for cell in row.cells] for row in found.rows] == [[HEAT_STEPS, 0], [3, 1]]
    assert found.rows[1].cells[1].href == "a>y"
    assert not found.is_cut


def test_a_table_that_is_too_large_says_so() -> None:
    """The list has the rest."""
    many = [(f"s{n}", "x", n + 1) for n in range(NAMES_MAX + 5)]
    found = source_matrix(pairs(*many), lambda a, b: "")
    assert len(found.rows) == NAMES_MAX
    assert found.is_cut
    assert source_matrix([], lambda a, b: "").rows == ()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_rule_is_valid_whatever_the_source_is_called(name: str) -> None:
    """TOML reads the very name back, and nothing of it is invisible or turns the text around it."""
    expected: list[tuple[str, str | None, str, object]] = [
        (name, name, name, {"within_source": False}),
        (name, f"{name}2", name, {"never_with": [f"{name}2"]}),
        (f"{name}2", name, f"{name}2", {"never_with": [name]}),
        (name, "", name, {"flag": "never"}),
        (name, None, name, {"flag": "never"}),
    ]
    for source, original, ruled, rule in expected:
        found = advice(source, original)
        assert found is not None
        assert found.toml.replace("\n", "").isprintable()
        assert tomllib.loads(found.toml) == {"rules": {ruled: rule}}


@pytest.mark.parametrize("source", ["", None])
def test_there_is_no_rule_for_a_source_without_a_name(source: str | None) -> None:
    """Nor for one that was not read from the store yet."""
    assert advice(source, "wire") is None
