"""What pages draw and advise, without a page: the chart of a story, the table of sources, the rule."""

import tomllib
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consumer.console.pages.rule_advice import advice
from consumer.console.source_matrix import HEAT_STEPS, NAMES_MAX, PairLine, source_matrix
from consumer.console.story_chart import BARS_MAX, HEIGHT_PX, TICKS_MAX, bar_length_ms, chart_of
from consumer.reviews.stories import Bucket

DAY_MS: Final = 86_400_000
NOON_MS: Final = 1_764_072_000_000
"""25 Nov 2025, 12:00:00 UTC."""


def buckets(*counts: int, length_ms: int = 1_000, from_ms: int = NOON_MS) -> list[Bucket]:
    """Return spans of a length that follow each other."""
    return [Bucket(from_ms + n * length_ms, from_ms + (n + 1) * length_ms, count) for n, count in enumerate(counts)]


@given(st.lists(st.integers(0, 100_000), min_size=2, max_size=BARS_MAX).filter(any))
def test_bars_stay_in_the_picture(counts: list[int]) -> None:
    """Each span with copies has a bar that is to be seen, none overlaps, and the highest is as high as the picture."""
    drawn = chart_of(buckets(*counts))
    assert drawn is not None
    assert len(drawn.bars) == sum(count > 0 for count in counts)
    for bar in drawn.bars:
        assert 0 < bar.height <= HEIGHT_PX
        assert bar.y + bar.height == drawn.bottom
        assert bar.width > 0
        assert bar.x + bar.width <= 100.001
    assert all(a.x + a.width <= b.x + 0.001 for a, b in pairwise(drawn.bars))
    assert max(bar.height for bar in drawn.bars) == HEIGHT_PX
    assert drawn.most == max(counts)


@given(st.integers(0, 4_000_000_000_000), st.integers(0, 40_000 * DAY_MS))
@example(596_067_159_366, 1_886_947_047_660)
def test_the_scale_fits_any_span(first_ms: int, span_ms: int) -> None:
    """Bars have a round length, and are neither many nor, for a long span, few; all times are in the picture."""
    length_ms = bar_length_ms(first_ms, first_ms + span_ms)
    begin_ms, end_ms = first_ms // length_ms, (first_ms + span_ms) // length_ms
    spans = end_ms - begin_ms + 1
    assert spans <= BARS_MAX
    assert spans > BARS_MAX / 5 or length_ms == 1_000
    drawn = chart_of(buckets(*[1] * spans, length_ms=length_ms, from_ms=begin_ms * length_ms))
    assert (drawn is None) == (spans == 1)
    if drawn is not None:
        assert drawn.bar_s == length_ms / 1_000
        assert len(drawn.ticks) <= TICKS_MAX
        assert all(0 <= tick.x <= 100 for tick in drawn.ticks)
        assert all(a.x < b.x for a, b in pairwise(drawn.ticks))


@pytest.mark.parametrize(
    ("span_ms", "length_s", "shown"),
    [
        (2_500, 1, [("00", "second"), ("01", "second"), ("02", "second"), ("03", "second")]),
        (
            4 * 3_600_000,
            300,
            [("12", "minute"), ("13", "minute"), ("14", "minute"), ("15", "minute"), ("16", "minute")],
        ),
        (20 * 3_600_000, 1_800, [("12", "minute"), ("18", "minute"), ("00", "day"), ("06", "minute")]),
        (12 * DAY_MS, 21_600, [("26", "day"), ("29", "day"), ("02", "day"), ("05", "day")]),
        (800 * DAY_MS, 14 * 86_400, [("2026", "year"), ("2026", "year"), ("2027", "year"), ("2027", "year")]),
    ],
)
def test_times_of_the_scale(span_ms: int, length_s: int, shown: list[tuple[str, str]]) -> None:
    """As exact as the span needs: seconds, minutes with the day at midnight, days, days with their year."""
    length_ms = bar_length_ms(NOON_MS, NOON_MS + span_ms)
    assert length_ms == length_s * 1_000
    begin_ms = NOON_MS // length_ms * length_ms
    spans = (NOON_MS + span_ms) // length_ms - begin_ms // length_ms + 1
    drawn = chart_of(buckets(*[1] * spans, length_ms=length_ms, from_ms=begin_ms))
    assert drawn is not None
    forms = {"second": "%S", "minute": "%H", "year": "%Y"}
    told = [(datetime.fromtimestamp(tick.at_ms / 1_000, UTC), tick.unit) for tick in drawn.ticks]
    day = "%H" if span_ms < DAY_MS else "%d"
    assert [(at.strftime(forms.get(unit, day)), unit) for at, unit in told] == shown
    assert all(at.microsecond == 0 for at, _ in told)


def test_a_story_with_nothing_to_compare_has_no_chart() -> None:
    """All were released, or all came within one second."""
    assert chart_of([]) is chart_of(buckets(7)) is chart_of(buckets(0, 0)) is None


def pairs(*given: tuple[str, str, int]) -> list[PairLine]:
    """Return pairs of sources."""
    return [PairLine(source, original, copies, 1, "") for source, original, copies in given]


def test_the_table_has_the_sources_with_the_most_copies() -> None:
    """In one order, most first, each pair in its cell, and shades by the largest; no row and no column is empty."""
    found = source_matrix(pairs(("a", "x", 5), ("b", "x", 800), ("x", "b", 40), ("a", "y", 1)), lambda a, b: f"{a}>{b}")
    assert found.columns == ("x", "b", "y")
    assert [row.name for row in found.rows] == ["x", "b", "a"]
    assert [[cell.copies for cell in row.cells] for row in found.rows] == [[0, 40, 0], [800, 0, 0], [5, 0, 1]]
    assert [[cell.step for cell in row.cells] for row in found.rows] == [[0, 3, 0], [HEAT_STEPS, 0, 0], [2, 0, 1]]
    assert found.rows[2].cells[2].href == "a>y"
    assert not found.is_cut


def test_a_table_that_is_too_large_says_so() -> None:
    """The list has the rest."""
    many = [(f"s{n}", "x", n + 1) for n in range(NAMES_MAX + 5)]
    found = source_matrix(pairs(*many), lambda a, b: "")
    assert len(found.rows) == NAMES_MAX - 1
    assert found.columns == ("x",)
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
