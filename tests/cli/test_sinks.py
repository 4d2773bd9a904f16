"""Where a run over a file writes: never to its source, never a mixture, and nothing if it is refused."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import (
    FAST,
    TIMEOUT_S,
    Command,
    Outcome,
    articles,
    json_lines,
    line_count,
    run_process,
    start,
    wait_for,
    write_lines,
)


def files(folder: Path) -> dict[str, bytes]:
    """Return the files in a folder, except stores."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    """A feed of ten articles."""
    return write_lines(tmp_path / "feed.jsonl", articles(range(10)))


@pytest.mark.parametrize("kind", ["same", "relative", "symbolic link", "hard link"])
@pytest.mark.parametrize("store", ["lmdb:store", "memory:"])
def test_the_source_is_no_sink(
    dupwatch: Command, feed: Path, kind: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under any name: the message asks for another sink, and nothing is created."""
    monkeypatch.chdir(feed.parent)
    sink = {"same": str(feed), "relative": "../" + feed.parent.name + "/feed.jsonl"}.get(kind, "other.jsonl")
    if kind == "symbolic link":
        Path(sink).symlink_to(feed)
    elif kind == "hard link":
        Path(sink).hardlink_to(feed)
    before = files(feed.parent)
    ended = dupwatch("run", "--source", feed, "--sink", sink, "--store", store, *FAST)
    assert ended.code == 2
    assert "keep it, and name another --sink" in ended.err
    assert "remove" not in ended.err
    assert files(feed.parent) == before
    assert not Path("store").exists()


@pytest.mark.parametrize("suffix", [".dead-letters.jsonl", ".checkpoint.json.tmp"])
def test_the_source_is_no_file_beside_the_sink(dupwatch: Command, tmp_path: Path, suffix: str) -> None:
    """Dead letters and checkpoints are not written to the source either; a checkpoint would replace it."""
    feed = write_lines(tmp_path / f"out.jsonl{suffix}", articles(range(3)))
    before = files(tmp_path)
    store = f"lmdb:{tmp_path / 'store'}"
    ended = dupwatch("run", "--source", feed, "--sink", tmp_path / "out.jsonl", "--store", store, *FAST)
    assert ended.code == 2
    assert "keep it, and name another --sink" in ended.err
    assert files(tmp_path) == before


