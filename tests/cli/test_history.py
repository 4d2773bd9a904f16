"""``show`` lists everything that arrived under an id, including earlier versions and retractions."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import FAST, Command, json_lines, text, write_lines

RECORDS: list[dict[str, Any]] = [
    {"id": "first", "body": text(1)},
    {"id": "a", "body": f"{text(1)} again", "title": "Old"},
    {"id": "a", "body": text(2), "title": "New"},
    {"id": "b", "body": text(3)},
    {"id": "a", "body": None},
]


@pytest.fixture
def store(dupwatch: Command, tmp_path: Path) -> tuple[str, str]:
    """The option for a store in which ``a`` was a duplicate, then got another text, and was then retracted."""
    option = ("--store", f"lmdb:{tmp_path / 'store'}")
    feed = write_lines(tmp_path / "feed.jsonl", RECORDS)
    assert dupwatch("run", "--source", feed, *option, *FAST).code == 0
    return option


def links_of(dupwatch: Command, *arguments: str) -> list[dict[str, Any]]:
    """Return the JSON output of ``show``."""
    links: list[dict[str, Any]] = json.loads(dupwatch("show", *arguments, "--json").out)
    return links


def test_the_history_of_an_id(dupwatch: Command, store: tuple[str, str]) -> None:
    """Every version with its verdict, and the retraction, in order of arrival."""
    (link,) = links_of(dupwatch, "a", *store)
    history = link["history"]
    assert [entry["kind"] for entry in history] == ["version", "version", "retraction"]
    assert [(entry.get("outcome"), entry.get("duplicate_of")) for entry in history] == [
        ("duplicate", "first"), ("unique", None), (None, None),
    ]  # fmt: skip
    assert [entry.get("title") for entry in history] == ["Old", "New", None]
    assert history[0]["ends_at"] == history[1]["arrived_at"]
    assert history[1]["ends_at"] == history[2]["arrived_at"]
    assert (link["retracted"], link["version"], link["title"]) == (True, history[1]["version"], "New")
    shown = dupwatch("show", "a", *store).out.decode()
    lines = shown.splitlines()
    assert lines[0] == "History"
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[2:5]]
    assert [row[-1] for row in rows] == ["duplicate of first", "unique", "retraction"]
    assert [row[0] for row in rows][1] == "▸"
    assert [row[-2] for row in rows] == [entry["version"] for entry in history]


def test_a_retracted_article_is_said_to_be_retracted(dupwatch: Command, store: tuple[str, str]) -> None:
    """The output says that its last version is not in force and why, even if all arrived in one millisecond."""
    shown = dupwatch("show", "a", *store).out.decode()
    assert re.search(r"in force\s+no: arrived \S+Z, retracted \S+Z \(record 5 of the feed\)", shown)
    (link,) = links_of(dupwatch, "b", *store)
    assert (link["retracted"], len(link["history"])) == (False, 1)
    alone = dupwatch("show", "b", *store).out.decode()
    assert re.search(r"in force\s+since \S+Z", alone)
    assert "History" not in alone


def test_one_version_when_asked(dupwatch: Command, store: tuple[str, str]) -> None:
    """It has its own verdict and chain; the next version replaced it."""
    history = links_of(dupwatch, "a", *store)[0]["history"]
    old = history[0]["version"]
    links = links_of(dupwatch, "a", "--version", old, *store)
    assert [(link["id"], link["title"]) for link in links] == [("a", "Old"), ("first", "")]
    shown = dupwatch("show", "a", "--version", old.upper(), *store).out.decode()
    assert re.search(r"^▸.*duplicate of first", shown, re.MULTILINE)
    assert ", replaced by another version" in shown
    assert "duplicate of" in shown


@pytest.mark.parametrize(("number", "why"), [(2, "is a retraction and has no text"), (None, "has no version")])
def test_a_version_that_cannot_be_shown(
    dupwatch: Command, store: tuple[str, str], number: int | None, why: str
) -> None:
    """A retraction or an unknown version is refused, with a helpful message."""
    history = links_of(dupwatch, "a", *store)[0]["history"]
    version = "0" * 32 if number is None else history[number]["version"]
    ended = dupwatch("show", "a", "--version", version, *store)
    assert (ended.code, why in ended.err) == (2, True)
    assert "dupwatch show" in ended.err or history[0]["version"] in ended.err


def test_an_id_that_was_only_retracted(dupwatch: Command, tmp_path: Path) -> None:
    """Only the retraction is shown, with its time."""
    option = ("--store", f"lmdb:{tmp_path / 'store'}")
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "gone", "body": None}, {"id": "b", "body": text(1)}])
    assert dupwatch("run", "--source", feed, *option, *FAST).code == 0
    ended = dupwatch("show", "gone", *option)
    assert ended.code == 2
    assert re.search(r"'gone' was retracted at 20\S+Z and has no version", ended.err)


def test_a_release_shows_the_history_too(dupwatch: Command, store: tuple[str, str]) -> None:
    """The output says that the version was replaced and the article retracted."""
    old = links_of(dupwatch, "a", *store)[0]["history"][0]["version"]
    shown = dupwatch("release", "a", "--version", old, "--yes", *store).out.decode()
    assert "retraction" in shown
    assert shown.count(", replaced by another version") == 2
    after = dupwatch("show", "a", *store).out.decode()
    assert "unique by a release" in after


def test_a_text_that_was_retracted_and_sent_again_is_shown(dupwatch: Command, tmp_path: Path) -> None:
    """As it is found, in the event, with the article, and for what would be the next copy; nothing is flagged."""
    option, sink = ("--store", f"lmdb:{tmp_path / 'washed'}"), tmp_path / "out.jsonl"
    bodies = [("first", text(1)), ("first", None), ("again", text(1)), ("again", text(2))]
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": name, "body": body} for name, body in bodies])
    ended = dupwatch("run", "--source", feed, "--sink", sink, "--emit", "all", "--show", *option, *FAST)
    (first, _, again, other) = json_lines(sink.read_bytes())
    said = again["ended_before"]
    assert said == {
        "id": "first", "version": first["version"], "ended_at": first["arrived_at"], "similarity": 1.0
    }  # fmt: skip
    assert "ended_before" not in other
    line = f"repeats the text of first, which ended at {said['ended_at']}, similarity 1.00"
    assert f"↺ again  {line}" in " ".join(ended.err.split("\n")).replace("\n", " ")
    shown = dupwatch("show", "again", "--version", again["version"], *option)
    assert line in " ".join(shown.out.decode().split())
    new = write_lines(tmp_path / "new.jsonl", [{"id": "new", "body": text(1)}])
    (query,) = json_lines(dupwatch("query", new, *option).out)
    assert (query["outcome"], query["ended_before"]["id"]) == ("unique", "again")
