"""``dupwatch evaluate --reviews``, as its users run it."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from consumer.cli.main import app
from consumer.model.errors import ConfigError, SourceError
from tests.unit.evaluation.reviewing import near_miss, review, reviews_by


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write the rows as a file, compressed where its name says so."""
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def run(*arguments: str | Path) -> Result:
    """Run the command."""
    threshold = ("--set", "judge.similarity_min=0.75")
    return CliRunner().invoke(app, ["evaluate", *threshold, *map(str, arguments)])


def test_it_says_where_the_line_is_and_what_would_change(tmp_path: Path) -> None:
    """For a person: the line, a table, the two thresholds with their changes a day, and the sources."""
    file = written(tmp_path / "reviews.jsonl.gz", reviews_by(0.7, 3, sources=["wire", "blog"]))
    ended = run("--reviews", file, "--precision", "0.9")
    assert ended.exception is None, ended.output
    said = ended.stdout
    assert re.search(
        r"draw the line at a similarity of 0\.[67]\d\d \(0\.[67]\d\d–0\.7\d\d\); the threshold is 0\.75", said
    )
    assert re.search(r"Best F1: 0\.\d\d: [\d,]+ flags would come over \d+ days, [\d,]+ of them wrong", said)
    assert re.search(r"\n +0\.80 +0\.\d{3} 0\.\d{3}–0\.\d{3} ", said)
    assert re.search(r"\nwire +[\d,]+ 0\.75", said)
    assert re.search(r"\nblog +[\d,]+ 0\.75", said)
    assert "unknown" not in said


def test_with_flags_alone_it_says_that_recall_is_unknown(tmp_path: Path) -> None:
    """Nobody has looked at what was not flagged; it says what to set."""
    file = written(tmp_path / "flags.jsonl", reviews_by(0.7, 3, near_misses=False))
    ended = run("--reviews", file)
    said = " ".join(ended.stdout.split())
    assert "Recall is unknown" in said
    assert "Thresholds below 0.75 cannot be judged" in said
    assert "kafka.near_miss_share" in said
    figures = json.loads(run("--reviews", file, "--json").stdout)
    assert figures["recall_known"] is False
    assert {point["recall"] for point in figures["reviews"]["overall"]["points"]} == {None}


def test_one_review_shows_no_line(tmp_path: Path) -> None:
    """A sentence, and no interval from 0 to 1."""
    said = " ".join(run("--reviews", written(tmp_path / "one.jsonl", [review(0.9)])).stdout.split())
    assert "These reviews do not show where reviewers draw the line; the threshold is 0.75." in said
    assert "On the other side" not in said


def test_json_has_all_figures(tmp_path: Path) -> None:
    """Every threshold that can be judged, not only those of the table."""
    file = written(tmp_path / "reviews.jsonl", [*reviews_by(0.7, 3), review(None)])
    figures = json.loads(run("--reviews", file, "--json").stdout)
    overall = figures["reviews"]["overall"]
    assert [point["threshold"] for point in overall["points"]] == [percent / 100 for percent in range(60, 100)]
    assert overall["line"]["low"] <= 0.7 <= overall["line"]["high"]
    assert overall["counts"]["open"] > 0
    assert overall["days"] == pytest.approx(20, abs=0.1)
    assert (figures["recall_known"], figures["without_similarity"]) == (True, 1)


def test_reports_are_told_and_change_no_figure(tmp_path: Path) -> None:
    """How many there are, and how many thresholds would reach; everything else is as without them."""
    rows = reviews_by(0.7, 3)
    reported = [{**review(0.9), "kind": "report", "similarity": value} for value in (0.4, 0.74, None)]
    alone, both = (written(tmp_path / f"{len(each)}.jsonl", each) for each in (rows, rows + reported))
    before, after = (
        run("--reviews", alone, "--precision", "0.9").stdout,
        run("--reviews", both, "--precision", "0.9").stdout,
    )
    (line,) = set(after.splitlines()) - set(before.splitlines())
    assert re.fullmatch(
        r"Reported as missed: 3 copies\. With a similarity: 2 \(.*0\.75 or more: 0.*\)\. No figure above counts "
        "them, since they are not a sample.",
        line,
    )
    figures = [json.loads(run("--reviews", each, "--json").stdout) for each in (alone, both)]
    assert figures[1]["reported"] == {"similarities": [0.4, 0.74, None]}
    assert figures[1]["reviews"] == figures[0]["reviews"]
    assert "the reviews decide nothing" in str(run("--reviews", written(tmp_path / "r.jsonl", reported)).exception)


