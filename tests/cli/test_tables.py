"""CSV and TSV wherever articles are read: judged as JSON lines are, and resumed as they are."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import FAST, Command, articles, json_lines, run_process, write_lines
from tests.zstandard import zstd

GOOD = [
    {"id": article["id"], "lang": "en", "body": f'{article["body"]}\n"so, or so"\té'} for article in articles(range(12))
]
SAME = ("id", "outcome", "duplicate_of", "distance", "similarity", "version")


def table(rows: list[dict[str, Any]], separator: str = ",") -> str:
    """The articles as a table with a header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(GOOD[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def judged(data: bytes) -> list[list[object]]:
    """What verdicts say, apart from times."""
    return [[verdict[name] for name in SAME] for verdict in json_lines(data)]


FEEDS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "feed.csv": (table(GOOD).encode(), ()),
    "feed.tsv.gz": (gzip.compress(table(GOOD, "\t").encode()), ()),
    "feed.CSV.zst": (zstd.compress(table(GOOD).encode("gb18030")), ("--set", "source.encoding=gb18030")),
    "feed": (table(GOOD).encode("utf-16"), ("--set", "source.encoding=utf-16", "--set", "source.format=csv")),
    "feed.jsonl": (b"\xef\xbb\xbf" + table(GOOD, "\t").encode(), ("--set", "source.format=tsv")),
}


@pytest.mark.parametrize("name", FEEDS)
def test_a_table_is_judged_as_json_lines_are(dupwatch: Command, tmp_path: Path, name: str) -> None:
    """In each format, encoding and compression."""
    data, settings = FEEDS[name]
    (tmp_path / name).write_bytes(data)
    lines = write_lines(tmp_path / "lines", GOOD)
    ended = dupwatch("run", "--source", tmp_path / name, "--emit", "all", *settings, *FAST)
    assert ended.code == 0, ended.err
    assert judged(ended.out) == judged(dupwatch("run", "--source", lines, "--emit", "all", *FAST).out)
    assert {verdict[1] for verdict in judged(ended.out)} == {"unique", "duplicate"}


def test_bad_rows_are_dead_letters_and_a_table_that_grew_is_resumed(dupwatch: Command, tmp_path: Path) -> None:
    """Positions are those of rows, which may have several lines; columns have the names of the mapping."""
    feed, sink = tmp_path / "feed.csv", tmp_path / "out.jsonl"
    run = ("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", "--emit", "all", *FAST)
    begin = table(GOOD[:3]).encode()
    feed.write_bytes(begin + b'a90,en\n"a91"x,en,"text\n' + b"a92,en,caf\xe9\r\n")
    ended = dupwatch(*run)
    assert ended.code == 0, ended.err
    feed.write_bytes(feed.read_bytes() + table(GOOD[3:]).encode().partition(b"\r\n")[2])
    ended = dupwatch(*run)
    assert ended.code == 0, ended.err
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == [article["id"] for article in GOOD]
    letters = json_lines(sink.with_name("out.jsonl.dead-letters.jsonl").read_bytes())
    line = begin.count(b"\n") + 1
    assert [(letter["reason"], letter["position"]["line"], letter["raw"]) for letter in letters] == [
        ("schema_mismatch", line, "a90,en"),
        ("schema_mismatch", line + 1, '"a91"x,en,"text'),
        ("invalid_utf8", line + 2, None),
    ]
    assert letters[0]["position"]["offset"] == len(begin)


def test_every_command_that_reads_articles_reads_tables(dupwatch: Command, tmp_path: Path) -> None:
    """By the same names and settings."""
    feed = tmp_path / "feed.csv"
    feed.write_text(table(GOOD), newline="")
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    ended = dupwatch("backfill", feed, *store, *FAST)
    assert ended.code == 0, ended.err
    assert f"judged as of now, without a time of publication or with a future one: {len(GOOD)}" in ended.err
    answers = json_lines(dupwatch("query", feed, *store).out)
    assert [answer["id"] for answer in answers] == [article["id"] for article in GOOD]
    pairs = write_lines(tmp_path / "pairs.csv", [["a3", "a4", "duplicate"], ["a0", "a1", "unique"]])
    ended = dupwatch("evaluate", feed, "--pairs", pairs)
    assert ended.code == 0, ended.err
    ended = dupwatch("idf", "build", feed, "-o", "-")
    assert (ended.code, b"harbour" in ended.out) == (0, True), ended.err


def test_a_table_in_part_in_another_encoding_says_what_to_set(dupwatch: Command, tmp_path: Path) -> None:
    """Too few of its rows are dead letters for the run to stop; another sink then takes all of them."""
    rows = [
        *({**row, "body": row["body"].rstrip("é")} for row in GOOD),
        {"id": "zh", "body": "苍浦地铁五号线下月试运行，列车按照正式时刻表行驶，暂不载客。"},
    ]
    feed = tmp_path / "feed.csv"
    feed.write_bytes(table(rows).encode("gb18030"))
    run = ("run", "--source", feed, "--store", f"lmdb:{tmp_path / 'store'}", "--emit", "all", *FAST)
    ended = dupwatch(*run, "--sink", tmp_path / "first.jsonl")
    assert (ended.code, "set source.encoding for CSV or TSV" in " ".join(ended.err.split())) == (0, True), ended.err
    sink = tmp_path / "second.jsonl"
    ended = dupwatch(*run, "--sink", sink, "--set", "source.encoding=gb18030")
    assert (ended.code, "source.encoding for" in ended.err) == (0, False), ended.err
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == [row["id"] for row in rows]


def test_standard_input_is_a_table_if_the_setting_says_so() -> None:
    """It has no name."""
    ended = run_process("run", "--emit", "all", "--set", "source.format=csv", given=table(GOOD).encode())
    assert ended.code == 0, ended.err
    assert [verdict["id"] for verdict in json_lines(ended.out)] == [article["id"] for article in GOOD]


WRONG: dict[str, tuple[bytes, tuple[str, ...], int, str]] = {
    "another name of the body": (
        b"id,text\n", (), 3, "{feed} has no column 'body'; found: 'text', 'id'. Add --set source.fields.body=text"
    ),
    "JSON lines": (json.dumps(GOOD[0]).encode(), (), 3, "the header of {feed} is JSON: set source.format=jsonl"),
    "another encoding": (
        table(GOOD).encode("cp1252"), (), 7, "The table has another encoding: set source.encoding, for example to"
    ),
    "no encoding": (
        b"", ("--set", "source.encoding=ebcdic"), 2, "source.encoding: unknown encoding; name one such as utf-8"
    ),
    "an encoding without ASCII": (b"", ("--set", "source.encoding=cp500"), 2, "convert them to UTF-8, or name"),
    "an encoding of JSON lines": (
        b"", ("--set", "source.format=jsonl", "--set", "source.encoding=gbk"), 2, "iconv -f gbk -t UTF-8 FEED"
    ),
    "an open quote": (
        b'id,body\n1,"text', (), 3, "{feed}: the row that begins in line 2 has a quote that is not closed"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_table_that_cannot_be_read_says_what_to_do(dupwatch: Command, tmp_path: Path, name: str) -> None:
    """In one message; a wrong header before anything is created."""
    data, settings, code, advice = WRONG[name]
    feed, sink = tmp_path / "feed.csv", tmp_path / "out.jsonl"
    feed.write_bytes(data)
    ended = dupwatch("run", "--source", feed, "--sink", sink, *settings, *FAST)
    message = ended.err.rstrip().splitlines()[-1]
    assert (ended.code, advice.format(feed=feed) in message) == (code, True), ended.err
    assert len(message.replace(str(tmp_path), "")) <= 240
    assert sink.exists() == (name in {"another encoding", "an open quote"})
