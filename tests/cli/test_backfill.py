"""Filling a store from an archive: as of the time each article was published, and without a word to anybody."""

import json
import signal
import time
from pathlib import Path

from tests.cli.command import FAST, Command, articles, json_lines, start, wait_for, write_lines

DAY_S = 86_400


def dated(days_ago: dict[str, float], template: str = "a") -> list[dict[str, object]]:
    """Articles of different texts, published so many days ago."""
    now_s = time.time()
    made = articles(range(len(days_ago)))
    return [
        article | {"id": f"{template}-{name}", "published_at": now_s - days * DAY_S}
        for article, (name, days) in zip(made, days_ago.items(), strict=True)
    ]


def outcomes(out: bytes) -> dict[str, str]:
    """What was said of whom."""
    return {verdict["id"]: verdict["outcome"] for verdict in json_lines(out)}


def test_what_comes_later_is_compared_with_the_archive(dupwatch: Command, tmp_path: Path) -> None:
    """A copy of what was published within the window is flagged, one of something older is not; nothing was sent."""
    old = dated({"yesterday": 1, "long-ago": 9, "last-week": 6})
    write_lines(tmp_path / "archive.jsonl", [*old, b"{"])
    store, state = f"lmdb:{tmp_path / 'store'}", tmp_path / "state"
    ended = dupwatch("backfill", tmp_path / "archive.jsonl", "--store", store, "--state", state, *FAST)
    assert ended.code == 0, ended.err
    assert ended.out == b""
    assert state.read_bytes() == b""
    letters = json_lines(state.with_name("state.dead-letters.jsonl").read_bytes())
    assert [letter["reason"] for letter in letters] == ["invalid_json"]
    feed = write_lines(tmp_path / "feed.jsonl", [article | {"id": f"copy of {article['id']}"} for article in old])
    said = dupwatch("run", "--source", feed, "--store", store, "--emit", "all", *FAST)
    assert outcomes(said.out) == {
        "copy of a-yesterday": "duplicate",
        "copy of a-long-ago": "unique",
        "copy of a-last-week": "duplicate",
    }


def test_articles_without_a_date_are_counted(dupwatch: Command, tmp_path: Path) -> None:
    """They count as of now, and the operator hears of it."""
    archive = write_lines(tmp_path / "archive.jsonl", articles(range(3)))
    ended = dupwatch("backfill", archive, "--store", f"lmdb:{tmp_path / 'store'}", "--state", tmp_path / "state", *FAST)
    assert ended.code == 0
    assert "3 articles do not say when they were published" in ended.err


def test_a_backfill_that_was_stopped_goes_on_where_it_was(dupwatch: Command, tmp_path: Path) -> None:
    """Each article is judged once in all, with the arrival it would have had."""
    archive = write_lines(tmp_path / "archive.jsonl", dated({str(number): 1 for number in range(400)}))
    store, state = f"lmdb:{tmp_path / 'store'}", tmp_path / "state"
    options = ("backfill", archive, "--store", store, "--state", state, "--set", "source.batch_records_max=4", *FAST)
    checkpoint = state.with_name("state.checkpoint.json")
    process = start(*options)
    wait_for(lambda: checkpoint.exists() and json.loads(checkpoint.read_bytes())["position"]["line"] > 8)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    line = json.loads(checkpoint.read_bytes())["position"]["line"]
    assert line < 400
    ended = dupwatch(*options)
    assert f"Going on behind line {line}" in ended.err
    counts = json.loads(checkpoint.read_bytes())["counts"]
    assert counts["unique"] + counts["duplicate"] == 400
    exported = json_lines(dupwatch("store", "export", "--store", store).out)
    assert len(exported) == 400


def test_an_archive_is_a_file_and_the_store_outlives_it(dupwatch: Command, tmp_path: Path) -> None:
    """What could not be resumed, or would be gone at once, is refused."""
    archive = write_lines(tmp_path / "archive.jsonl", articles([0]))
    for options in (("-", "--store", f"lmdb:{tmp_path / 'store'}"), (archive, "--store", "memory:")):
        assert dupwatch("backfill", *options, "--state", tmp_path / "state").code == 2
