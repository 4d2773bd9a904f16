"""``query``: an outcome for each article, the same inputs as ``explain``, and an error if all lines fail."""

import gzip
import json
from pathlib import Path

import pytest

from consumer.fingerprint import Scheme
from tests.cli.command import FAST, Command, json_lines, run_process, text, write_lines

BODY = text(1)
DEFAULT = Scheme().definition.similarity_min


@pytest.fixture
def store(dupwatch: Command, tmp_path: Path) -> tuple[str, str]:
    """The option for a store with two different articles, and a copy of the first."""
    option = ("--store", f"lmdb:{tmp_path / 'store'}")
    records = [{"id": "a", "body": BODY}, {"id": "b", "body": text(2)}, {"id": "c", "body": f"{BODY} again"}]
    assert dupwatch("run", "--source", write_lines(tmp_path / "feed.jsonl", records), *option, *FAST).code == 0
    return option


def test_every_line_has_an_outcome(dupwatch: Command, tmp_path: Path, store: tuple[str, str]) -> None:
    """Duplicate, unique, or an error; the other lines are still answered."""
    asked = [{"id": "x", "body": BODY}, {"id": "y", "body": text(9)}, {"id": "z"}, {"id": "r", "body": None}]
    ended = dupwatch("query", write_lines(tmp_path / "asked.jsonl", asked), *store)
    assert ended.code == 0
    assert [line["outcome"] for line in json_lines(ended.out)] == ["duplicate", "unique", "error", "error"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"title":"x"}\n{"title":"y"}\n', "2 lines failed (line 1: the record has no id)"),
        (b'[{"id":"x","body":"y"},\n{"id":"x","body":"y"}]\n', "2 lines failed (line 1: the record is not JSON"),
        (b'{"id":"x","body":null}\n', "1 line failed (line 1: a retraction has no text)"),
    ],
    ids=["no id", "an array", "a retraction"],
)
@pytest.mark.parametrize("by_pipe", [False, True])
def test_no_success_where_every_line_failed(
    dupwatch: Command,
    tmp_path: Path,
    store: tuple[str, str],
    data: bytes,
    why: str,
    by_pipe: bool,  # noqa: FBT001
) -> None:
    """Each line has its error, and the command ends with 3 and describes the expected input."""
    path = tmp_path / "asked.jsonl"
    path.write_bytes(data)
    ended = run_process("query", "-", *store, given=data) if by_pipe else dupwatch("query", path, *store)
    assert ended.code == 3
    assert {line["outcome"] for line in json_lines(ended.out)} == {"error"}
    assert len(json_lines(ended.out)) == data.count(b"\n")
    assert why in ended.err
    assert "Check source.format" in ended.err


def test_an_empty_input_is_said_to_be_empty(dupwatch: Command, tmp_path: Path, store: tuple[str, str]) -> None:
    """An empty input is not a failure."""
    (tmp_path / "empty").touch()
    ended = dupwatch("query", tmp_path / "empty", *store)
    assert (ended.code, ended.out) == (0, b"")
    assert "is empty." in ended.err


@pytest.mark.parametrize(
    "data",
    [
        BODY.encode(),
        b"[" + BODY.encode() + b"]\nand no more",
        b"{" + BODY.encode() + b"}",
        b"\xef\xbb\xbf" + BODY.encode(),
        gzip.compress(BODY.encode()),
        json.dumps({"id": "x", "body": BODY}, indent=2).encode(),
        json.dumps({"id": "x", "body": BODY}).encode(),
        gzip.compress(json.dumps({"id": "x", "body": BODY}, indent=2).encode()),
    ],
)
def test_a_file_that_explain_reads(dupwatch: Command, tmp_path: Path, store: tuple[str, str], data: bytes) -> None:
    """Plain text, and an article over several lines, gzip or not, are one query; ``explain`` agrees."""
    path = tmp_path / "asked"
    path.write_bytes(data)
    ended = dupwatch("query", path, *store)
    assert ended.code == 0
    (answer,) = json_lines(ended.out)
    assert (answer["outcome"], answer["matches"][0]["id"]) == ("duplicate", "a")
    (found,) = json_lines(dupwatch("explain", path, "a", "--json", *store).out)
    assert found["near"]


