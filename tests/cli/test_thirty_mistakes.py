"""Common mistakes: the message says what is wrong, where, and what to do, in three lines of 80 columns."""

import fcntl
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from consumer.kafka import groups, topics
from consumer.kafka.sink import topic_letters
from consumer.kafka.source import range_source
from storage.lmdb.data_file import DATA_FILE
from tests.cli.command import FAST, Command, articles, run_process, write_lines
from tests.cli.every_command import IMPATIENT, NOWHERE, sentence_of

KAFKA = f"kafka://{NOWHERE}/articles"
HBASE = f"hbase://{NOWHERE}/feed"
RUN = ("run", "--source", "{folder}/feed")


class Mistake(NamedTuple):
    """A command line, its exit code, and what the message must name: what is wrong, where, what to do."""

    command: tuple[str, ...]
    code: int
    named: tuple[str, ...]


MISTAKES: dict[str, Mistake] = {
    "a command that there is not": Mistake(("rnu",), 2, ("rnu", "--help")),
    "an option that there is not": Mistake(("run", "--sorce", "x"), 2, ("--sorce", "--source", "--help")),
    "an option without its value": Mistake(("run", "--source"), 2, ("--source", "argument")),
    "a command without its file": Mistake(("query",), 2, ("FILE", "dupwatch query", "--help")),
    "a number that is none": Mistake((*RUN, "--workers", "two"), 2, ("--workers", "whole number", "--help")),
    "hundreds of files for one": Mistake(
        ("query", *(f"feed-{number}.jsonl" for number in range(300))), 2, ("feed-1.jsonl", "--help")
    ),
    "a setting that there is not": Mistake(
        (*RUN, "--set", "judge.similarity=0.9"), 2, ("judge.similarity", "judge.similarity_min", "dupwatch config show")
    ),
    "a setting with a bad value": Mistake((*RUN, "--set", "judge.similarity_min=2"), 2, ("judge.similarity_min", "2")),
    "a setting without a value": Mistake(
        (*RUN, "--set", "judge.max_distance"), 2, ("judge.max_distance", "NAME=VALUE")
    ),
    "a plan that there is not": Mistake((*RUN, "--set", "judge.plan=4x17"), 2, ("judge", "4x17")),
    "a scheme that there is not": Mistake(
        ("fingerprint", "{folder}/feed", "--scheme", "jieba/9"), 2, ("fingerprint", "jieba/9", "jieba-tfidf/1")
    ),
    "a configuration that is missing": Mistake(
        ("config", "check", "--config", "{folder}/no.toml"), 2, ("no.toml", "does not exist|No such file")
    ),
    "a configuration that is no TOML": Mistake(
        ("config", "check", "--config", "{folder}/feed"), 2, ("feed", "not valid TOML", "line 1")
    ),
    "a feed that is missing": Mistake(("run", "--source", "{folder}/fed"), 3, ("{folder}/fed", "No such file")),
    "a feed that is a folder": Mistake(("run", "--source", "{folder}"), 3, ("{folder}", "directory", "JSON lines")),
    "a feed of a scheme that there is not": Mistake(
        ("run", "--source", "s3://bucket/feed"), 2, ("source.url", "s3://bucket/feed", "kafka://HOST:PORT/TOPIC")
    ),
    "a sink in no folder": Mistake(
        (*RUN, "--sink", "{folder}/no/verdicts"),
        6,
        ("{folder}/no/verdicts", "No such file", "create the directory {folder}/no,"),
    ),
    "a sink that is in use": Mistake((*RUN, "--sink", "{folder}/busy"), 6, ("{folder}/busy", "another")),
    "a sink that was not made by a run": Mistake(
        (*RUN, "--sink", "{folder}/letter", "--store", "lmdb:{folder}/store"),
        6,
        ("{folder}/letter", "not empty", "name another file"),
    ),
    "a kind of store that there is not": Mistake(
        (*RUN, "--store", "redis://host"), 2, ("store.url", "redis://host", "lmdb:PATH")
    ),
    "a store that is missing": Mistake(
        ("store", "stats", "--store", "lmdb:{folder}/no"), 4, ("{folder}/no", "no store")
    ),
    "a store of other settings": Mistake(
        (*RUN, "--store", "lmdb:{folder}/store", "--set", "judge.max_distance=2"),
        4,
        ("max_distance is 3 in the store and 2 here", "name another store"),
    ),
    "a store of another scheme": Mistake(
        (*RUN, "--store", "lmdb:{folder}/store", "--set", "fingerprint.keywords_max=7"),
        4,
        ("keywords_max", "name another store"),
    ),
    "a store that is damaged": Mistake(
        ("store", "verify", "--store", "lmdb:{folder}/damaged"), 4, ("{folder}/damaged", "backup")
    ),
    "an article that is not there": Mistake(
        ("show", "a99", "--store", "lmdb:{folder}/store"), 2, ("a99", "{folder}/store")
    ),
    "labels that cannot be read": Mistake(
        ("evaluate", "{folder}/feed", "--pairs", "{folder}/letter"), 2, ("line 1", "JSON")
    ),
    "labels of other articles": Mistake(
        ("evaluate", "{folder}/feed", "--pairs", "{folder}/pairs"), 2, ("'x'", "line 1", "feed")
    ),
    "a time that is none": Mistake(
        ("dead-letters", "list", "--sink", KAFKA, "--since", "yesterday"),
        2,
        ("--since", "yesterday", "2026-11-21T09:00:00Z"),
    ),
    "a bound that is none": Mistake(
        ("replay", "--source", KAFKA, "--from", "noon", "--store", "lmdb:{folder}/new"),
        2,
        ("noon", "offset", "2026-11-21T09:00:00Z"),
    ),
    "a reason that there is not": Mistake(
        ("dead-letters", "list", "--sink", "{folder}/verdicts", "--reason", "bad"), 2, ("--reason bad",)
    ),
    "a pattern where topics have to be named": Mistake(
        ("topics", "init", "--source", f"kafka://{NOWHERE}/^art(", "--sink", KAFKA), 2, ("^art(", "kafka://HOST:PORT")
    ),
    "an interval that is too short": Mistake(("top", "--interval", "0"), 2, ("--interval", "0.1", "--help")),
    "brokers that nobody listens at, for topics": Mistake(
        ("topics", "init", "--sink", KAFKA), 6, (NOWHERE, "dupwatch doctor")
    ),
    "brokers that nobody listens at, for partitions": Mistake(
        ("poison", "list", "--source", KAFKA), 3, (NOWHERE, "dupwatch doctor")
    ),
    "brokers that nobody listens at, for a resume": Mistake(
        ("poison", "resume", "--source", KAFKA), 3, (NOWHERE, "dupwatch doctor")
    ),
    "brokers that nobody listens at, for letters": Mistake(
        ("dead-letters", "list", "--sink", KAFKA), 3, (NOWHERE, "dupwatch doctor")
    ),
    "brokers that nobody listens at, for a replay": Mistake(
        ("replay", "--source", KAFKA, "--from", "0", "--store", "lmdb:{folder}/new"), 3, (NOWHERE, "dupwatch doctor")
    ),
    "brokers that nobody listens at, for a migration": Mistake(
        ("migrate", "--from-group", "g", "--anew", "--source", KAFKA, "--store", "lmdb:{folder}/new", "--group", "h"),
        3,
        (NOWHERE, "dupwatch doctor"),
    ),
    "brokers that nobody listens at, for a feed": Mistake(
        ("produce", "{folder}/feed", "--to", KAFKA, "--wait", "0.2", "--rate", "1000"), 6, (NOWHERE, "--wait")
    ),
    "a gateway that nobody listens at": Mistake(
        ("store", "stats", "--store", HBASE, *IMPATIENT), 5, (HBASE, "refused")
    ),
    "no consumer to look at": Mistake(
        ("top", "--once", "--interval", "0.1", f"http://{NOWHERE}"), 3, ("no consumer answers", "http.listen")
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the mistakes need."""
    folder = tmp_path_factory.mktemp("mistakes")
    feed = write_lines(folder / "feed", articles(range(5)))
    ended = run_process(
        "run", "--source", feed, "--sink", folder / "verdicts", "--store", f"lmdb:{folder / 'store'}", *FAST
    )
    assert ended.code == 0, ended.err
    (folder / "letter").write_text("Dear Sir\n")
    (folder / "pairs").write_text(json.dumps(["x", "y", "duplicate"]) + "\n")
    data = Path(shutil.copytree(folder / "store", folder / "damaged")) / DATA_FILE
    data.write_bytes(data.read_bytes()[:4096])
    return folder


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told(
    dupwatch: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, name: str
) -> None:
    """The exit code is the documented one; no files are left behind and no result is written."""
    for module, limit in (
        (topics, "REQUEST_TIMEOUT_S"),
        (groups, "REQUEST_TIMEOUT_S"),
        (range_source, "_REQUEST_TIMEOUT_S"),
        (topic_letters, "_REQUEST_TIMEOUT_S"),
    ):
        monkeypatch.setattr(module, limit, 0.5)
    mistake = MISTAKES[name]
    if name == "a sink that is in use":
        request.getfixturevalue("busy")
    there = set(folder.rglob("*"))
    ended = dupwatch(*(argument.format(folder=folder) for argument in mistake.command))
    assert ended.code == mistake.code, ended
    sentence = sentence_of(ended._replace(err=ended.err.replace(str(folder), "FOLDER")))
    named = [name.format(folder="FOLDER") for name in mistake.named]
    assert [name for name in named if not any(either in sentence for either in name.split("|"))] == [], sentence
    if name != "no consumer to look at":
        assert ended.out == b""
    assert set(folder.rglob("*")) - there == set()


@pytest.fixture
def busy(folder: Path) -> Iterator[None]:
    """A sink that is locked, like that of a run."""
    with (folder / "busy").open("wb") as sink:
        fcntl.flock(sink, fcntl.LOCK_EX)
        yield


def test_there_are_thirty() -> None:
    """Or more, each with a different message."""
    assert len(MISTAKES) >= 30
