"""What the documentation says of sizes is what its formulas give."""

from pathlib import Path

import pytest

from deploy.kubernetes.sizing import CONSUMER_A_S, FEEDS, FINGERPRINT_US, LONG, SHORT, Feed, table

SIZING = Path(__file__).parents[3] / "docs" / "sizing.md"


def test_the_documentation_has_the_table() -> None:
    """The table in docs/sizing.md is what the command prints."""
    assert table([Feed(articles) for articles in FEEDS]) in SIZING.read_text()


def test_a_feed_computed_by_hand() -> None:
    """Five million a day, every figure by hand from the formulas of the documentation."""
    feed = Feed(5_000_000)
    assert feed.in_window == 35_000_000
    assert feed.articles_kept == 40_000_000
    assert feed.peak_a_s == pytest.approx(289.35, abs=0.01)
    assert feed.plan.postings_read(feed.in_window) == pytest.approx(44 * 35e6 / 268_435_456)
    assert SHORT.postings_read(feed.in_window) == pytest.approx(14 * 35e6 / 65_536)
    assert feed.store_bytes == 40_000_000 * (1_210 + 540 + 60 + 2_960 + 60 + 20 * 80)
    assert feed.disk_bytes == pytest.approx(257.2e9 * 3.9)
    assert feed.regions == 39
    assert feed.topic_bytes == 40_000_000 * 6_160 * 3
    assert feed.consumers == 2
    assert feed.cores_at_peak == pytest.approx(289.35 * 0.00256, rel=1e-4)
    assert feed.gigabyte_months_a_million == pytest.approx((6_430 * 3.9 + 6_160 * 3) * 8 / 30 / 1_000)


def test_plans_and_packing_change_where_the_documentation_says() -> None:
    """Packing pays from 8 postings a row and day, and the plan changes at a million articles in the window."""
    assert Feed(140_000).plan is SHORT
    assert Feed(145_000).plan is LONG
    assert not Feed(524_288).pays_to_pack
    assert Feed(100_000).postings_a_row_and_day < 8 <= 524_288 / (1 << SHORT.bits)


@pytest.mark.parametrize(
    "sentence",
    [
        f"{SHORT.postings_read(140_000_000):,.0f}, more than the 20,000",
        f"some {20_000 / SHORT.postings_read(7) / 1e6:.0f} million a day",
        f"{20 * Feed(20_000_000).peak_a_s:,.0f} a second at the peak",
        f"{(LONG.keys - SHORT.keys) * 80} bytes more per article",
        f"{8 << SHORT.bits:,} articles a day",
        f"take {FINGERPRINT_US} + {1_000_000 / 802:,.0f} µs",
        f"give {1_000_000 / (FINGERPRINT_US + 1_000_000 / 802) // 100 * 100:.0f}",
        f"good for {1_000_000 / LONG.gateway_us // 100 * 100:,.0f} articles a second",
        f"work off {CONSUMER_A_S * 3600 / 1e6:.1f} million",
        f"{Feed(1_000_000).core_hours_a_million:.2f} core hours and ",
        f" and {Feed(1_000_000).gigabyte_months_a_million:.1f} GB months",
        "0.04 + 1.16 = 1.20",
    ],
)
def test_figures_in_the_text_are_computed_ones(sentence: str) -> None:
    """Figures that the text takes from the formulas are those that the formulas give."""
    assert sentence in " ".join(SIZING.read_text().split())
