"""``dupwatch bank matches`` and ``dupwatch bank scan``: what is already stored, or in an archive."""

import gzip
import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import FAST, TIMEOUT_S, Command, Outcome, json_lines, run_process, start, text, write_lines

OFFER = text(1, 60)
NOTICE = text(2)


class Files:
    """A store that was filled before there were banks, the feed that filled it, and banks."""

    def __init__(self, folder: Path, dupwatch: Command) -> None:
        self.banks = folder / "banks.jsonl"
        self.store = f"lmdb:{folder / 'store'}"
        self.feed = write_lines(
            folder / "feed.jsonl",
            [
                {"id": "offer", "title": "An offer", "body": OFFER},
                {"id": "post", "body": f"{text(3)} {OFFER} {text(4)}"},
                {"id": "notice", "body": NOTICE},
                {"id": "notice again", "body": NOTICE},
                {"id": "notice for ever", "body": NOTICE},
                {"id": "story", "body": text(5)},
            ],
        )
        self._dupwatch = dupwatch
        run = ("run", "--source", self.feed, "--sink", folder / "out.jsonl", "--store", self.store, *FAST)
        for arguments in (
            run,
            self.command("create", "spam", "--action", "deny"),
            self.command("add", "spam", "--text", OFFER, "--item", "offer"),
            self.command("create", "notices", "--action", "allow"),
            self.command("add", "notices", "--text", NOTICE, "--item", "closure"),
        ):
            ended = dupwatch(*arguments)
            assert ended.code == 0, ended.err

    def command(self, *arguments: str | Path) -> tuple[str | Path, ...]:
        """Return a command about these banks."""
        return ("bank", *arguments, "--banks", self.banks)

    def bank(self, *arguments: str | Path) -> Outcome:
        """Run a command about these banks, and the store."""
        return self._dupwatch(*self.command(*arguments), "--store", self.store)

    def outcomes(self) -> dict[str, str]:
        """Return how each article was judged."""
        exported = json_lines(self._dupwatch("store", "export", "--store", self.store).out)
        return {line["id"]: line["verdict"]["outcome"] for line in exported}


@pytest.fixture
def files(tmp_path: Path, dupwatch: Command) -> Files:
    """Files of a test of its own."""
    return Files(tmp_path, dupwatch)


def test_matches_are_looked_up(files: Files) -> None:
    """As a table with a word about what may be missing, and as JSON; the flagged copies are counted if asked for."""
    shown = files.bank("matches", "spam", "offer")
    assert (shown.code, shown.out.split()[:2]) == (0, [b"article", b"title"])
    assert b"spam/offer" in shown.out
    assert "repeat the item: 1." in shown.err
    assert "judge.parts is not set" in shown.err
    assert "dupwatch bank scan" in shown.err
    (offer,) = json_lines(files.bank("matches", "spam", "--json").out)
    assert offer.pop("version")
    assert offer.pop("arrived_at")
    assert offer == {
        "id": "offer", "title": "An offer", "outcome": "unique", "in_force": True,
        "banks": [{"bank": "spam", "item": "offer", "action": "deny", "form": "equal", "similarity": 1.0}],
    }  # fmt: skip
    (notice,) = json_lines(files.bank("matches", "notices", "--members", "--json").out)
    assert (notice["id"], notice["members"]) == ("notice", 2)
    assert "flagged copies" in files.bank("matches", "notices", "--members").out.decode()


def test_a_store_is_scanned(files: Files) -> None:
    """Kept and flagged articles, and parts of longer ones."""
    ended = files.bank("scan")
    assert ended.code == 0, ended.err
    found = {line["id"]: (line["outcome"], line["banks"][0]["form"]) for line in json_lines(ended.out)}
    assert found == {
        "offer": ("unique", "equal"),
        "post": ("unique", "part"),
        "notice": ("unique", "equal"),
        "notice again": ("duplicate", "equal"),
        "notice for ever": ("duplicate", "equal"),
    }
    assert "Compared versions: 6. Of these, 5 repeat an item." in ended.err
    chosen = json_lines(files.bank("scan", "--bank", "spam", "--item", "offer").out)
    assert {line["id"] for line in chosen} == {"offer", "post"}


def test_an_archive_is_scanned(files: Files, dupwatch: Command, tmp_path: Path) -> None:
    """Compressed or from standard input; what is no article is counted, and the first one is named."""
    lines = files.feed.read_bytes() + b'{"id": "gone", "body": null}\n{"id": 1.5}\n\n'
    archive = tmp_path / "archive.jsonl.gz"
    archive.write_bytes(gzip.compress(lines))
    ended = dupwatch(*files.command("scan", archive))
    assert ended.code == 0, ended.err
    found = json_lines(ended.out)
    assert [(line["id"], line["line"]) for line in found] == [
        ("offer", 1), ("post", 2), ("notice", 3), ("notice again", 4), ("notice for ever", 5),
    ]  # fmt: skip
    assert found[1]["banks"][0]["form"] == "part"
    assert "Compared articles: 6. Of these, 5 repeat an item." in ended.err
    assert "Invalid records: 1. The first: line 8: " in ended.err
    assert "Retractions, which have no text: 1." in ended.err
    assert "Skipped blank lines" in ended.err
    streamed = run_process(*files.command("scan", "-", "--bank", "spam"), given=lines)
    assert [line["id"] for line in json_lines(streamed.out)] == ["offer", "post"]
    (tmp_path / "invalid").write_text("no JSON\n")
    ended = dupwatch(*files.command("scan", tmp_path / "invalid"))
    assert (ended.code, "1 line failed" in ended.err) == (3, True)


