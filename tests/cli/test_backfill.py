"""Filling a store from an archive, with publication times as arrival times, and without emitting anything."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.cli.command import FAST, Command, Outcome, articles, json_lines, start, wait_for, write_lines

DAY_S = 86_400


def dated(days_ago: dict[str, float], template: str = "a") -> list[dict[str, object]]:
    """Return articles with different texts, published this many days ago."""
    now_s = time.time()
    undated = articles(range(len(days_ago)))
    return [
        article | {"id": f"{template}-{name}", "published_at": now_s - days * DAY_S}
        for article, (name, days) in zip(undated, days_ago.items(), strict=True)
    ]


def outcomes(out: bytes) -> dict[str, str]:
    """Return the outcome of each article."""
    return {verdict["id"]: verdict["outcome"] for verdict in json_lines(out)}


def test_what_comes_later_is_compared_with_the_archive(dupwatch: Command, tmp_path: Path) -> None:
    """Copies of articles within the window are flagged, copies of older ones are not; nothing was sent."""
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
    ended = dupwatch("run", "--source", feed, "--store", store, "--emit", "all", *FAST)
    assert outcomes(ended.out) == {
        "copy of a-yesterday": "duplicate",
        "copy of a-long-ago": "unique",
        "copy of a-last-week": "duplicate",
    }


def test_articles_without_a_date_are_counted(dupwatch: Command, tmp_path: Path) -> None:
    """They arrive now, and a warning reports them."""
    archive = write_lines(tmp_path / "archive.jsonl", articles(range(3)))
    ended = dupwatch("backfill", archive, "--store", f"lmdb:{tmp_path / 'store'}", "--state", tmp_path / "state", *FAST)
    assert ended.code == 0
    assert "judged as of now, without a time of publication or with a future one: 3" in ended.err


def test_a_backfill_that_was_stopped_goes_on_where_it_was(dupwatch: Command, tmp_path: Path) -> None:
    """Each article is judged once, with the arrival time that it would have had."""
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
    assert f"Resuming after line {line}" in ended.err
    counts = json.loads(checkpoint.read_bytes())["counts"]
    assert counts["unique"] + counts["duplicate"] == 400
    exported = json_lines(dupwatch("store", "export", "--store", store).out)
    assert len(exported) == 400


def test_an_archive_is_a_file_and_the_store_outlives_it(dupwatch: Command, tmp_path: Path) -> None:
    """A source that cannot be resumed, or a store that would be lost, is refused."""
    archive = write_lines(tmp_path / "archive.jsonl", articles([0]))
    for options in (("-", "--store", f"lmdb:{tmp_path / 'store'}"), (archive, "--store", "memory:")):
        assert dupwatch("backfill", *options, "--state", tmp_path / "state").code == 2


def named(folder: Path) -> set[str]:
    """Return the names of the files in a folder."""
    return {path.name for path in folder.iterdir() if path.is_file()}


class Archive:
    """An archive in a folder, and a working directory beside it."""

    def __init__(self, folder: Path, dupwatch: Command) -> None:
        self.folder, self.here, self._dupwatch = folder / "archives", folder / "here", dupwatch
        for path in (self.folder, self.here):
            path.mkdir()
        self.path = write_lines(self.folder / "archive.jsonl", dated({str(number): 1 for number in range(8)}))

    def fill(self, store: str, *more: str | Path) -> Outcome:
        """Fill a store from it."""
        return self._dupwatch("backfill", self.path, "--store", f"lmdb:{store}", *FAST, *more)

    def grow(self) -> None:
        """Add two articles."""
        lines = self.path.read_bytes()
        write_lines(self.path, dated({str(number): 1 for number in range(10)}))
        self.path.write_bytes(lines + b"".join(self.path.read_bytes().splitlines(keepends=True)[8:]))

    def stored(self, store: str) -> int:
        """Return the number of versions in a store."""
        return len(json_lines(self._dupwatch("store", "export", "--store", f"lmdb:{store}").out))


@pytest.fixture
def archive(tmp_path: Path, dupwatch: Command, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """An archive that is loaded from another working directory."""
    archive = Archive(tmp_path, dupwatch)
    monkeypatch.chdir(archive.here)
    return archive


def test_the_state_is_beside_the_archive(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path is printed, the working directory stays empty, and a run in another one resumes."""
    ended = archive.fill("store")
    assert ended.code == 0, ended.err
    assert named(archive.here) == set()
    (checkpoint,) = archive.folder.glob("archive.jsonl.backfill-*.checkpoint.json")
    assert f"Progress is saved in {checkpoint}" in ended.err
    monkeypatch.chdir(tmp_path)
    archive.grow()
    again = archive.fill("here/store")
    assert "Resuming after line 8" in again.err
    assert archive.stored("here/store") == 10


