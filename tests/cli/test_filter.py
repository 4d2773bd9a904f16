"""``dupwatch run --filter``: what is unique comes out as it came in."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import FAST, TIMEOUT_S, Command, articles, json_lines, run_process, start, write_lines
from tests.zstandard import zstd

ARTICLES = articles(range(20))
UNIQUE = [number for number in range(20) if number % 5 != 4]
LINES = [
    f'  {{"body" : "{article["body"]}","id":"{article["id"]}" }}\t'.encode() + (b"\r\n" if number % 2 else b"\n")
    for number, article in enumerate(ARTICLES)
]
"""With a spacing of their own, and line ends of both kinds."""
KEPT = b"".join(LINES[number] for number in UNIQUE)
HEADER = b'\xef\xbb\xbf"\nid",lang,body\r\n'
ROWS = [
    (
        f'{article["id"]},"e""n\n","{article["body"]}"\r\n' if number % 2 else f"{article['id']},en,{article['body']}\n"
    ).encode()
    for number, article in enumerate(ARTICLES)
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
def test_unique_articles_come_out_as_they_came(dupwatch: Command, tmp_path: Path, pack: type[bytes]) -> None:
    """Byte for byte and in order, from a file in any compression; verdicts go nowhere, and the summary to the user."""
    feed = tmp_path / "feed"
    feed.write_bytes(pack(b"\n\n".join([b"".join(LINES), b""])))
    ended = dupwatch("run", "--filter", "--source", feed, "--set", "source.batch_records_max=3", *FAST)
    assert (ended.code, ended.out) == (0, KEPT), ended.err
    assert "Summary" in ended.err


def test_a_table_keeps_its_header(dupwatch: Command, tmp_path: Path) -> None:
    """Which is not an article; also if there are no others."""
    feed = tmp_path / "feed.csv"
    feed.write_bytes(HEADER + b"".join(ROWS)[:-2])
    ended = dupwatch("run", "--filter", "--source", feed, *FAST)
    assert (ended.code, ended.out) == (0, HEADER + b"".join(ROWS[number] for number in UNIQUE)), ended.err
    feed.write_bytes(HEADER)
    assert dupwatch("run", "--filter", "--source", feed, *FAST).out == HEADER


def test_a_pipe_has_dead_letters_on_standard_error() -> None:
    """And nothing but articles on standard output."""
    ended = run_process("run", "--filter", given=b"".join(LINES[:8]) + b"{\n" + b"".join(LINES[8:]))
    assert (ended.code, ended.out) == (0, KEPT), ended.err
    letters = [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]
    assert [(letter["reason"], letter["position"]["line"]) for letter in letters] == [("invalid_json", 9)]


@pytest.mark.parametrize(("name", "header", "lines"), [("feed.jsonl", b"", LINES), ("feed.csv", HEADER, ROWS)])
def test_a_sink_gets_verdicts_and_dead_letters_and_the_run_resumes(
    dupwatch: Command, tmp_path: Path, name: str, header: bytes, lines: list[bytes]
) -> None:
    """Together with the verdicts: what comes out after each other is what comes out of one run."""
    feed, sink = tmp_path / name, tmp_path / "out.jsonl"
    run = ("run", "--filter", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    feed.write_bytes(header + b"".join(lines[:7]) + b"{\n")
    first = dupwatch(*run)
    feed.write_bytes(feed.read_bytes() + b"".join(lines[7:]))
    second = dupwatch(*run)
    kept = header + b"".join(lines[number] for number in UNIQUE)
    assert (first.code, second.code, first.out + second.out) == (0, 0, kept), second.err
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == ["a4", "a9", "a14", "a19"]
    assert len(json_lines(sink.with_name("out.jsonl.dead-letters.jsonl").read_bytes())) == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(("name", "lines"), [("feed.jsonl", LINES), ("feed.csv", [HEADER, *ROWS])])
def test_a_line_that_had_no_end_gets_it_when_the_run_resumes(
    dupwatch: Command, tmp_path: Path, name: str, lines: list[bytes], pack: type[bytes]
) -> None:
    """Otherwise what comes next would be appended to it. A header is such a line too."""
    feed = tmp_path / name
    run = ("run", "--filter", "--source", feed, "--sink", tmp_path / "out", "--store", f"lmdb:{tmp_path / 'store'}")
    out, read = b"", b""
    for count in (1, 2, 4):
        whole = b"".join(lines[:count]).removesuffix(b"\n").removesuffix(b"\r")
        with feed.open("ab") as file:
            file.write(pack(whole.removeprefix(read)))
        read = whole
        ended = dupwatch(*run, *FAST)
        assert ended.code == 0, ended.err
        out += ended.out
    # The byte order mark and a line end within quotes are in the header.
    assert out.splitlines() == b"".join(lines[:4]).splitlines()
    assert not out.endswith(b"\n")


def test_a_run_without_a_sink_begins_again_with_the_same_verdicts(dupwatch: Command, tmp_path: Path) -> None:
    """A lasting store remembers them, so every unique article comes again, and only these."""
    feed = tmp_path / "feed.jsonl"
    feed.write_bytes(b"".join(LINES))
    run = ("run", "--filter", "--source", feed, "--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    assert [dupwatch(*run).out for _ in range(2)] == [KEPT, KEPT]


def test_retractions_are_left_out(dupwatch: Command, tmp_path: Path) -> None:
    """They are not articles."""
    feed = write_lines(tmp_path / "feed", [ARTICLES[0], {"id": "a0", "body": None}, ARTICLES[1]])
    ended = dupwatch("run", "--filter", "--source", feed, *FAST)
    assert [record["id"] for record in json_lines(ended.out)] == ["a0", "a1"]


def test_exit_codes_are_those_of_a_run(dupwatch: Command, tmp_path: Path) -> None:
    """Of a feed that cannot be judged nothing comes out."""
    feed = write_lines(tmp_path / "feed", [b"{"] * 9)
    ended = dupwatch("run", "--filter", "--source", feed, *FAST)
    assert (ended.code, ended.out) == (7, b"")
    assert dupwatch("run", "--filter", "--source", tmp_path / "missing", *FAST).code == 3


def test_a_pipe_that_is_closed_ends_the_run(tmp_path: Path) -> None:
    """With the code of a sink that cannot be written."""
    feed = write_lines(tmp_path / "feed", articles(range(300)))
    small = ("--set", "source.batch_records_max=10")
    process = start("run", "--filter", "--source", feed, *small, *FAST, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        err = process.stderr.read()
    assert process.wait(TIMEOUT_S) == 6
    assert b"the articles cannot be written: the pipe was closed at the other end" in err


def test_a_source_is_not_written_over(tmp_path: Path) -> None:
    """Through redirection it would grow for ever, wherever the verdicts go."""
    feed = tmp_path / "feed"
    feed.write_bytes(KEPT)
    run = ("run", "--filter", "--source", feed, "--sink", tmp_path / "out.jsonl", *FAST)
    with feed.open("ab") as out:
        process = start(*run, stdout=out, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, b"redirected into" in err) == (2, True)
    assert feed.read_bytes() == KEPT


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.dead-letters.jsonl"])
def test_articles_are_not_mixed_with_what_else_the_run_writes(tmp_path: Path, name: str) -> None:
    """Neither would be readable any more."""
    feed = tmp_path / "feed"
    feed.write_bytes(KEPT)
    run = ("run", "--filter", "--source", feed, "--sink", tmp_path / "out.jsonl", *FAST)
    with (tmp_path / name).open("ab") as out:
        process = start(*run, stdout=out, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, f"redirected into {tmp_path / name}".encode() in err) == (2, True)
    assert (tmp_path / name).read_bytes() == b""


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("--source", "kafka://127.0.0.1:1/articles"), "kafka.unique = true"),
        (("--source", "{feed}", "--sink", "kafka://127.0.0.1:1/judged"), "a kafka:// sink needs a kafka:// source"),
        (("--source", "{feed}", "--emit", "all"), "name a file for the verdicts with --sink"),
    ],
)
def test_what_cannot_be_filtered_is_refused(
    dupwatch: Command, tmp_path: Path, arguments: tuple[str, ...], advice: str
) -> None:
    """With a sentence, before anything is read."""
    feed = write_lines(tmp_path / "feed", ARTICLES)
    ended = dupwatch("run", "--filter", *(argument.format(feed=feed) for argument in arguments))
    assert (ended.code, ended.out) == (2, b"")
    assert advice in ended.err
