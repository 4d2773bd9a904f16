"""Invalid records among valid ones, and a line that is larger than memory should be."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.command import (
    DUPWATCH,
    FAST,
    SCHEMAS,
    TIMEOUT_S,
    Command,
    articles,
    environment,
    json_lines,
    write_lines,
)
from tests.zstandard import zstd

BAD: list[tuple[str, bytes]] = [
    ("invalid_json", b'{"id": "x", "body": '),
    ("invalid_json", b'{"id": "x", "body": NaN}'),
    ("invalid_json", b'{"id": "x", "body": ""} {"id": "y", "body": ""}'),
    ("not_an_object", b'["x", "text"]'),
    ("missing_id", b'{"body": "text"}'),
    ("missing_id", b'{"id": null, "body": "text"}'),
    ("id_wrong_type", b'{"id": 1.5, "body": "text"}'),
    ("empty_id", b'{"id": "", "body": "text"}'),
    ("id_too_long", b'{"id": "%s", "body": "text"}' % (b"x" * 513)),
    ("missing_body", b'{"id": "x"}'),
    ("body_wrong_type", b'{"id": "x", "body": ["text"]}'),
    ("body_too_long", b'{"id": "x", "body": "%s"}' % (b"x" * 1001)),
    ("field_wrong_type", b'{"id": "x", "body": "text", "title": 7}'),
    ("field_too_long", b'{"id": "x", "body": "text", "lang": "%s"}' % (b"x" * 65)),
    ("nested_too_deep", b'{"id": "x", "body": "text", "more": %s%s}' % (b"[" * 40, b"]" * 40)),
    ("nested_too_deep", b'{"id": "x", "body": "text", "more": %s%s}' % (b"[" * 90_000, b"]" * 90_000)),
    ("invalid_utf8", b'{"id": "x", "body": "\xe9t\xe9"}'),
    ("invalid_utf8", '{"id": "x", "body": "text"}'.encode("utf-16")),
    ("lone_surrogate", b'{"id": "x", "body": "\\ud83d"}'),
    ("nul_character", b'{"id": "x", "body": "te\\u0000xt"}'),
    ("nul_character", b'{"id": "x\\u0000", "body": "text"}'),
    ("number_out_of_range", b'{"id": "x", "body": "", "published_at": 1e400}'),
    ("record_too_long", b'{"id": "x", "body": "%s"}' % (b"x" * 200_000)),
]
LIMITS = ("--set", "source.body_chars_max=1000", "--set", "source.record_bytes_max=199999")
GIANT_BYTES = 1 << 29
RESIDENT_BYTES_MAX = 400 << 20


def letters_of(sink: Path) -> list[dict[str, Any]]:
    """Return the dead letters beside a sink, after validating each against the published schema."""
    letters = json_lines(sink.with_name(sink.name + ".dead-letters.jsonl").read_bytes())
    validator = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "dead-letter.schema.json").read_bytes()))
    for letter in letters:
        validator.validate(letter)
    return letters


@pytest.mark.parametrize("workers", ["0", "1"])
def test_each_bad_record_is_one_dead_letter(dupwatch: Command, tmp_path: Path, workers: str) -> None:
    """Each invalid line has one dead letter with reason and position, and each valid one its verdict."""
    good = articles(range(len(BAD) + 1))
    pairs = [part for article, (_, bad) in zip(good, BAD, strict=False) for part in (article, bad)]
    feed = write_lines(tmp_path / "feed.jsonl", [*pairs, good[-1]])
    sink = tmp_path / "out.jsonl"
    ended = dupwatch("run", "--source", feed, "--sink", sink, "--emit", "all", "--workers", workers, *LIMITS)
    assert ended.code == 0
    assert "Traceback" not in ended.err
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == [article["id"] for article in good]
    letters = letters_of(sink)
    assert [letter["reason"] for letter in letters] == [reason for reason, _ in BAD]
    for (_, bad), letter in zip(BAD, letters, strict=True):
        assert letter["sha256"] == hashlib.sha256(bad).hexdigest()
        assert letter["size_bytes"] == len(bad)
        offset = letter["position"]["offset"]
        assert feed.read_bytes()[offset : offset + len(bad)] == bad


def test_dead_letters_of_a_stream(dupwatch: Command, tmp_path: Path) -> None:
    """With the sink ``-``, dead letters go to standard error and only verdicts to standard output."""
    feed = write_lines(tmp_path / "feed.jsonl", [*articles([0]), b"{", *articles([1])])
    ended = dupwatch("run", "--source", feed, "--emit", "all")
    assert ended.code == 0
    assert [verdict["id"] for verdict in json_lines(ended.out)] == ["a0", "a1"]
    letters = [line for line in ended.err.splitlines() if line.startswith("{")]
    assert [json.loads(letter)["reason"] for letter in letters] == ["invalid_json"]


@pytest.mark.parametrize(
    ("reason", "cut_bytes", "garbage"), [("truncated_input", 60, b""), ("trailing_garbage", 0, b"plain text\n" * 9)]
)
def test_broken_gzip(dupwatch: Command, tmp_path: Path, reason: str, cut_bytes: int, garbage: bytes) -> None:
    """The readable part of damaged gzip data is judged; the rest is one dead letter, also in a repeated run."""
    good = articles(range(100))
    packed = gzip.compress(write_lines(tmp_path / "plain.jsonl", good).read_bytes())
    feed = tmp_path / "feed.jsonl.gz"
    feed.write_bytes(packed[: len(packed) - cut_bytes] + garbage)
    sink = tmp_path / "out.jsonl"
    run = ("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", "--emit", "all", *FAST)
    assert [dupwatch(*run).code, dupwatch(*run).code] == [0, 0]
    ids = [verdict["id"] for verdict in json_lines(sink.read_bytes())]
    assert ids == [article["id"] for article in good][: len(ids)]
    assert len(ids) >= 90 if cut_bytes else len(ids) == 100
    assert [letter["reason"] for letter in letters_of(sink)] == [reason]


def test_a_gzip_file_that_is_being_written(dupwatch: Command, tmp_path: Path) -> None:
    """The incomplete last line is reported, and judged once it is complete; every article has one verdict."""
    good = articles(range(100))
    packed = gzip.compress(write_lines(tmp_path / "plain.jsonl", good).read_bytes())
    feed, sink = tmp_path / "feed.jsonl.gz", tmp_path / "out.jsonl"
    run = ("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", "--emit", "all", *FAST)
    for size in (len(packed) // 2, len(packed) // 2 + 20, len(packed)):
        feed.write_bytes(packed[:size])
        assert dupwatch(*run).code == 0
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == [article["id"] for article in good]
    assert {letter["reason"] for letter in letters_of(sink)} == {"truncated_input"}
    assert len(letters_of(sink)) <= 2


@pytest.mark.parametrize(("codec", "compress"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
def test_a_compressed_file_without_a_whole_line_yet(
    dupwatch: Command, tmp_path: Path, codec: str, compress: Callable[[bytes], bytes]
) -> None:
    """The failure is not permanent: the run says why it ends, and a later one judges everything."""
    packed = compress(write_lines(tmp_path / "plain.jsonl", articles([0])).read_bytes())
    feed, sink = tmp_path / "feed.jsonl", tmp_path / "out.jsonl"
    run = ("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", "--emit", "all", *FAST)
    for size in (1, 2, 12, 40):
        feed.write_bytes(packed[:size])
        ended = dupwatch(*run)
        assert (ended.code, f"the {codec} data ends early" in ended.err) == (7, True), ended.err
        assert "; rerun when the file is complete. Correct the feed" in ended.err, ended.err
    feed.write_bytes(packed)
    assert dupwatch(*run).code == 0
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == ["a0"]


_MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_giant_line_in_bounded_memory(tmp_path: Path, kind: str) -> None:
    """A line of half a GiB is one dead letter with size and digest, and memory use stays small."""
    first, last = (json.dumps(article).encode() + b"\n" for article in articles([0, 1]))
    giant = tmp_path / "feed.jsonl"
    with giant.open("wb") as file:
        # A hole in a file reads as zeros and takes no room.
        file.write(first)
        file.truncate(len(first) + GIANT_BYTES)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + last)
    sink = tmp_path / "out.jsonl"
    source = str(giant) if kind == "file" else "-"
    command = [sys.executable, "-c", _MEASURED, str(DUPWATCH), "run"]
    command += ["--source", source, "--sink", str(sink), "--emit", "all"]
    with subprocess.Popen(["cat", giant], stdout=subprocess.PIPE) as generator:
        done = subprocess.run(
            command, stdin=generator.stdout, capture_output=True, timeout=TIMEOUT_S, env=environment(), check=True
        )
        generator.terminate()
    giant.unlink()
    code, resident_bytes = map(int, done.stdout.split())
    assert code == 0, done.stderr
    assert resident_bytes < RESIDENT_BYTES_MAX
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == ["a0", "a1"]
    (letter,) = letters_of(sink)
    assert (letter["reason"], letter["size_bytes"], letter["cut"]) == ("record_too_long", GIANT_BYTES, True)
    assert letter["sha256"] == zeros_digest(GIANT_BYTES)


def zeros_digest(size_bytes: int) -> str:
    """Return the SHA-256 of this many zero bytes."""
    digest = hashlib.sha256()
    chunk = bytes(1 << 20)
    for _ in range(size_bytes // len(chunk)):
        digest.update(chunk)
    return digest.hexdigest()


def test_an_error_steers_no_terminal(dupwatch: Command, tmp_path: Path) -> None:
    """Control characters in quoted input are escaped."""
    ended = dupwatch("show", "a", "--store", f"lmdb:{tmp_path}/\x1b[31m\u202e")
    assert ended.code == 4
    assert "\\x1b[31m\\u202e" in ended.err
    assert "\x1b" not in ended.err


def test_blank_lines_are_counted(dupwatch: Command, tmp_path: Path) -> None:
    """Every command that reads a feed says how many it skipped, and nothing where there were none."""
    one, two = articles(range(2))
    feed = write_lines(tmp_path / "feed.jsonl", [b"", one, b" ", b"\r", two, b"\xef\xbb\xbf"])
    pairs = write_lines(tmp_path / "pairs.jsonl", [b"", [one["id"], two["id"], False]])
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    said = f"Skipped blank lines in {feed}: 4."
    for command in (
        ("run", "--source", feed, "--sink", tmp_path / "verdicts", *store, *FAST),
        ("backfill", feed, "--store", f"lmdb:{tmp_path / 'archive'}", "--state", tmp_path / "state", *FAST),
        ("query", feed, *store),
        ("idf", "build", feed, "-o", tmp_path / "idf.txt"),
        ("evaluate", feed, "--pairs", pairs),
    ):
        ended = dupwatch(*command)
        assert ended.code == 0, ended.err
        assert said in ended.err.splitlines()
    assert f"Skipped blank lines in {pairs}: 1." in ended.err.splitlines()
    assert "blank" not in dupwatch("query", write_lines(tmp_path / "other", [one]), *store).err