def test_the_source_is_not_redirected_into(feed: Path) -> None:
    """A run whose output is appended to its source would never end."""
    before = feed.read_bytes()
    with feed.open("ab") as out, feed.open("rb") as given:
        process = start("run", "--emit", "all", *FAST, stdin=given, stdout=out, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 2
    assert b"redirect it into another file" in err
    assert feed.read_bytes() == before


def test_a_file_of_the_store_is_no_sink(dupwatch: Command, feed: Path, tmp_path: Path) -> None:
    """The message does not advise to remove a store."""
    store = tmp_path / "store"
    assert dupwatch("run", "--source", feed, "--store", f"lmdb:{store}", *FAST).code == 0
    ended = dupwatch("run", "--source", feed, "--sink", store / "data.mdb", "--store", f"lmdb:{store}", *FAST)
    assert ended.code == 2
    assert "belongs to the store" in ended.err


def test_a_table_of_words_does_not_replace_its_articles(dupwatch: Command, feed: Path) -> None:
    """``idf build -o`` replaces the whole file."""
    before = feed.read_bytes()
    ended = dupwatch("idf", "build", feed, "-o", feed)
    assert ended.code == 2
    assert "name another file" in ended.err
    assert feed.read_bytes() == before


class Resumed:
    """A run that has ended, and can be started again."""

    def __init__(self, folder: Path, feed: Path, dupwatch: Command) -> None:
        self.folder, self.feed, self.sink = folder, feed, folder / "out.jsonl"
        self._dupwatch = dupwatch

    def run(self, *more: str | Path) -> Outcome:
        """Run; later options override earlier ones."""
        store = f"lmdb:{self.folder / 'store'}"
        return self._dupwatch("run", "--source", self.feed, "--sink", self.sink, "--store", store, *FAST, *more)


@pytest.fixture
def resumed(tmp_path: Path, feed: Path, dupwatch: Command) -> Resumed:
    """A run that can be started."""
    return Resumed(tmp_path, feed, dupwatch)


def test_a_sink_holds_one_kind_of_verdicts(resumed: Resumed) -> None:
    """Another --emit is refused, and the message names the right one; the sink is not changed."""
    assert resumed.run("--emit", "duplicates").code == 0
    write_lines(resumed.feed, articles(range(20)))
    before = files(resumed.folder)
    ended = resumed.run("--emit", "all")
    assert ended.code == 2
    assert "use --emit duplicates, or choose another sink" in ended.err
    assert files(resumed.folder) == before
    assert resumed.run().code == 0


def test_a_checkpoint_of_an_earlier_version_says_no_kind(resumed: Resumed) -> None:
    """The run resumes, and records it from then on."""
    assert resumed.run("--emit", "all").code == 0
    checkpoint = resumed.folder / "out.jsonl.checkpoint.json"
    older = json.loads(checkpoint.read_bytes())
    for added in ("emit", "store"):
        older.pop(added)
    checkpoint.write_text(json.dumps(older))
    assert resumed.run("--emit", "all").code == 0
    assert resumed.run("--emit", "duplicates").code == 2


def test_why_a_second_run_from_standard_input_is_refused(resumed: Resumed) -> None:
    """The reason is not a missing checkpoint or store: standard input cannot be read again."""
    given = resumed.feed.read_bytes()
    options = ("run", "--sink", resumed.sink, "--store", f"lmdb:{resumed.folder / 'store'}", "--emit", "all", *FAST)
    assert run_process(*options, given=given).code == 0
    before = files(resumed.folder)
    ended = run_process(*options, given=given)
    assert ended.code == 6
    assert "a run that reads standard input always needs a new sink" in ended.err
    assert "checkpoint" not in ended.err
    assert files(resumed.folder) == before


def test_why_a_second_run_in_memory_is_refused(resumed: Resumed) -> None:
    """The reason is that the store is lost."""
    assert resumed.run("--store", "memory:", "--emit", "all").code == 0
    ended = resumed.run("--store", "memory:", "--emit", "all")
    assert ended.code == 6
    assert "a run with a memory: store always needs a new sink" in ended.err


@pytest.mark.parametrize("gone", ["out.jsonl", "out.jsonl.dead-letters.jsonl"])
def test_a_refused_resumption_leaves_nothing(resumed: Resumed, gone: str) -> None:
    """If a file of the sink is missing, no empty one replaces it, and no other store is created."""
    write_lines(resumed.feed, [*articles(range(10)), b"{"])
    assert resumed.run("--emit", "all").code == 0
    (resumed.folder / gone).unlink()
    before = files(resumed.folder)
    other = resumed.folder / "other"
    for more in ((), ("--store", f"lmdb:{other}")):
        ended = resumed.run("--emit", "all", *more)
        assert ended.code in {2, 6}
        assert files(resumed.folder) == before
        assert not other.exists()


def test_a_refused_run_leaves_no_store(resumed: Resumed) -> None:
    """A sink of another program is detected before a store is created."""
    resumed.sink.write_bytes(b"somebody's\n")
    assert resumed.run().code == 6
    assert not (resumed.folder / "store").exists()


def test_a_sink_beside_letters_of_somebody_is_not_made(resumed: Resumed) -> None:
    """Nor if it would have a store of its own."""
    letters = resumed.folder / "out.jsonl.dead-letters.jsonl"
    letters.write_bytes(b"somebody's\n")
    ended = resumed.run("--store", "memory:")
    assert ended.code == 6
    assert not resumed.sink.exists()


def unzipped(path: Path) -> bytes:
    """Return what the program gzip reads from a file."""
    return subprocess.run(["gzip", "-dc", path], check=True, capture_output=True, timeout=TIMEOUT_S).stdout


def test_a_sink_named_gz_is_gzip(resumed: Resumed) -> None:
    """It has the content of a plain one, also after a resumed run; dead letters are plain."""
    plain, packed = resumed.folder / "plain.jsonl", resumed.folder / "packed.jsonl.gz"
    small = ("--emit", "all", "--set", "source.batch_records_max=3")
    for count in (10, 30):
        write_lines(resumed.feed, [*articles(range(count)), *([b"{"] if count > 10 else [])])
        for sink in (plain, packed):
            assert resumed.run("--sink", sink, *small).code == 0
        assert unzipped(packed) == plain.read_bytes()
    assert len(gzip.decompress(packed.read_bytes()).splitlines()) == 30
    letters = packed.with_name(packed.name + ".dead-letters.jsonl")
    assert [letter["reason"] for letter in json_lines(letters.read_bytes())] == ["invalid_json"]


def test_a_killed_run_into_gzip_goes_on(resumed: Resumed) -> None:
    """Killed anywhere and resumed, each verdict is there once, and the file is valid."""
    sink = resumed.folder / "out.jsonl.gz"
    feed = articles(range(1_500))
    write_lines(resumed.feed, feed)
    checkpoint = sink.with_name(sink.name + ".checkpoint.json")
    store = f"lmdb:{resumed.folder / 'store'}"
    arguments = ("run", "--source", resumed.feed, "--sink", sink, "--store", store, "--emit", "all", *FAST)
    for part in (200, 600):
        process = start(*arguments, "--set", "source.batch_records_max=20", stderr=subprocess.DEVNULL)
        wait_for(
            lambda part=part: (
                line_count(checkpoint) > 0  # type: ignore[misc]
                and json.loads(checkpoint.read_bytes())["position"]["line"] >= part
            ),
            TIMEOUT_S,
        )
        process.kill()
        process.wait(TIMEOUT_S)
        # As a kill in the middle of a write leaves it.
        with sink.open("ab") as file:
            file.write(gzip.compress(b"torn")[:15])
    assert resumed.run("--sink", sink, "--emit", "all").code == 0
    assert [verdict["id"] for verdict in json_lines(unzipped(sink))] == [article["id"] for article in feed]


def test_a_gzip_sink_without_verdicts_is_gzip(resumed: Resumed) -> None:
    """Gzip reports an empty file as damaged; a later run can still write to this one."""
    sink = resumed.folder / "out.jsonl.gz"
    write_lines(resumed.feed, articles([0]))
    for _ in range(2):
        assert resumed.run("--store", "memory:", "--sink", sink).code == 0
        assert unzipped(sink) == b""


def test_plain_text_under_a_gzip_name_is_not_mixed(resumed: Resumed) -> None:
    """A sink of an earlier version is plain whatever its name; it resumes under another."""
    assert resumed.run("--emit", "all").code == 0
    named = resumed.folder / "out.jsonl.gz"
    for suffix in ("", ".checkpoint.json"):
        (resumed.folder / f"out.jsonl{suffix}").rename(f"{named}{suffix}")
    write_lines(resumed.feed, articles(range(20)))
    before = files(resumed.folder)
    ended = resumed.run("--emit", "all", "--sink", named)
    assert ended.code == 6
    assert "is plain text" in ended.err
    assert files(resumed.folder) == before


@pytest.mark.parametrize("name", ["out.jsonl.zst", "out.bz2", "out.XZ", "out.zip"])
def test_a_name_of_another_format_is_refused(resumed: Resumed, name: str) -> None:
    """Plain text is not written under the name of another format."""
    before = files(resumed.folder)
    ended = resumed.run("--sink", resumed.folder / name)
    assert ended.code == 2
    assert "as gzip to a name that ends with .gz" in ended.err
    assert files(resumed.folder) == before
    assert not (resumed.folder / "store").exists()


def test_a_sink_that_cannot_be_written_leaves_no_store(resumed: Resumed) -> None:
    """Nor a file, for any user."""
    folder = resumed.folder / "there"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    ended = resumed.run("--sink", folder / "pipe")
    assert ended.code == 6
    assert not (resumed.folder / "store").exists()


def test_a_scheme_is_named_as_elsewhere(resumed: Resumed) -> None:
    """``--scheme`` overrides ``fingerprint.scheme``; verdicts name it, and the store is bound to it and keeps it."""
    named = ("--emit", "all", "--set", "fingerprint.scheme=sha1-64/1", "--scheme", "md5-64/1")
    assert resumed.run(*named).code == 0
    assert {verdict["scheme"] for verdict in json_lines(resumed.sink.read_bytes())} == {"md5-64/1"}
    assert resumed.run("--emit", "all", "--set", "fingerprint.scheme=md5-64/1").code == 0
    assert resumed.run("--emit", "all").code == 0
    assert resumed.run("--emit", "all", "--scheme", "jieba-tfidf/2").code == 4
    ended = resumed.run("--emit", "all", "--scheme", "nothing/1")
    assert ended.code == 2
    assert "nothing/1" in ended.err


def test_a_checkpoint_that_cannot_be_written_leaves_no_sink(resumed: Resumed) -> None:
    """The run has not begun then."""
    (resumed.folder / "out.jsonl.checkpoint.json.tmp").mkdir()
    ended = resumed.run()
    assert ended.code == 6
    assert "cannot write the checkpoint" in ended.err
    assert not resumed.sink.exists()


@pytest.mark.parametrize(
    ("sink", "why"),
    [
        ("kafka://127.0.0.1:1/judged", "a kafka:// sink needs a kafka:// source; name a file for the verdicts"),
        ("nowhere:", "nowhere: is a sink of dupwatch serve; name a file, which is created, or -"),
    ],
)
def test_a_file_is_not_judged_into_topics_or_nowhere(dupwatch: Command, feed: Path, sink: str, why: str) -> None:
    """The message says what would do, and no store is created."""
    ended = dupwatch("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{feed.parent / 'store'}", *FAST)
    assert (ended.code, why in ended.err) == (2, True)
    assert list(feed.parent.iterdir()) == [feed]