def test_profiles_are_named(tmp_path: Path) -> None:
    """The one whose threshold is configured, and the one that a better threshold reaches, with what to write."""
    posts = written(tmp_path / "posts.jsonl", reviews_by(0.8, 3))
    said = run("--reviews", posts, "--set", "judge.profile=posts", "--set", "judge.similarity_min=0.34").stdout
    flat = " ".join(said.split())
    assert "the threshold is 0.34, that of the profile posts." in flat
    assert (
        'That reaches the profile news (0.73). profile = "news" in [rules."SOURCE"] raises the threshold of one source '
        "and changes no keys; in [judge] it needs a migration."
    ) in flat
    rows = [near_miss(0.3 + place / 100, "right" if place > 2 else "wrong") for place in range(40)] + [review(0.9)] * 20
    news = written(tmp_path / "news.jsonl", rows)
    flat = " ".join(run("--reviews", news, "--set", "judge.similarity_min=0.73").stdout.split())
    assert "the threshold is 0.73, that of the profile news." in flat
    assert (
        'That reaches the profile posts (0.34). profile = "posts" in [judge] also finds copies that look-ups miss now; '
        "it needs a migration."
    ) in flat
    for threshold, name in (("0.73", "news"), ("0.34", "posts"), ("0.75", None)):
        told = run("--reviews", news, "--json", "--set", f"judge.similarity_min={threshold}").stdout
        assert json.loads(told)["profile"] == name
    assert "profile" not in run("--reviews", news).stdout.partition("Best F1")[0]


@pytest.mark.parametrize(
    ("days", "said"),
    [(4, "60 flags would come over 4 days, 10 of them wrong"), (0, "60 flags would come, 10 of them wrong")],
)
def test_what_would_come_is_told_with_its_days_where_they_are_known(tmp_path: Path, days: int, said: str) -> None:
    """In whole numbers."""
    rows = [near_miss(0.74, "right")] * 5 + [near_miss(0.74, "wrong")] + [review(0.9)] * 5 + [near_miss(0.62)] * 9
    rows = [row | {"at": f"2026-11-{1 + (number and days):02d}T00:00:00.000Z"} for number, row in enumerate(rows)]
    ended = run("--reviews", written(tmp_path / "reviews.jsonl", rows), "--precision", "0.8")
    assert f": {said}" in ended.stdout


def test_pairs_without_a_similarity_are_said(tmp_path: Path) -> None:
    """They are left out."""
    ended = run("--reviews", written(tmp_path / "reviews.jsonl", [review(), review(None)]))
    assert "flagged by plain SimHash: 1" in ended.stderr


def test_rules_of_sources_and_settings_count(tmp_path: Path) -> None:
    """The threshold is the configured one; that of a source is its rule's."""
    rows = [review(0.9, source=source) for source in ("wire", "blog") for _ in range(60)] + [near_miss()] * 60
    file = written(tmp_path / "reviews.jsonl", rows)
    settings = ("--set", "judge.similarity_min=0.72", "--set", "rules={wire={similarity_min=0.8}}")
    found = json.loads(run("--reviews", file, "--json", *settings).stdout)["reviews"]
    assert found["overall"]["now"] == 0.72
    assert {own["source"]: own["now"] for own in found["sources"]} == {"wire": 0.8, "blog": 0.72}


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot_is_drawn(tmp_path: Path, suffix: str) -> None:
    """With and without recall."""
    pytest.importorskip("matplotlib")
    for near_misses in (True, False):
        file = written(tmp_path / "reviews.jsonl", reviews_by(0.7, 3, near_misses=near_misses))
        plot = tmp_path / f"curves.{suffix}"
        ended = run("--reviews", file, "--plot", plot)
        assert ended.exception is None, ended.output
        assert plot.read_bytes().startswith(b"\x89PNG" if suffix == "png" else b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["feed.jsonl", "--reviews", "r.jsonl"], "leave these out"),
        (["--pairs", "p.jsonl", "--reviews", "r.jsonl"], "leave these out"),
        (["--parts", "--reviews", "r.jsonl"], "leave these out"),
        ([], "FEED with --pairs FILE, or --reviews FILE"),
        (["feed.jsonl"], "FEED with --pairs FILE, or --reviews FILE"),
        (["--reviews", "r.jsonl", "--plot", "p.txt"], ".png or .svg"),
        (["--reviews", "r.jsonl", "--set", "judge.verify=false", "--set", "judge.lane1=false"], "judge.verify = false"),
    ],
)
def test_what_does_not_go_together(arguments: list[str], named: str) -> None:
    """It says what to give."""
    error = run(*arguments).exception
    assert isinstance(error, ConfigError)
    assert named in str(error)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """It is named."""
    error = run("--reviews", tmp_path / "none.jsonl").exception
    assert isinstance(error, SourceError)
    assert "none.jsonl" in str(error)
