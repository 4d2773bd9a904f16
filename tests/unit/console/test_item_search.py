"""Items of a bank in pages: in order, found by a piece, and searched so far as a page may."""

import pytest

from consumer.banks.bank import Banks
from consumer.console import item_search
from consumer.console.item_search import item_page
from tests.unit.console.banks import bank, item

BANKS = Banks.of([
    bank("spam"),
    bank("other"),
    *(item("spam", f"i{n}", f"letters enough {n % 3}", at=f"2026-01-0{n + 1}T00:00:00.000Z") for n in range(9)),
    item("spam", "old", "letters enough 0"),
    item("other", "i9", "letters enough 0", at="2026-01-09T00:00:00.000Z"),
])  # fmt: skip


def pages(piece: str, rows_max: int) -> list[tuple[list[str], bool]]:
    """All pages, with the ids of their items, and whether there was more to search."""
    found: list[tuple[list[str], bool]] = []
    after: str | None = ""
    while after is not None:
        page = item_page(BANKS, "spam", piece, after, rows_max)
        found.append(([each.item for each in page.items], page.is_partial))
        after = page.after
        assert len(found) < 20
    return found


def test_pages_have_each_item_once_the_newest_first() -> None:
    """What has no time comes last; a last page that is full is followed by none."""
    names = [f"i{n}" for n in range(8, -1, -1)] + ["old"]
    assert pages("", 20) == [(names, False)]
    assert pages("", 5) == [(names[:5], False), (names[5:], False)]
    assert pages("ENOUGH 0", 2) == [(["i6", "i3"], False), (["i0", "old"], False)]
    assert pages("i4", 2) == [(["i4"], False)]


def test_a_page_ends_where_it_has_searched_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one goes on from there, so that nothing is left out."""
    monkeypatch.setattr(item_search, "SEARCHED_CHARS_MAX", 3 * len("letters enough 0"))
    found = pages("enough 0", 20)
    assert found == [(["i6"], True), (["i3"], True), (["i0"], True), (["old"], False)]


@pytest.mark.parametrize("after", ["~", "~~~", "x", "2026", "2026-01-03T00:00:00.000Z~i2", "\u202e"])
def test_any_text_is_a_place(after: str) -> None:
    """Nobody gets an error for a link that was cut."""
    assert all(each.bank == "spam" for each in item_page(BANKS, "spam", "", after, 3).items)
