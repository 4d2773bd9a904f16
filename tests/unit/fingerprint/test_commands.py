"""The commands that look at fingerprints: fingerprint, compare, idf build."""

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from consumer.cli.articles import fingerprint, idf
from consumer.cli.main import app
from consumer.cli.results import answer
from consumer.fingerprint import (
    SCHEME_NAMES,
    Breakdown,
    Fingerprinter,
    Scheme,
    TextKind,
    WeighedWord,
    cosine,
    fingerprint_number,
)
from consumer.model.errors import ConfigError, SinkError, SourceError
from consumer.workers.word_files import load_lexicon

TEXT = "昨日上午，江畔图书馆的新馆正式向读者开放。新馆共有四层，藏书约六十万册，一楼设有儿童阅览区。"
OTHER = TEXT.replace("六十", "七十").replace("昨日", "今日")
LEXICON = load_lexicon()


def _run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def _printed(*arguments: str, stdin: str | None = None) -> Any:  # noqa: ANN401 -- JSON
    done = _run(*arguments, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Two texts, the second as an article."""
    a, b = tmp_path / "a.txt", tmp_path / "b.json"
    a.write_text(TEXT, encoding="utf-8")
    b.write_text(json.dumps({"id": "b", "body": OTHER}), encoding="utf-8")
    return str(a), str(b)


@pytest.mark.parametrize("name", SCHEME_NAMES)
def test_fingerprint_tells_what_the_engine_makes(name: str, files: tuple[str, str]) -> None:
    """From a file and from standard input, by any scheme: fingerprint, its blocks, words, weights and sums."""
    scheme = Scheme(name=name)
    fingerprints = Fingerprinter(scheme, LEXICON, keywords_kept=None).fingerprint([TEXT])
    printed = _printed("fingerprint", files[0], "--scheme", name)
    assert printed == _printed("fingerprint", "-", "--scheme", name, stdin=TEXT)
    assert int(printed["fingerprint"], 16) == fingerprint_number(fingerprints.codes[0])
    assert "".join(printed["blocks"]) == printed["fingerprint"]
    assert len(printed["blocks"]) * 16 == len(printed["sums"]) == scheme.bits
    assert tuple((word["word"], word["weight"]) for word in printed["words"]) == fingerprints.keywords[0]
    assert printed["digest"] == scheme.digest(LEXICON)


def test_fingerprint_for_people(files: tuple[str, str]) -> None:
    """A person is shown words, sums, fingerprint and blocks."""
    done = _run("fingerprint", files[0])
    printed = _printed("fingerprint", files[0])
    assert printed["fingerprint"] in done.stdout
    assert " ".join(printed["blocks"]) in done.stdout
    assert f"{printed['sums'][0]:+.3f}" in done.stdout
    assert "阅览" in done.stdout


def test_nothing_steers_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a word nor a file's name is markup, and none of their control characters pass."""
    steering = "a[bold]b\x1b[31m\x9b2J\u202e"
    monkeypatch.chdir(tmp_path)
    Path(steering).write_text(TEXT, encoding="utf-8")
    shown = _run("compare", steering, "-", stdin=TEXT).stdout
    breakdown = Breakdown(TextKind.SHORT, (WeighedWord(steering, 1.0, 1),), (1.0,) * 64, 2**64 - 1)
    answer(json=False, lines=(), text=fingerprint._text(breakdown, Scheme(), "0"))
    for text in (shown, capsys.readouterr().out):
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
        assert "a[bold]b" in text


def test_article_and_its_text_are_one(files: tuple[str, str], tmp_path: Path) -> None:
    """Of an article as JSON the body is taken; everything else is a text as it stands."""
    plain = tmp_path / "plain.txt"
    plain.write_text(OTHER, encoding="utf-8")
    assert _printed("fingerprint", files[1]) == _printed("fingerprint", str(plain))


def test_compare_measures(files: tuple[str, str]) -> None:
    """Distance, similarity, cosine and differing bits are those of the two texts, and symmetric."""
    fingerprints = Fingerprinter(Scheme(), LEXICON, keywords_kept=None).fingerprint([TEXT, OTHER])
    code, other = map(fingerprint_number, fingerprints.codes)
    printed, back = _printed("compare", *files), _printed("compare", *files[::-1])
    assert printed["distance"] == back["distance"] == (code ^ other).bit_count() == len(printed["differing_bits"]) > 0
    assert sum(1 << 63 - place for place in printed["differing_bits"]) == code ^ other
    assert (
        printed["similarity"]
        == back["similarity"]
        == float(Scheme().definition.sketch_similarity(fingerprints.sketches[0], fingerprints.sketches[1]))
    )
    assert printed["cosine"] == cosine(dict(fingerprints.keywords[0]), dict(fingerprints.keywords[1]))
    assert printed["equal_text"] is False
    assert "昨日" not in printed["shared_keywords"]
    same = _printed("compare", files[0], "-", stdin=f" {TEXT}\u200b")
    assert (same["distance"], same["similarity"], same["equal_text"]) == (0, 1.0, True)
    assert same["cosine"] == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["jieba-tfidf/1", "sha1-128/1"])
