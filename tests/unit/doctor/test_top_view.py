"""The view of ``dupwatch top`` at several widths: only titles and the least important figures are cut."""

import io
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from consumer.cli.operations.top_view import fitting_columns, frame
from consumer.doctor.pages_client import ClientAccess, PagesClient
from consumer.doctor.watching import ConsumerStatus, WatchedConsumer
from tests.unit.doctor.consumer_pages import METRICS, flag, flags_page, served

FIGURES = ("articles/s", "dup.", "lag", "p50", "p99", "dead", "crowd", "errors", "parts")
IDS = ("zh-metro-line.zero_width", "news.example/2026/11/21/0815-ferry-fares-rise")
TITLE = "苍浦地铁5号线下月试运行，坐到机场只要三十四分钟（转载）苍浦地铁5号线下月试运行，坐到机场"
AWAY = "Connection refused"
WHY = "store: the gateway gateway-1.hbase.svc.cluster.local:9090 does not answer"


@pytest.fixture
def seen() -> list[ConsumerStatus]:
    """Three consumers: one is ready and has flags, one is not ready, one is away."""
    with served() as pages, served() as other:
        flags = [flag(name, f"2026-11-21T10:00:0{place}.123Z", TITLE) for place, name in enumerate(IDS)]
        pages.answers["/flags.json"] = (200, flags_page(*flags))
        other.answers["/readyz"] = (503, msgspec.json.encode({"ready": False, "reasons": [WHY]}))
        looked = [WatchedConsumer(page.url, PagesClient(page.url, ClientAccess(), 3.0)) for page in (pages, other)]
        found = [consumer.look() for consumer in looked]
    names = ("http://127.0.0.1:9464", "http://127.0.0.1:9465")
    named: list[ConsumerStatus] = [seen._replace(name=name) for seen, name in zip(found, names, strict=True)]
    return [*named, ConsumerStatus("http://127.0.0.1:9466", None, ready=False, reasons=(), flags=None, away=AWAY)]


def picture(seen: list[ConsumerStatus], width: int) -> list[str]:
    """The lines of a terminal of this width."""
    file = io.StringIO()
    console = Console(file=file, width=width, markup=False, emoji=False, force_terminal=True, color_system=None)
    console.print(frame(seen, "dupwatch top", width))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_nothing_is_squeezed(seen: list[ConsumerStatus], width: int) -> None:
    """No line is too long; figures, names, ids and states are whole, and only a title may end in an ellipsis."""
    lines = picture(seen, width)
    text = "\n".join(lines)
    assert max(map(cell_len, lines)) <= width, text
    assert not [line for line in lines if "…" in line and "苍浦" not in line], text
    unfolded = " ".join(text.split())
    for word in ("http://127.0.0.1:9464", "ready", "unreachable: " + AWAY, "2 of 3 answer", "1,234", "2,468"):
        assert word in unfolded, text
    for name in IDS:
        assert name in text
        assert f"{name}-original" in text
    assert "11-21 10:00:01" in text
    assert "0.95" in text
    for stage in ("decode", "look_up", "commit"):
        (row,) = [line for line in lines if line.startswith(stage)]
        assert row.rstrip().endswith("ms")
    header = next(line for line in lines if "articles/s" in line)
    hidden = next((line for line in lines if line.startswith("A wider terminal")), "")
    assert [name for name in FIGURES if name not in header.split()] == [
        name for name in FIGURES if name in hidden.replace(",", "").split()
    ]


def test_what_is_shown_by_width(seen: list[ConsumerStatus]) -> None:
    """A table if there is room, otherwise all figures below each name, otherwise the most important ones."""
    wide, page, narrow = (picture(seen, width) for width in (200, 80, 60))
    assert wide[1].split() == ["consumer", *FIGURES, "state"]
    assert page[1].split() == [*FIGURES]
    assert page[2] == "http://127.0.0.1:9464  ready"
    assert page[3].split()[2] == "1,234"
    for name in ("articles/s", "lag", "p99", "errors", "dead"):
        assert name in narrow[1].split()


def test_a_page_of_30_columns_has_what_matters_most(seen: list[ConsumerStatus]) -> None:
    """The rate is always shown; what is left out is listed."""
    lines = picture(seen, 30)
    assert max(map(cell_len, lines)) <= 30
    assert lines[1].split()[:2] == ["articles/s", "lag"]
    assert "crowd" in " ".join(lines)


@pytest.mark.parametrize(
    ("width", "kept"), [(100, [0, 1, 2]), (8, [0, 1, 2]), (7, [0, 2]), (4, [0, 2]), (3, [0]), (0, [0])]
)
def test_columns_fit_by_importance(width: int, kept: list[int]) -> None:
    """To the cell, including gaps; the most important column always stays."""
    names: tuple[Any, ...] = ("a", "bb", "c")
    assert fitting_columns(names, [("1", "2", "3")], ("a", "c", "bb"), width) == kept


@pytest.mark.parametrize("width", [40, 200])
def test_an_outgrown_plan_is_named_below_the_consumers(width: int) -> None:
    """With the plan to move to and the command that moves; without one nothing is said."""
    with served() as pages:
        watched = WatchedConsumer("one", PagesClient(pages.url, ClientAccess(), 3.0))
        assert "outgrown" not in "\n".join(picture([watched.look()], width))
        grown = 'dupwatch_build_info{larger_plan="16x28",plan="4x16"} 1\ndupwatch_postings_read_total 700000\n'
        pages.answers["/metrics"] = (200, METRICS.encode() + grown.encode())
        lines = picture([watched.look()], width)
    assert max(map(cell_len, lines)) <= width
    assert (
        "The window has outgrown the plan 4x16: look-ups read 7,000 postings on average, more than 4,000. Move to 16x28"
        " with dupwatch migrate; dupwatch doctor prints the commands."
    ) in " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", [40, 200])
def test_banks_have_a_line_if_there_are_any(width: int) -> None:
    """Matches per second, and what needs a person; items that two consumers found busy count once."""
    with served() as pages:
        watched = [WatchedConsumer(name, PagesClient(pages.url, ClientAccess(), 3.0)) for name in ("one", "two")]

        def told(*more: str) -> str:
            pages.answers["/metrics"] = (200, "\n".join((METRICS, *more, "")).encode())
            lines = picture([each.look() for each in watched], width)
            assert max(map(cell_len, lines)) <= width
            return " ".join(" ".join(lines).split())

        banks = ("dupwatch_bank_items 3", 'dupwatch_bank_matches_total{bank="spam",action="deny"} 10')
        assert "Banks:" not in told("dupwatch_bank_items 0")
        assert "matches/s, 0 withheld, no busy items" in told(*banks)
        busy = (
            'dupwatch_bank_matches_withheld_total{bank="spam"} 600',
            'dupwatch_bank_items_busy{bank="spam",action="deny"} 2',
            'dupwatch_bank_items_busy{bank="notices",action="allow"} 1',
        )
        assert "matches/s, 1,200 withheld, 2 busy (deny), 1 busy (allow)" in told(*banks, *busy)
