"""A run over the sample feed, with the defaults and with other batch sizes."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.command import FAST, LABELS, SAMPLE, SCHEMAS, Command, json_lines
from tests.zstandard import zstd

SIMILARITY_MIN = 0.72


@pytest.fixture(scope="module")
def feed() -> list[dict[str, Any]]:
    """The records of the feed."""
    return json_lines(SAMPLE.read_bytes())


@pytest.fixture(scope="module")
def labels() -> list[dict[str, Any]]:
    """One label for each record with a body."""
    return json_lines(LABELS.read_bytes())


@pytest.fixture
def verdicts(judged_sample: Path) -> list[dict[str, Any]]:
    """The verdicts of the run."""
    return json_lines((judged_sample / "verdicts.jsonl").read_bytes())


def decisions(verdicts: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return what must not depend on how the feed was cut into batches."""
    return [(verdict["id"], verdict["version"], verdict["outcome"]) for verdict in verdicts]


def test_every_record_is_answered_in_order(
    verdicts: list[dict[str, Any]], feed: list[dict[str, Any]], judged_sample: Path
) -> None:
    """Each record of the feed has its verdict, in its place, and none was rejected."""
    assert [verdict["id"] for verdict in verdicts] == [record["id"] for record in feed]
    assert not (judged_sample / "verdicts.jsonl.dead-letters.jsonl").exists()


def test_every_verdict_is_as_the_schema_says(verdicts: list[dict[str, Any]]) -> None:
    """Each line of the sink is valid against the published schema."""
    validator = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "verdict.schema.json").read_bytes()))
    assert verdicts
    assert [error for verdict in verdicts for error in validator.iter_errors(verdict)] == []


def test_labels_are_met(
    verdicts: list[dict[str, Any]], feed: list[dict[str, Any]], labels: list[dict[str, Any]]
) -> None:
    """Every labelled duplicate is flagged as one of its group, and nothing labelled unique is flagged."""
    bodied = [verdict for verdict, record in zip(verdicts, feed, strict=True) if record["body"] is not None]
    wrong = [
        (label["id"], label["expected"], verdict["outcome"])
        for label, verdict in zip(labels, bodied, strict=True)
        if label["expected"] not in {"open", verdict["outcome"]}
    ]
    assert wrong == []
    origins = {label["id"]: label["of"] or label["id"] for label in labels if label["operator"] != "replay"}
    for label, verdict in zip(labels, bodied, strict=True):
        if label["expected"] == "duplicate":
            assert origins[verdict["duplicate_of"]] == label["of"]


def test_retractions_are_answered(verdicts: list[dict[str, Any]], feed: list[dict[str, Any]]) -> None:
    """Each retraction is answered with ``retracted``, and nothing else is."""
    asked = [record["id"] for record in feed if record["body"] is None]
    assert asked
    assert [verdict["id"] for verdict in verdicts if verdict["outcome"] == "retracted"] == asked


def test_replay_and_new_version(judged_sample: Path, labels: list[dict[str, Any]]) -> None:
    """A repeated line gets its verdict again, byte for byte; new content under a known id is judged again."""
    lines = (judged_sample / "verdicts.jsonl").read_bytes().splitlines()
    replayed = next(label["id"] for label in labels if label["operator"] == "replay")
    first, again = [line for line in lines if json.loads(line)["id"] == replayed]
    assert first == again
    renewed = next(label["id"] for label in labels if label["operator"] == "new_version")
    old, new = [json.loads(line) for line in lines if json.loads(line)["id"] == renewed]
    assert old["version"] != new["version"]
    assert new["outcome"] == "unique"


def test_every_flag_was_verified(verdicts: list[dict[str, Any]]) -> None:
    """Each flag names an earlier article, with a similarity above the threshold."""
    seen: set[str] = set()
    for verdict in verdicts:
        if verdict["outcome"] == "duplicate":
            assert verdict["duplicate_of"] in seen - {verdict["id"]}
            assert verdict["similarity"] >= SIMILARITY_MIN
        seen.add(verdict["id"])


@pytest.mark.parametrize(
    ("store", "options"),
    [
        ("lmdb:store", ("--set", "source.batch_records_max=1")),
        ("lmdb:store", ("--set", "source.batch_records_max=7")),
        ("lmdb:store", ("--set", "source.batch_records_max=1000")),
        ("lmdb:store", ("--workers", "2", "--set", "source.batch_records_max=32")),
        ("memory:", ()),
    ],
    ids=["one at a time", "batches of 7", "one batch", "workers", "memory"],
)
def test_the_cut_makes_no_difference(
    dupwatch: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verdicts: list[dict[str, Any]],
    store: str,
    options: tuple[str, ...],
) -> None:
    """The same versions are kept however the feed is cut into batches, by workers, and in any store."""
    monkeypatch.chdir(tmp_path)
    ended = dupwatch(
        "run", "--source", SAMPLE, "--sink", "out.jsonl", "--store", store, "--emit", "all", *FAST, *options
    )
    assert ended.code == 0, ended.err
    again = json_lines(Path("out.jsonl").read_bytes())
    assert decisions(again) == decisions(verdicts)
    test_every_flag_was_verified(again)


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_compression_makes_no_difference(
    dupwatch: Command, tmp_path: Path, verdicts: list[dict[str, Any]], compress: Callable[[bytes], bytes]
) -> None:
    """The compressed feed gets the same verdicts; only duplicates are emitted by default."""
    packed = tmp_path / "feed.bin"
    packed.write_bytes(compress(SAMPLE.read_bytes()))
    ended = dupwatch("run", "--source", packed)
    assert ended.code == 0, ended.err
    flagged = [verdict for verdict in decisions(verdicts) if verdict[2] == "duplicate"]
    assert decisions(json_lines(ended.out)) == flagged


