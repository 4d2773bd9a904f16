"""What counts as named, and as wrongly named, in feeds of stories."""

import json
from pathlib import Path

import pytest

from benchmarks.quality.feed import write_lines
from benchmarks.quality.stories import Told, rows_of
from tests.cli.command import text

LONG, SHORT = text(1, 300), text(2, 150)
FEED = [
    Told("wire", LONG, "en"),
    Told("copy", LONG, "en"),
    Told("paper", f"{text(3, 200)} {LONG[: len(LONG) // 2]}", "en"),
    Told("other", SHORT, "en"),
    Told("quotes", f"{text(4, 200)} {SHORT}", "en"),
    Told("apart", text(5, 200), "en"),
]
SAME = [("wire", "copy", True), ("wire", "paper", True), ("wire", "apart", True)]


def row(folder: Path, pairs: list[tuple[str, str, bool]]) -> dict[str, object]:
    """The counts of a set with these pairs, without estimates."""
    truth = folder / "set-pairs.jsonl.gz"
    write_lines(truth, pairs)
    (found,) = rows_of("set", FEED, truth)
    return {name: value for name, value in found.items() if name not in {"share", "from", "to"}}


def test_all_pairs_that_are_not_listed_are_others(tmp_path: Path) -> None:
    """The copy is flagged, half of a text named, and another story that is quoted is named wrongly."""
    assert row(tmp_path, SAME) == {
        "set": "set (en)", "texts": 6, "same story": 3, "flagged": 1, "named": 2, "others": 12, "of these flagged": 0,
        "of these named": 1,
    }  # fmt: skip


def test_only_pairs_that_are_said_to_be_others_count(tmp_path: Path) -> None:
    """Where a set says which are."""
    found = row(tmp_path, [*SAME, ("apart", "other", False)])
    assert (found["others"], found["of these named"]) == (1, 0)
    found = row(tmp_path, [*SAME, ("quotes", "other", False)])
    assert (found["others"], found["of these named"]) == (1, 1)


def test_a_pair_of_strangers_is_an_error(tmp_path: Path) -> None:
    """It names them."""
    with pytest.raises(ValueError, match=json.dumps("nobody").replace('"', "'")):
        row(tmp_path, [("wire", "nobody", True)])
