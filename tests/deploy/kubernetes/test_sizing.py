"""What the documentation says of sizes is what the program computes."""

from pathlib import Path

import pytest

from deploy.kubernetes.sizing import FEEDS, sizing, table

SIZING = Path(__file__).parents[3] / "docs" / "operate" / "sizing.md"
LARGEST = sizing(FEEDS[-1])


def test_the_documentation_has_the_table() -> None:
    """The table in docs/operate/sizing.md is what the command prints."""
    assert table([sizing(articles) for articles in FEEDS]) in SIZING.read_text()


def test_the_plan_changes_where_the_documentation_says() -> None:
    """At a million kept articles in the window."""
    assert [sizing(articles).plan.plan.name for articles in (178_000, 179_000)] == ["4x16", "16x28"]


@pytest.mark.parametrize(
    "sentence",
    [
        f"{LARGEST.plan.rows * LARGEST.feed.peak_a_s:,.0f} a second at the peak",
        f"good for {1e6 / LARGEST.speed.gateway_us // 100 * 100:,.0f} articles a second",
        f"{8 << 16:,} kept articles a day",
    ],
)
def test_figures_in_the_text_are_computed_ones(sentence: str) -> None:
    """Figures that the text takes from the formulas are those that the formulas give."""
    assert sentence in " ".join(SIZING.read_text().split())