def test_flags_of_an_allowed_text_are_released(files: Files, tmp_path: Path) -> None:
    """One event each with the name and the reason; a second run writes them again, and releases nothing more."""
    audit = tmp_path / "audit.jsonl"
    setting = ("--set", f"service.audit={audit}")
    ended = files.bank("scan", "--release", "--by", "Kim", "--yes", *setting)
    assert ended.code == 0, ended.err
    events = sorted(json_lines(ended.out), key=lambda event: event["id"])
    assert [(event["id"], event["outcome"], event["released"]["by"]) for event in events] == [
        ("notice again", "unique", "Kim"),
        ("notice for ever", "unique", "Kim"),
    ]
    assert events[0]["released"]["reason"] == "It repeats closure of the bank notices, which allows it."
    assert "Released: 2.\nNo events were sent" in ended.err
    assert set(files.outcomes().values()) == {"unique"}
    again = files.bank("scan", "--release", "--by", "Kim", "--yes", *setting)
    assert (again.code, sorted(again.out.splitlines())) == (0, sorted(ended.out.splitlines()))
    assert "Released: 0.\nReleased by an earlier run, and written again: 2." in again.err
    assert files.bank("scan", "--release", "--by", "Lee", "--yes", *setting).out == b""
    recorded = sorted((line["action"], line["id"], line["result"]) for line in json_lines(audit.read_bytes()))
    assert recorded == [("articles.release", name, "unique") for name in ("notice again", "notice for ever")]


@pytest.mark.parametrize(("answer", "released"), [(b"y\n", True), (b"n\n", False)])
def test_a_person_is_asked(files: Files, answer: bytes, *, released: bool) -> None:
    """After the number and the names."""
    ours, theirs = pty.openpty()
    command = files.command("scan", "--release", "--by", "Kim", "--reason", "as agreed", "--store", files.store)
    process = start(*command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.write(ours, answer)
    out, err = process.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, err
    assert re.search(rb"Flagged articles to release: 2 \(notice (again|for ever), notice (again|for ever)\)\.", err)
    assert (len(out.splitlines()), files.outcomes()["notice again"]) == (
        (2, "unique") if released else (0, "duplicate")
    )
    if released:
        assert json.loads(out.splitlines()[0])["released"]["reason"] == "as agreed"
    assert not out.startswith(b" ")


def test_a_scan_that_fails_says_how_far_it_came(files: Files) -> None:
    """And what to do: the articles are released, though their events could not be written."""
    command = files.command("scan", "--release", "--by", "Kim", "--yes", "--store", files.store)
    with Path("/dev/full").open("wb") as full:
        process = start(*command, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode not in {0, 1}, err
    assert re.search(rb"Stopped after \d+ compared versions; .* Run the command again", b" ".join(err.split())), err
    again = files.bank("scan", "--release", "--by", "Kim", "--yes")
    assert {event["id"] for event in json_lines(again.out)} == {"notice again", "notice for ever"}


REFUSED: tuple[tuple[str, str], ...] = (
    ("--release --yes", "--release needs --by NAME"),
    ("--release --by Kim", "standard input is not a terminal; add --yes"),
    ("--send", "standard input is not a terminal; add --yes"),
    ("--send --release --by Kim --yes", "use one of them"),
    ("--send --yes", "add --sink kafka://HOST:PORT/PREFIX"),
    ("--release --by Kim --yes --bank spam", "for items of allow banks"),
    ("--send --yes --bank notices", "for items of deny banks"),
    ("feed.jsonl", "leave out FILE, or --store"),
    ("--item offer", "add --bank BANK"),
    ("--bank leaks", "the bank 'leaks' does not exist"),
    ("--bank spam --item x", "has no item 'x'"),
    (f"--release --yes --by {'K' * 5_000}", "name"),
)


def test_what_cannot_be_done(files: Files, dupwatch: Command) -> None:
    """A sentence says why, and nothing is changed."""
    for arguments, complaint in REFUSED:
        ended = dupwatch(*files.command("scan", *arguments.split()), "--store", files.store)
        assert (ended.code, ended.out) == (2, b""), ended.err
        assert complaint in ended.err
    assert files.outcomes()["notice again"] == "duplicate"


def test_items_that_do_not_count_are_named(files: Files) -> None:
    """A disabled item matches nothing, which would look as if nothing were stored."""
    assert files.bank("disable", "spam", "offer").code == 2
    assert run_process(*files.command("disable", "spam", "offer")).code == 0
    ended = files.bank("matches", "spam", "offer")
    assert (ended.code, "no active item in spam/offer" in ended.err) == (2, True)


def test_a_store_that_does_not_exist_is_not_made(files: Files, tmp_path: Path) -> None:
    """By no command."""
    absent = ("--store", f"lmdb:{tmp_path / 'absent'}")
    for arguments in (("matches", "spam"), ("scan",), ("scan", "--release", "--by", "Kim", "--yes")):
        assert run_process(*files.command(*arguments), *absent).code == 4
        assert not (tmp_path / "absent").exists()


def test_adding_an_item_says_how_to_see_what_is_stored(files: Files, dupwatch: Command) -> None:
    """Where a store is named, and not otherwise."""
    command = f"dupwatch bank matches spam copied --store {files.store} --banks {files.banks}"
    ended = files.bank("add", "spam", "--article", "story", "--item", "copied")
    assert command in ended.out.decode()
    assert (
        "bank matches"
        not in dupwatch(*files.command("add", "spam", "--text", text(7), "--item", "copied")).out.decode()
    )
