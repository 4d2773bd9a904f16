"""A store that a later version has judged into, with members of events that this version does not know."""

import json
from pathlib import Path

import pytest

from storage.lmdb import LmdbStore
from storage.records import StoredVersion, Version
from tests.cli.command import FAST, Command, articles, json_lines, write_lines


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    """Five articles, of which the last repeats the one before it."""
    return write_lines(tmp_path / "feed.jsonl", articles(range(5)))


@pytest.fixture
def events(dupwatch: Command, tmp_path: Path, feed: Path) -> list[bytes]:
    """Judge the feed, and copy the store with a member added to each event; return these events in order."""
    assert dupwatch("run", "--source", feed, "--store", f"lmdb:{tmp_path / 'older'}", *FAST).code == 0
    older, newer = LmdbStore.open(tmp_path / "older"), LmdbStore.open(tmp_path / "newer")
    newer.agree(older.settings() or b"")
    written: dict[str, bytes] = {}
    for stored in older.scan():
        assert isinstance(stored, StoredVersion)
        members = json.loads(stored.verdict or b"")
        event = written[stored.record.id] = json.dumps({"mood": "good", **members}).encode()
        newer.create([Version(stored.record, None)])
        if members["outcome"] == "unique":
            newer.add([stored.record])
        newer.settle([(stored.record.reference, event)])
    older.close()
    newer.close()
    return [written[article["id"]] for article in articles(range(5))]


def test_a_run_sends_stored_events_unchanged(
    dupwatch: Command, tmp_path: Path, feed: Path, events: list[bytes]
) -> None:
    """The feed is judged again, and the sink has the bytes that the later version has sent."""
    sink, store = tmp_path / "verdicts.jsonl", f"lmdb:{tmp_path / 'newer'}"
    ended = dupwatch("run", "--source", feed, "--sink", sink, "--store", store, "--emit", "all", *FAST)
    assert ended.code == 0, ended.err
    assert sink.read_bytes().splitlines() == events


def test_commands_read_its_events(dupwatch: Command, tmp_path: Path, feed: Path, events: list[bytes]) -> None:
    """Shown and exported with the unknown members; explained, queried, verified and released as any other."""
    option = ("--store", f"lmdb:{tmp_path / 'newer'}")
    (links,) = json_lines(dupwatch("show", "a4", "--json", *option).out)
    assert [link["verdict"] for link in links] == [json.loads(events[4]), json.loads(events[3])]  # type: ignore[index]
    exported = json_lines(dupwatch("store", "export", *option).out)
    assert {line["id"]: line["verdict"]["mood"] for line in exported} == dict.fromkeys(
        (f"a{n}" for n in range(5)), "good"
    )
    (explained,) = json_lines(dupwatch("explain", "a4", "a3", "--json", *option).out)
    assert explained["near"]
    assert [answer["outcome"] for answer in json_lines(dupwatch("query", feed, *option).out)] == ["unique"] * 4 + [
        "duplicate"
    ]
    assert dupwatch("store", "verify", *option).code == 0
    assert dupwatch("release", "a4", "--yes", *option).code == 0
