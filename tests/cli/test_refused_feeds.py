"""Feeds that fail as a whole: the run ends with 7, suggests what the feed is, and loses nothing."""

import bz2
import csv
import gzip
import io
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import FAST, TIMEOUT_S, Command, articles, json_lines, run_process, start, write_lines

GOOD = articles(range(30))
SHOWN_CHARS_MAX = 320
"""Four lines of 80 columns."""


def lines(records: list[dict[str, object]], template: str = "{}") -> bytes:
    """Return records as JSON lines, each within a template."""
    return b"".join(template.replace("{}", json.dumps(record)).encode() + b"\n" for record in records)


def table(separator: str) -> bytes:
    """Return the articles as a table with a heading."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator)
    writer.writerows([["id", "lang", "body"], *([article["id"], "en", article["body"]] for article in GOOD)])
    return out.getvalue().encode()


def renamed(**names: str) -> list[dict[str, object]]:
    """Return the articles with other field names, and a title."""
    return [{names.get(name, name): value for name, value in article.items()} | {"title": "t"} for article in GOOD]


CHINESE = "".join(
    json.dumps({"id": str(n), "body": "苍浦地铁号线下月试运行"}, ensure_ascii=False) + "\n" for n in range(9)
)
FEEDS = {
    "an array": (json.dumps(GOOD).encode(), "a JSON array: write one article per line, as with jq -c '.[]' FEED"),
    "an array over lines": (json.dumps(GOOD, indent=1).encode(), "jq -c '.[]' FEED"),
    "an array, an article a line": (b"[\n" + b",\n".join(lines(GOOD).splitlines()) + b"\n]\n", "jq -c '.[]' FEED"),
    "a short array": (b"[\n" + lines(GOOD[:1]) + b",\n" + lines(GOOD[1:2]) + b"]\n", "jq -c '.[]' FEED"),
    "an array longer than a record may be": (b"[" + b"1," * 5_000_000, "jq -c '.[]' FEED"),
    "rows": (lines([[article["id"], article["body"]] for article in GOOD]), "lines of JSON arrays"),  # type: ignore[misc]
    "an object around it": (json.dumps({"at": 1, "items": GOOD}).encode(), "jq -c '.items[]' FEED"),
    "objects over lines": (
        b"".join(json.dumps(article, indent=2).encode() + b"\n" for article in GOOD),
        "jq -c . FEED",
    ),
    "objects without line ends": (lines(GOOD).replace(b"\n", b""), "jq -c . FEED"),
    "commas behind objects": (lines(GOOD, "{},"), "sed 's/,$//' FEED"),
    "dictionaries": ("".join(f"{article}\n" for article in GOOD).encode(), "Python dictionaries"),
    "UTF-16": (lines(GOOD).decode().encode("utf-16"), "iconv -f UTF-16 -t UTF-8 FEED"),
    "UTF-16 without a mark": (lines(GOOD).decode().encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8 FEED"),
    "GBK": (CHINESE.encode("gbk"), "iconv -f GB18030 -t UTF-8 FEED"),
    "a program": (b"\x7fELF\x02\x01\x01\0\0\xff\xfe\n" * 9, "a binary file: name a file of JSON lines"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\xff\n" * 9, "a binary file: name a file of JSON lines"),
    "a spreadsheet": (b"PK\x03\x04\x14\0\x06\0[Content_Types].xml \xa2\n" * 9, "save a spreadsheet as CSV in UTF-8"),
    "CSV": (table(","), "CSV: set source.format=csv"),
    "CSV with semicolons": (table(";"), "mlr --icsv --ifs ';' --ojsonl cat FEED"),
    "TSV": (table("\t"), "TSV: set source.format=tsv"),
    "a log": (
        lines(GOOD, "2026-11-28T01:02:03Z INFO {}"),
        "behind a prefix, as in a log: remove the prefix, as with sed",
    ),
    "a text sequence": (lines(GOOD, "\x1e{}"), "a JSON text sequence (RFC 7464): remove the separators, as with tr"),
    "events": (
        lines(GOOD, ": a comment\nevent: article\nid: 7\ndata: {}\n"),
        "server-sent events: keep the data alone",
    ),
    "RSS": (b'<?xml version="1.0"?>\n<rss>\n<channel>\n</channel>\n</rss>\n', "XML or HTML"),
    "bzip2": (bz2.compress(lines(GOOD)), "bzip2 -dc FEED"),
    "gzip twice": (gzip.compress(gzip.compress(lines(GOOD))), "gzip data within gzip"),
    "another name of the body": (
        lines(renamed(body="text")),
        "Of these, 100% have no 'body'; fields found: text, id, title. Add --set source.fields.body=text",
    ),
    "other names of both": (
        lines(renamed(id="guid", body="content")),
        "Add --set source.fields.id=guid --set source.fields.body=content",
    ),
    "another name of the title, too": (
        lines([{"id": "a", "text": "x", "headline": "y"}]),
        "Add --set source.fields.body=text --set source.fields.title=headline",
    ),
    "a level down": (
        lines(GOOD, '{"data": {}}'),
        "Add --set source.fields.id=data.id --set source.fields.body=data.body",
    ),
    "names of our own": (lines(renamed(body="x")), "Add --set source.fields.body=NAME"),
    "nothing that is known": (b"one line\nanother line\n", "Line 1: the record is not JSON"),
}


@pytest.mark.parametrize("name", FEEDS)
def test_a_feed_that_fails_as_a_whole(dupwatch: Command, tmp_path: Path, name: str) -> None:
    """The message suggests the format and the remedy, and nothing is answered: once fixed, the same run judges it."""
    data, advice = FEEDS[name]
    feed, sink = tmp_path / "feed", tmp_path / "out.jsonl"
    feed.write_bytes(data)
    run = ("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", "--emit", "all", *FAST)
    ended = dupwatch(*run)
    message = ended.err.rstrip().splitlines()[-1]
    assert (ended.code, advice in message) == (7, True), ended.err
    assert message.startswith("dupwatch: ")
    assert "Traceback" not in ended.err
    assert len(message.replace(str(tmp_path), "")) <= SHOWN_CHARS_MAX
    assert sink.read_bytes() == b""
    assert not sink.with_name("out.jsonl.dead-letters.jsonl").exists()
    feed.write_bytes(lines(GOOD))
    assert dupwatch(*run).code == 0
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == [article["id"] for article in GOOD]


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_wrong_mapping_is_mended_without_a_new_sink(dupwatch: Command, tmp_path: Path, workers: str) -> None:
    """Also if the feed becomes bad after a good beginning: what was judged stays, the rest is judged once."""
    wrong = [{"id": f"w{n}", "text": article["body"]} for n, article in enumerate(articles(range(100, 400)))]
    feed = write_lines(tmp_path / "feed.jsonl", [*GOOD, *wrong])
    sink = tmp_path / "out.jsonl"
    small = ("--set", "source.batch_records_max=10", "--set", "source.poison_records_min=20", "--workers", workers)
    store = f"lmdb:{tmp_path / 'store'}"
    run = ("run", "--source", feed, "--sink", sink, "--store", store, "--emit", "all", *small, *FAST)
    ended = dupwatch(*run)
    assert ended.code == 7, ended.err
    assert "stopped before line 41. Of these, 100% have no 'body'" in ended.err
    assert "Dead letters by reason: missing_body 10" in ended.err
    assert [verdict["id"] for verdict in json_lines(sink.read_bytes())] == [article["id"] for article in GOOD]
    ended = dupwatch(*run, "--set", "source.fields.body=text")
    assert ended.code == 0, ended.err
    ids = [verdict["id"] for verdict in json_lines(sink.read_bytes())]
    assert ids == [*(article["id"] for article in GOOD), *(f"w{n}" for n in range(10, 300))]


def test_a_limit_of_1_lets_everything_become_dead_letters(dupwatch: Command, tmp_path: Path) -> None:
    """The run ends with 0, since everything was answered."""
    feed, sink = write_lines(tmp_path / "feed.jsonl", [b"{"] * 300), tmp_path / "out.jsonl"
    run = ("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    assert dupwatch(*run).code == 7
    assert dupwatch(*run, "--set", "source.poison_share_max=1").code == 0
    assert len(json_lines(sink.with_name("out.jsonl.dead-letters.jsonl").read_bytes())) == 300


def test_some_bad_records_are_dead_letters(dupwatch: Command, tmp_path: Path) -> None:
    """Up to the limit; a few more bad lines do not end a run whose feed was good before."""
    feed, sink = write_lines(tmp_path / "feed.jsonl", [*GOOD, *[b"{"] * 29]), tmp_path / "out.jsonl"
    run = ("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    ended = dupwatch(*run)
    assert ended.code == 0
    assert "Dead letters by reason: invalid_json 29" in ended.err
    with feed.open("ab") as file:
        file.write(b"{\n" * 5)
    assert dupwatch(*run).code == 0
    with feed.open("ab") as file:
        file.write('{"id": "x", "body": "地铁"}\n'.encode("gbk") * 5)
    assert dupwatch(*run).code == 0
    assert len(json_lines(sink.with_name("out.jsonl.dead-letters.jsonl").read_bytes())) == 39


def test_a_stream_is_answered_before_it_is_refused() -> None:
    """It cannot be read again: what was read gets its dead letters, then the run ends with 7."""
    array = json.dumps(GOOD[:20], indent=1)
    ended = run_process("run", "--emit", "all", given=array.encode())
    assert ended.code == 7, ended.err
    assert "jq -c '.[]' FEED" in ended.err
    letters = [line for line in ended.err.splitlines() if line.startswith("{")]
    assert len(letters) == array.count("\n") + 1
    ended = run_process("run", "--emit", "all", given=lines(GOOD) + b"{\n" * 20)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("template", ["data: {}\n", "\x1e{}", "INFO {}"])
def test_a_stream_of_events_is_refused_at_its_beginning(template: str) -> None:
    """Not only after as many records as the limit takes: that could be hours."""
    given = lines(GOOD[:8], template)
    process = start("run", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        process.stdin.write(given)
        process.stdin.flush()
        assert process.wait(TIMEOUT_S) == 7
        assert b"The feed looks like" in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


def test_a_stream_may_begin_with_lines_of_a_log() -> None:
    """Before its first article, however long that takes."""
    process = start("run", "--filter", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        process.stdin.write(lines(GOOD[:2], "INFO {}"))
        process.stdin.flush()
        # Their dead letters say that they were read alone.
        assert b'"invalid_json"' in process.stderr.readline()
        out, err = process.communicate(lines(GOOD[2:4]), TIMEOUT_S)
        assert (process.returncode, out) == (0, lines(GOOD[2:4])), err
    finally:
        process.kill()
        process.communicate()


def test_an_archive_too(dupwatch: Command, tmp_path: Path) -> None:
    """``backfill`` refuses the same feeds."""
    archive = tmp_path / "archive.json"
    archive.write_bytes(json.dumps(GOOD).encode())
    ended = dupwatch("backfill", archive, "--store", f"lmdb:{tmp_path / 'store'}", "--state", tmp_path / "state", *FAST)
    assert ended.code == 7
    assert "jq -c '.[]' FEED" in ended.err


def test_the_summary_says_what_to_set_for_times(dupwatch: Command, tmp_path: Path) -> None:
    """Articles without ``published_at`` are judged, and counted by reason together with the setting to change."""
    times = ["2026-01-31 08:15:30", 20_260_131, "", "2026-01-31T08:15:30Z"]
    feed = write_lines(
        tmp_path / "feed.jsonl", [article | {"published_at": at} for article, at in zip(GOOD, times, strict=False)]
    )
    ended = dupwatch("run", "--source", feed, "--emit", "all")
    assert (ended.code, len(json_lines(ended.out))) == (0, 4)
    assert "Articles judged without their published_at: no_zone 1, no_unit 1, empty 1" in ended.err
    assert "set source.published_at_zone, for example to +08:00" in ended.err
    assert "set source.published_at_unit" in ended.err
    helped = ("--set", "source.published_at_zone=+08:00", "--set", "source.published_at_unit=s")
    ended = dupwatch("run", "--source", feed, "--emit", "all", *helped)
    assert "Articles judged without their published_at: empty 1" in ended.err
    wrong = dupwatch("run", "--source", feed, "--set", "source.published_at_zone=Mars/Base")
    assert (wrong.code, "source.published_at_zone" in wrong.err) == (2, True)