def test_compare_marks_differing_bits(name: str, files: tuple[str, str]) -> None:
    """Below the two rows of bits every differing place is marked, and no other."""
    printed = _printed("compare", *files, "--scheme", name)
    lines = _run("compare", *files, "--scheme", name).stdout.split("\n")
    rows = [number for number, line in enumerate(lines) if line.startswith("A  ") and set(line[3:]) <= set("01 ")]
    places = []
    for row, number in enumerate(rows):
        a, b, marks = (lines[number + line][3:].ljust(68) for line in range(3))
        assert [x != y for x, y in zip(a, b, strict=True)] == [mark == "^" for mark in marks]
        places += [row * 64 + place - place // 17 for place, mark in enumerate(marks) if mark == "^"]
    assert places == printed["differing_bits"]
    assert len(rows) * 64 == printed["bits"]


def test_compare_says_what_short_texts_are_compared_by(files: tuple[str, str]) -> None:
    """Only for a short text the output says that only equality counts."""
    advice = "duplicates only if they are equal"
    assert advice in _run("compare", files[0], "-", stdin="图书馆开放").stdout
    assert advice not in _run("compare", *files).stdout


@pytest.mark.parametrize(
    ("arguments", "stdin", "error", "reason"),
    [
        (["fingerprint", "no such file"], None, SourceError, "cannot be read: No such file"),
        (["fingerprint", "."], None, SourceError, "cannot be read"),
        (
            ["fingerprint", "-", "--scheme", "md5/1"],
            "x",
            ConfigError,
            "unknown scheme 'md5/1'; choose one of the 14 in docs/use/schemes.md",
        ),
        (["fingerprint", "-", "--set", "source.record_bytes_max=5"], "123456", SourceError, "longer than 5 bytes"),
        (["compare", "-", "-"], "x", ConfigError, "both texts are standard input"),
    ],
)
def test_errors(arguments: list[str], stdin: str | None, error: type[Exception], reason: str) -> None:
    """Errors are one sentence."""
    done = _run(*arguments, stdin=stdin)
    assert isinstance(done.exception, error)
    assert reason in str(done.exception)


@pytest.mark.parametrize(
    ("feed", "output", "error", "reason"),
    [
        ("", "-", SourceError, "nothing to count"),
        ("bad", "-", SourceError, "nothing to count"),
        ('{"id":"a","body":"图书馆"}', "no/such/folder/table", SinkError, "cannot be written"),
    ],
)
def test_idf_errors(feed: str, output: str, error: type[Exception], reason: str, tmp_path: Path) -> None:
    """A feed without words and a table that cannot be written end with one sentence."""
    path = tmp_path / "feed"
    path.write_text(feed, encoding="utf-8")
    done = _run("idf", "build", str(path), "-o", output)
    assert isinstance(done.exception, error)
    assert reason in str(done.exception)


def test_idf_build_makes_what_the_lexicon_reads(tmp_path: Path) -> None:
    """A table built from plain or gzip JSON lines is ln((N + 1) / n) by word, and a lexicon can be loaded from it."""
    bodies = ["图书馆开放 图书馆", "图书馆 读者", "OPEN 读者 的", "x"]
    lines = (
        "".join(json.dumps({"id": str(number), "body": body}) + "\n" for number, body in enumerate(bodies)) + "bad\n"
    )
    feed, table, again = tmp_path / "feed.jsonl", tmp_path / "idf.txt", tmp_path / "again.txt"
    feed.write_text(lines)
    done = _run("idf", "build", str(feed), "-o", str(table))
    assert done.exit_code == 0, done.output
    assert "4 articles" in done.stderr
    assert "Skipped 1 invalid record;" in done.stderr
    feed.write_bytes(gzip.compress(lines.encode()))
    _run("idf", "build", str(feed), "-o", str(again))
    assert table.read_bytes() == again.read_bytes()
    command = [sys.executable, "-c", "from consumer.cli import main; main()", "idf", "build", "-", "-o", "-"]
    assert subprocess.run(command, input=lines.encode(), capture_output=True, check=True).stdout == table.read_bytes()
    loaded = load_lexicon(None, None, table).idf
    expected = {"图书馆": math.log(5 / 2), "开放": math.log(5), "读者": math.log(5 / 2), "open": math.log(5)}
    assert loaded == pytest.approx(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.txt", "feed.jsonl", "idf.txt"]


def test_idf_build_forgets_rare_words_at_its_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Beyond the limit words of single articles are dropped, and the output says so."""
    monkeypatch.setattr(idf, "WORDS_MAX", 3)
    feed = tmp_path / "feed"
    feed.write_text("".join(json.dumps({"id": body, "body": body}) + "\n" for body in ("aa bb", "aa cc dd", "ee")))
    done = _run("idf", "build", str(feed), "-o", "-")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["aa", "ee"]
    assert "Dropped 3 words that occur in only one article" in done.stderr


def test_idf_build_cuts_as_the_scheme_does(tmp_path: Path) -> None:
    """The table has the words as the scheme meets them: folded, or as written."""
    feed = tmp_path / "feed"
    feed.write_text(json.dumps({"id": "a", "body": "OPEN Library"}))
    for name, words in (("hyperplanes-64/1", ["library", "open"]), ("md5-64/1", ["Library", "OPEN"])):
        table = _run("idf", "build", str(feed), "-o", "-", "--scheme", name).stdout
        assert [line.split()[0] for line in table.splitlines()] == words


def test_cosine() -> None:
    """The cosine is 1 of vectors of one direction, 0 of vectors without a common word or without any."""
    assert cosine({"a": 3.0, "b": 4.0}, {"a": 6.0, "b": 8.0}) == pytest.approx(1.0)
    assert cosine({"a": 3.0, "b": 4.0}, {"a": 1.0}) == pytest.approx(0.6)
    assert cosine({"a": 1.0}, {"b": 1.0}) == cosine({}, {"a": 1.0}) == cosine({}, {}) == 0.0