def test_an_article_of_the_store(dupwatch: Command, store: tuple[str, str]) -> None:
    """By its id, as for ``explain``: its original, but not one that a person released it from."""
    (answer,) = json_lines(dupwatch("query", "c", *store).out)
    assert (answer["id"], answer["outcome"], [match["id"] for match in answer["matches"]]) == ("c", "duplicate", ["a"])
    assert dupwatch("release", "c", "--yes", *store).code == 0
    (answer,) = json_lines(dupwatch("query", "c", *store).out)
    assert (answer["outcome"], answer["matches"]) == ("unique", [])


@pytest.mark.parametrize("name", ["nowhere.jsonl", "a text of more than 255 bytes " * 9])
def test_what_is_neither_a_file_nor_an_article(dupwatch: Command, store: tuple[str, str], name: str) -> None:
    """The message names both, and the store."""
    ended = dupwatch("query", name, *store)
    assert (ended.code, ended.out) == (3, b"")
    assert "and no article with that id in lmdb:" in ended.err


@pytest.mark.parametrize(
    ("setting", "difference"),
    [
        ("judge.similarity_min=0.999", f"similarity_min is {DEFAULT} in the store and 0.999 here"),
        ("judge.max_distance=0", "max_distance is 3 in the store and 0 here"),
        ("judge.window_s=60", "window_ms is 604800000 in the store and 60000 here"),
        ("fingerprint.keywords_max=20", "scheme.keywords_max is null in the store and 20 here"),
        ("rules.wire.flag=never", "sources.wire.flag is null in the store and"),
    ],
)
@pytest.mark.parametrize("command", ["query", "verify"])
def test_other_settings_are_refused(
    dupwatch: Command, tmp_path: Path, store: tuple[str, str], setting: str, difference: str, command: str
) -> None:
    """With the reason: stored records depend on the store's settings. From an option, the environment or a file."""
    feed = write_lines(tmp_path / "asked.jsonl", [{"id": "x", "body": BODY}])
    arguments = ("query", feed, *store) if command == "query" else ("store", "verify", *store)
    ended = dupwatch(*arguments, "--set", setting)
    assert (ended.code, ended.out) == (4, b"")
    assert difference in ended.err
    assert "The verdicts in the store were reached with its own settings" in ended.err


def test_settings_of_the_store_are_taken(dupwatch: Command, tmp_path: Path, store: tuple[str, str]) -> None:
    """A configuration that repeats the settings of the store is accepted."""
    (tmp_path / "same.toml").write_text(f"[judge]\nsimilarity_min = {DEFAULT}\nmax_distance = 3\n")
    feed = write_lines(tmp_path / "asked.jsonl", [{"id": "x", "body": BODY}])
    assert dupwatch("query", feed, *store, "--config", tmp_path / "same.toml").code == 0
    refused = dupwatch("query", feed, *store, DUPWATCH_JUDGE__SIMILARITY_MIN="0.9")
    assert (refused.code, f"similarity_min is {DEFAULT} in the store and 0.9 here" in refused.err) == (4, True)


def test_a_json_file_that_is_read_as_text_is_announced(
    dupwatch: Command, tmp_path: Path, store: tuple[str, str]
) -> None:
    """A broken file of JSON lines would otherwise pass for the text of an article."""
    for name, content, is_announced in (
        ("broken.jsonl", "not json", True),
        ("text.txt", "not json", False),
        ("text.txt", "[draft] not json\n[2] either", True),
        ("text.txt", '{"id": "x", "body": "cut off', True),
    ):
        path = tmp_path / name
        path.write_text(content)
        ended = dupwatch("query", path, *store)
        assert ended.code == 0
        assert ("is not JSON; it was read as plain text." in " ".join(ended.err.split())) is is_announced