def test_pages_and_scripts(dupwatch: Command, tmp_path: Path) -> None:
    """The copy on a whole page, the one in the other script, an edited Russian one, and equal posts are found."""
    feed, sink = SAMPLE.with_name("pages_and_scripts.jsonl"), tmp_path / "out.jsonl"
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    ended = dupwatch(
        "run", "--source", feed, "--sink", sink, *store, "--emit", "all", "--set", "source.body_format=article", *FAST
    )
    assert ended.code == 0, ended.err
    found = json_lines(sink.read_bytes())
    assert {verdict["id"]: verdict["duplicate_of"] for verdict in found} == {
        article["id"]: article["id"].partition(".")[0] if "." in article["id"] else None
        for article in json_lines(feed.read_bytes())
    }
    assert {verdict["extracted"] for verdict in found if verdict["id"] == "zh-library.page"} == {"article"}


def options_of_make_run(feed: str) -> list[str]:
    """Return the settings with which ``make run`` judges a feed of the sample, as options."""
    recipe = (SAMPLE.parents[1] / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (command,) = [line for line in recipe.splitlines() if f"--source sample/{feed} " in line]
    return [option for setting in re.findall(r"--set (\S+)", command) for option in ("--set", setting)]


@pytest.mark.parametrize("profile", ["posts", "news"])
def test_reposts_are_shown(dupwatch: Command, tmp_path: Path, profile: str) -> None:
    """As `make run` does: both reposts and nothing else, and with the other profile nothing at all."""
    feed, sink = SAMPLE.with_name("posts.jsonl"), tmp_path / "out.jsonl"
    given = options_of_make_run("posts.jsonl")
    assert given == ["--set", "judge.profile=posts"]
    run = ("run", "--source", feed, "--sink", sink, "--store", f"lmdb:{tmp_path / 'store'}", "--emit", "all", "--show")
    ended = dupwatch(*run, *given, "--set", f"judge.profile={profile}", *FAST)
    assert ended.code == 0, ended.err
    found = {verdict["id"]: verdict["duplicate_of"] for verdict in json_lines(sink.read_bytes())}
    reposts = {"zh-ferry.repost": "zh-ferry", "en-seeds.repost": "en-seeds"} if profile == "posts" else {}
    assert list(found) == [post["id"] for post in json_lines(feed.read_bytes())]
    assert {repost: original for repost, original in found.items() if original} == reposts
    assert all((repost in ended.err) == bool(reposts) for repost in ("zh-ferry.repost", "en-seeds.repost"))


def test_a_part_is_shown(dupwatch: Command, tmp_path: Path) -> None:
    """As `make run` does: the notes of the weekend have half of the article on the bridge."""
    feed, sink, store = SAMPLE.with_name("pages_and_scripts.jsonl"), tmp_path / "out.jsonl", f"lmdb:{tmp_path / 's'}"
    given = options_of_make_run("pages_and_scripts.jsonl")
    assert given == ["--set", "source.body_format=article", "--set", "judge.parts=true"]
    ended = dupwatch(
        "run", "--source", feed, "--sink", sink, "--store", store, "--emit", "all", "--show", *given, *FAST
    )
    assert ended.code == 0, ended.err
    parts = {verdict["id"]: verdict["parts"] for verdict in json_lines(sink.read_bytes()) if "parts" in verdict}
    assert list(parts) == ["en-weekend"]
    assert [part["id"] for part in parts["en-weekend"]] == ["en-rope-bridge"]
    assert 0.3 < parts["en-weekend"][0]["share_of_that"] < 0.8
    assert "en-rope-bridge" in ended.err
    shown = dupwatch("show", "en-weekend", "--store", store).out.decode()
    assert "of it is in en-rope-bridge" in " ".join(shown.split())
    assert "also in en-rope-bridge" in shown
    plain = json.loads(dupwatch("show", "en-weekend", "--store", store, "--json").out)
    (passages,) = plain[0]["passages"]
    assert passages["id"] == "en-rope-bridge"
    body = next(line["body"] for line in json_lines(feed.read_bytes()) if line["id"] == "en-weekend")
    (place,) = passages["passages"]
    said = body[place["at"] : place["at"] + place["chars"]]
    assert place["chars"] > 200
    assert said[:30] in shown
    asked = dupwatch("query", "en-weekend", "--store", store, "--set", "judge.parts=true")
    (part,) = json_lines(asked.out)[0]["parts"]
    assert (part["id"], part["passages"]) == ("en-rope-bridge", [place])
    verified = dupwatch("store", "verify", "--store", store)
    assert verified.code == 0, verified.out