def test_an_archive_fills_a_second_store(archive: Archive) -> None:
    """Each store has its own state, and resumes from it."""
    for store in ("one", "two"):
        assert archive.fill(store).code == 0
        assert archive.stored(store) == 8
    archive.grow()
    for store in ("one", "two"):
        ended = archive.fill(store)
        assert "Resuming after line 8" in ended.err
        assert archive.stored(store) == 10


def leave_an_earlier_versions_state(archive: Archive, store: str) -> None:
    """Write the state as earlier versions did: in the working directory, without naming the store."""
    assert archive.fill(store, "--state", "archive.jsonl.backfill").code == 0
    checkpoint = archive.here / "archive.jsonl.backfill.checkpoint.json"
    older = json.loads(checkpoint.read_bytes())
    for added in ("emit", "store"):
        older.pop(added, None)
    checkpoint.write_text(json.dumps(older))


def test_the_state_of_an_earlier_version_is_found(archive: Archive) -> None:
    """It resumes for the store that it belongs to, and only for that one from then on."""
    leave_an_earlier_versions_state(archive, "one")
    archive.grow()
    ended = archive.fill("one")
    assert "Resuming with the state that an earlier version left here." in ended.err
    assert "Resuming after line 8" in ended.err
    assert archive.stored("one") == 10
    assert archive.fill("one", "--set", "store.keep_bodies=false").code == 0
    other = archive.fill("two")
    assert other.code == 0, other.err
    assert ": it belongs to the store lmdb:" in other.err
    assert archive.stored("two") == 10


def test_the_state_of_an_earlier_version_does_not_stop_another_store(archive: Archive) -> None:
    """An empty store is filled from the beginning, and a message says why."""
    leave_an_earlier_versions_state(archive, "one")
    for _ in range(2):
        ended = archive.fill("two")
        assert ended.code == 0, ended.err
        assert archive.stored("two") == 8
    assert archive.fill("one").code == 0


@pytest.mark.parametrize("what", ["another archive", "cannot be read"])
def test_the_state_of_something_else_is_ignored(archive: Archive, what: str) -> None:
    """A file of that name in the working directory may be unrelated."""
    leave_an_earlier_versions_state(archive, "one")
    checkpoint = archive.here / "archive.jsonl.backfill.checkpoint.json"
    if what == "another archive":
        write_lines(archive.path, dated({str(number): 1 for number in range(20, 25)}, "b"))
    else:
        checkpoint.write_bytes(b"{")
    before = checkpoint.read_bytes()
    ended = archive.fill("two")
    assert ended.code == 0, ended.err
    assert f": it {'belongs to another archive' if what == 'another archive' else what}" in ended.err
    assert "Ignoring the state of an earlier version" in ended.err
    assert checkpoint.read_bytes() == before


def test_a_named_state_is_of_one_store(archive: Archive) -> None:
    """Resuming it with another store would skip what the first one has."""
    assert archive.fill("one", "--state", "state").code == 0
    assert archive.fill("two").code == 0
    ended = archive.fill("two", "--state", "state")
    assert ended.code == 2
    assert "name another --state, or omit it" in ended.err


def test_an_archive_on_a_medium_that_is_only_read(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message explains how to choose another path, and no store is created."""
    # Root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != archive.folder)
    ended = archive.fill("store")
    assert ended.code == 2
    assert "name another place with --state FILE" in ended.err
    assert not (archive.here / "store").exists()
    assert archive.fill("store", "--state", "state").code == 0


def test_a_scheme_is_named_as_elsewhere(archive: Archive) -> None:
    """``--scheme`` sets ``fingerprint.scheme``, which the store is bound to, and keeps."""
    assert archive.fill("store", "--scheme", "md5-64/1").code == 0
    assert archive.fill("store", "--set", "fingerprint.scheme=md5-64/1").code == 0
    assert archive.fill("store").code == 0
    ended = archive.fill("store", "--scheme", "jieba-tfidf/2")
    assert ended.code == 4
    assert "md5-64/1" in ended.err
