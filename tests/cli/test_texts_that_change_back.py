"""A run over a file in which texts come back: what is in force, what is stored, and what show and doctor say of it."""

import json
from pathlib import Path

from tests.cli.command import FAST, Command, json_lines, text, write_lines

A, B = text(1), text(2)
FEED: list[dict[str, object]] = [
    {"id": "g", "body": A},
    {"id": "g", "body": B},
    {"id": "g", "body": A},
    {"id": "c", "body": A},
    {"id": "d", "body": B},
    {"id": "g", "body": None},
    {"id": "e", "body": A},
    {"id": "g", "body": A},
]


def said(lines: bytes) -> list[tuple[str, str]]:
    """Return each id with what it repeats, or its outcome."""
    return [(event["id"], event["duplicate_of"] or event["outcome"]) for event in json_lines(lines)]


def test_a_text_that_comes_back_is_in_force_again(dupwatch: Command, tmp_path: Path) -> None:
    """Copies of it are flagged, copies of what came in between are not; the same file again changes nothing."""
    feed, store = write_lines(tmp_path / "feed.jsonl", FEED), ("--store", f"lmdb:{tmp_path / 'store'}")
    first = dupwatch("run", "--source", feed, *store, "--emit", "all", *FAST).out
    assert said(first) == [
        ("g", "unique"),
        ("g", "unique"),
        ("g", "unique"),
        ("c", "g"),
        ("d", "unique"),
        ("g", "retracted"),
        ("e", "unique"),
        ("g", "e"),
    ]
    assert dupwatch("run", "--source", feed, *store, "--emit", "all", *FAST).out == first
    # Lines that are appended are read behind those that are known.
    write_lines(feed, [*FEED, {"id": "g", "body": B}, {"id": "f", "body": B}])
    appended = dupwatch("run", "--source", feed, *store, "--emit", "all", *FAST).out
    assert appended.startswith(first)
    assert said(appended)[-2:] == [("g", "d"), ("f", "d")]


def test_a_file_under_another_name_is_another_feed(dupwatch: Command, tmp_path: Path) -> None:
    """It repeats the history of its ids, unless its articles arrive when they were published."""
    dated = [{**line, "published_at": f"2026-01-01T00:00:{second:02}Z"} for second, line in enumerate(FEED[:3])]
    feed, other = (write_lines(tmp_path / name, dated) for name in ("feed.jsonl", "export.jsonl"))
    for command, stretches in (("run", 5), ("backfill", 3)):
        store = ("--store", f"lmdb:{tmp_path / command}")
        window = ("--set", "judge.window_s=100000000")
        for source in (feed, other):
            read = ("run", "--source", source) if command == "run" else ("backfill", source)
            ended = dupwatch(*read, *store, *window, *FAST) if command == "run" else dupwatch(*read, *store, *window)
            assert ended.code == 0, ended.err
        (shown, *_) = json.loads(dupwatch("show", "g", *store, "--json").out)
        assert len([entry for entry in shown["history"] if entry["kind"] == "version"]) == stretches, command


def test_show_says_where_everything_came_from(dupwatch: Command, tmp_path: Path) -> None:
    """Of each stretch and retraction the file and the line; the chain names stretches."""
    feed, store = write_lines(tmp_path / "feed.jsonl", FEED), ("--store", f"lmdb:{tmp_path / 'store'}")
    assert dupwatch("run", "--source", feed, *store, *FAST).code == 0
    (shown, original) = json.loads(dupwatch("show", "g", *store, "--json").out)
    origins = [entry["origin"] for entry in shown["history"]]
    name = origins[0].removesuffix(":1")
    assert name.startswith("feed.jsonl@")
    assert origins == [f"{name}:{line}" for line in (1, 2, 3, 6, 8)]
    assert [entry.get("stretch") for entry in shown["history"]] == [0, 0, 1, None, 2]
    assert len({entry["version"] for entry in shown["history"]}) == 5
    assert (original["id"], original["history"][0]["origin"]) == ("e", f"{name}:7")
    printed = dupwatch("show", "g", *store).out.decode()
    assert "returned, duplicate of e" in printed
    assert f"{name}:6" in printed
    copy = json.loads(dupwatch("show", "c", *store, "--json").out)
    assert copy[0]["verdict"]["duplicate_of_version"] == copy[1]["version"] == shown["history"][2]["version"]


def test_a_store_from_before_goes_on_and_doctor_says_so(dupwatch: Command, tmp_path: Path) -> None:
    """There a text that comes back gets the verdict that it had; a store is bound to that."""
    feed, store = write_lines(tmp_path / "feed.jsonl", FEED[:2]), ("--store", f"lmdb:{tmp_path / 'store'}")
    assert dupwatch("run", "--source", feed, *store, "--set", "judge.stretches_max=0", *FAST).code == 0
    write_lines(feed, FEED[:4])
    later = dupwatch("run", "--source", feed, *store, "--emit", "all", *FAST).out
    assert said(later)[2:] == [("g", "unique"), ("c", "unique")]
    refused = dupwatch("run", "--source", feed, *store, "--set", "judge.stretches_max=64", *FAST)
    assert refused.code == 4
    assert "stretches_max is 0 in the store and 64 here" in refused.err
    assert "dupwatch migrate" in refused.err
    warned = dupwatch("doctor", "--source", feed, *store).out.decode()
    assert "! warning: A text that is changed and changed back" in warned
    new = ("--store", f"lmdb:{tmp_path / 'new'}")
    assert dupwatch("run", "--source", feed, *new, *FAST).code == 0
    assert "changed back" not in dupwatch("doctor", "--source", feed, *new).out.decode()


def test_a_file_may_have_a_long_name(dupwatch: Command, tmp_path: Path) -> None:
    """Every record keeps it, so an origin has only its beginning."""
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    source = write_lines(tmp_path / f"{'long' * 40}.jsonl", FEED)
    assert said(dupwatch("run", "--source", source, *store, "--emit", "all", *FAST).out)[-1] == ("g", "e")
    (shown, _) = json.loads(dupwatch("show", "g", *store, "--json").out)
    name, _, line = shown["history"][0]["origin"].partition("@")
    assert (name, line[8:]) == ("long" * 4, ":1")
