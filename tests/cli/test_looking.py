"""Commands that read a store, and what they print of an article."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from consumer.judge.events import kept_event
from consumer.store_tools.inspection import latest_version
from storage.lmdb import LmdbStore
from storage.records import StoredVersion, Version, id_hash, reference_of
from tests.cli.command import FAST, SAMPLE, SCHEMAS, Command, articles, json_lines, run_process, text, write_lines

EDITED = "zh-food-noodle.light_rewrite"
ORIGINAL = "zh-food-noodle"
EVIL_TITLE = "[bold]T[/bold] [/nope] :smile: \u202egnp\x1b]0;owned\x07"
EVIL_IDS = ("one\x1b[31m[red]", "two\x1b[2J[/red]\u2066")


@pytest.fixture
def sample(judged_sample: Path) -> tuple[str, str]:
    """The option that names the store of the judged sample."""
    return ("--store", f"lmdb:{judged_sample / 'store'}")


def test_show(dupwatch: Command, sample: tuple[str, str]) -> None:
    """A duplicate is shown with its original, the distance, the similarity and the shared keywords."""
    ended = dupwatch("show", EDITED, *sample)
    assert ended.code == 0
    shown = ended.out.decode()
    for expected in (
        EDITED,
        ORIGINAL,
        "duplicate",
        "duplicate of",
        "unique",
        "distance",
        "similarity 0.",
        "shared keywords:",
    ):
        assert expected in shown


def test_show_as_json(dupwatch: Command, sample: tuple[str, str]) -> None:
    """In JSON the chain is a list that ends at the kept article."""
    links = json.loads(dupwatch("show", EDITED, "--json", *sample).out)
    assert [link["id"] for link in links] == [EDITED, ORIGINAL]
    assert [link["verdict"]["outcome"] for link in links] == ["duplicate", "unique"]


@pytest.mark.parametrize("name", ["nobody", "x" * 400, "\udcff", ""])
def test_unknown_id(dupwatch: Command, sample: tuple[str, str], name: str) -> None:
    """An unknown or impossible id is reported in a sentence."""
    for command in (("show", name), ("explain", name, ORIGINAL)):
        ended = dupwatch(*command, *sample)
        assert ended.code == 2
        assert ended.err.startswith("dupwatch: ")
        assert ended.err.count("\n") == 1


def test_explain_two_ids(dupwatch: Command, sample: tuple[str, str]) -> None:
    """Two stored articles are explained condition by condition, with the difference of their texts."""
    ended = dupwatch("explain", EDITED, ORIGINAL, *sample)
    shown = ended.out.decode()
    assert ended.code == 0
    assert re.search(r"^\s*near\s*$", shown, re.MULTILINE)
    assert "✗" not in shown
    for expected in ("similar enough", "within the window", "shared keywords:", "[-", "{+"):
        assert expected in shown


def test_explain_files(dupwatch: Command, tmp_path: Path) -> None:
    """Two files, an article in JSON and a plain text, are compared without a store."""
    body = text(1)
    article = write_lines(tmp_path / "a.json", [{"id": "a", "body": body}])
    (tmp_path / "same.txt").write_text(body.upper())
    (tmp_path / "other.txt").write_text(text(2))
    (near,) = json_lines(dupwatch("explain", article, tmp_path / "same.txt", "--json").out)
    assert (near["near"], near["distance"], near["similarity"]) == (True, 0, 1)
    (far,) = json_lines(dupwatch("explain", article, tmp_path / "other.txt", "--json").out)
    assert (far["near"], far["verified"]) == (False, False)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_explain_shows_no_difference_in_a_files_last_line_end(dupwatch: Command, tmp_path: Path, end: str) -> None:
    """It belongs to the file, not to the text."""
    article = write_lines(tmp_path / "a.json", [{"id": "a", "body": text(1)}])
    (tmp_path / "same.txt").write_text(text(1) + end, newline="")
    shown = dupwatch("explain", article, tmp_path / "same.txt").out.decode()
    assert "…" in shown
    assert "[-" not in shown
    assert "{+" not in shown


def test_explain_file_and_id(dupwatch: Command, tmp_path: Path, sample: tuple[str, str]) -> None:
    """A file is compared with a stored article, with the settings of the store."""
    (tmp_path / "other.txt").write_text(text(2))
    ended = dupwatch("explain", tmp_path / "other.txt", ORIGINAL, *sample)
    assert ended.code == 0
    assert "not near" in ended.out.decode()


def test_explain_a_copy_in_a_file(dupwatch: Command, tmp_path: Path, sample: tuple[str, str]) -> None:
    """A file that repeats a stored article is near it: it arrives now, as in a query."""
    original = next(article for article in json_lines(SAMPLE.read_bytes()) if article["id"] == ORIGINAL)
    copy = write_lines(tmp_path / "copy.json", [{**original, "id": "copy"}])
    (found,) = json_lines(dupwatch("explain", copy, ORIGINAL, "--json", *sample).out)
    assert (found["near"], found["in_window"]) == (True, True)


def test_query_of_a_retraction_is_an_error_of_that_line(
    dupwatch: Command, tmp_path: Path, sample: tuple[str, str]
) -> None:
    """A retraction has no text to compare, so the line gets an error."""
    ended = dupwatch("query", write_lines(tmp_path / "asked.jsonl", [{"id": "a", "body": None}]), *sample)
    assert [line["error"] for line in json_lines(ended.out)] == ["retraction"]


def test_explain_id_without_store(dupwatch: Command) -> None:
    """An id needs a store, and the message explains how to name one."""
    ended = dupwatch("explain", EDITED, ORIGINAL)
    assert ended.code == 2
    assert "--store lmdb:PATH" in ended.err


@pytest.mark.parametrize("by_pipe", [False, True])
def test_query_stores_nothing(
    dupwatch: Command,
    tmp_path: Path,
    sample: tuple[str, str],
    by_pipe: bool,  # noqa: FBT001
) -> None:
    """Each article is answered with its original, an invalid line with its error; the store is not changed."""
    before = dupwatch("store", "stats", "--json", *sample).out
    original = next(article for article in json_lines(SAMPLE.read_bytes()) if article["id"] == ORIGINAL)
    feed = write_lines(
        tmp_path / "asked.jsonl",
        [{"id": "asked", "body": original["body"]}, b"{", {"id": "new", "body": text(5)}],
    )
    given = feed.read_bytes()
    ended = run_process("query", "-", *sample, given=given) if by_pipe else dupwatch("query", feed, *sample)
    assert ended.code == 0
    known, bad, new = json_lines(ended.out)
    assert (known["matches"][0]["id"], known["matches"][0]["similarity"]) == (ORIGINAL, 1)
    assert (bad["line"], bad["error"]) == (2, "invalid_json")
    assert new == {"id": "new", "text_kind": "long", "matches": [], "truncated": False, "outcome": "unique"}
    assert dupwatch("store", "stats", "--json", *sample).out == before


def test_store_stats(dupwatch: Command, sample: tuple[str, str]) -> None:
    """Text and JSON have the same counts."""
    (found,) = json_lines(dupwatch("store", "stats", "--json", *sample).out)
    assert found["versions"] == found["verdicts"] == 225
    assert found["settings"]["max_distance"] == 3
    assert re.search(r"versions\s+225\b", dupwatch("store", "stats", *sample).out.decode())


def test_verify_good_store(dupwatch: Command, sample: tuple[str, str]) -> None:
    """A store that a run wrote passes."""
    (found,) = json_lines(dupwatch("store", "verify", "--json", *sample).out)
    assert (found["wrong"], found["pending"], found["versions"]) == ([], 0, 225)
    ended = dupwatch("store", "verify", *sample)
    assert ended.code == 0
    assert re.search(r"wrong\s+0\b", ended.out.decode())


def lose_posting(store: LmdbStore) -> None:
    """Delete the postings of a kept article."""
    store.remove([_stored(store, "a0").record])


def keep_both(store: LmdbStore) -> None:
    """Mark an article as kept although it is near a kept one."""
    _plant(store, "planted", None)


def make_circle(store: LmdbStore) -> None:
    """Make an article a duplicate of itself."""
    _plant(store, "planted", "planted")


def _stored(store: LmdbStore, name: str) -> StoredVersion:
    found = latest_version(store.history(id_hash(name)))
    assert found is not None
    return found


def _plant(store: LmdbStore, name: str, repeats: str | None) -> None:
    """Store a copy of ``a0`` as kept, or as a duplicate of the named article."""
    original = _stored(store, "a0").record

    record = msgspec.structs.replace(
        original, reference=reference_of(name, b"planted"), id=name, time_ms=original.time_ms + 1
    )
    verdict = kept_event(record, truncated=False, decided_ms=record.time_ms).verdict
    if repeats is not None:
        verdict = msgspec.structs.replace(
            verdict, outcome="duplicate", duplicate_of=repeats, duplicate_of_version=record.reference[16:].hex()
        )
    store.create([Version(record, None)])
    if repeats is None:
        store.add([record])
    assert store.settle([(record.reference, msgspec.json.encode(verdict))]) == [True]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lose_posting, r"'a0' is kept and lacks 8 of its 8 postings"),
        (keep_both, r"'a0' and 'planted' are near each other and both kept"),
        (make_circle, r"the chain of duplicates from 'planted' is a circle"),
    ],
)
def test_verify_damaged_store(
    dupwatch: Command, tmp_path: Path, damage: Callable[[LmdbStore], None], sentence: str
) -> None:
    """Each inconsistency is one sentence, and the exit code is 5."""
    feed = write_lines(tmp_path / "feed.jsonl", articles(range(5)))
    option = ("--store", f"lmdb:{tmp_path / 'store'}")
    assert dupwatch("run", "--source", feed, *option, *FAST).code == 0
    store = LmdbStore.open(tmp_path / "store")
    damage(store)
    store.close()
    ended = dupwatch("store", "verify", "--json", *option)
    assert ended.code == 5
    (found,) = json_lines(ended.out)
    assert [problem for problem in found["wrong"] if re.fullmatch(sentence, problem)]
    plain = dupwatch("store", "verify", *option)
    assert plain.code == 5
    assert re.search(sentence, plain.out.decode())


def controls(shown: str) -> list[str]:
    """Return the characters that could control a terminal, except line ends."""
    return [char for char in shown if char != "\n" and unicodedata.category(char) in {"Cc", "Cf"}]


def test_nothing_of_an_article_steers_the_terminal(dupwatch: Command, tmp_path: Path) -> None:
    """Escapes, bidi overrides and markup in ids, titles, sources and bodies are shown, not executed."""
    body = f"[red] {text(1)} \x1b[31m \u202e [/x] "
    records: list[dict[str, Any]] = [
        {"id": name, "title": EVIL_TITLE, "source": "[red]s", "url": "[/u]\x9b2J", "lang": "\x1b", "body": body + name}
        for name in EVIL_IDS
    ]
    feed = write_lines(tmp_path / "feed[red].jsonl", records)
    store = ("--store", f"lmdb:{tmp_path / 'st[red]ore'}")
    ended = dupwatch("run", "--source", feed, "--sink", tmp_path / "out[red].jsonl", *store, "--show", *FAST)
    shown = [ended.err]
    commands = (("show", EVIL_IDS[1]), ("explain", *EVIL_IDS), ("store", "stats"), ("store", "verify"))
    for command in commands:
        looked = dupwatch(*command, *store)
        assert looked.code == 0, looked.err
        shown.append(looked.out.decode())
    damaged = LmdbStore.open(tmp_path / "st[red]ore")
    damaged.remove([_stored(damaged, EVIL_IDS[0]).record])
    damaged.close()
    shown.append(dupwatch("store", "verify", *store).out.decode())
    assert [controls(output) for output in shown] == [[] for _ in shown]
    for output in (shown[0], shown[1]):
        assert "[bold]T[/bold] [/nope] :smile: \ufffdgnp" in output
        assert "two\ufffd[2J[/red]" in output
    assert "out[red].jsonl" in shown[0]
    assert "[red]s" in shown[1]
    assert "st[red]ore" in shown[3]
    assert "[31m[red]" in shown[5]


def test_export(dupwatch: Command, judged_sample: Path, sample: tuple[str, str]) -> None:
    """Every version and tombstone is a valid line, with the verdict as sent and the original text."""
    lines = json_lines(dupwatch("store", "export", *sample).out)
    schema = json.loads((SCHEMAS / "export.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for line in lines:
        validator.validate(line)
    sent = json_lines((judged_sample / "verdicts.jsonl").read_bytes())
    assert Counter(json.dumps(line["verdict"]) for line in lines) == Counter(
        {json.dumps(verdict): 1 for verdict in sent}
    )
    texts = {(line["id"], line["body"]) for line in json_lines(SAMPLE.read_bytes()) if line.get("body") is not None}
    assert {(line["id"], line["body"]) for line in lines if line["kind"] == "version"} == texts
    bare = json_lines(dupwatch("store", "export", "--no-bodies", *sample).out)
    assert {line.get("body") for line in bare} == {None}
    assert [line["id"] for line in bare] == [line["id"] for line in lines]


def test_dangling_flags(dupwatch: Command, tmp_path: Path) -> None:
    """Flags that lead to a long pending article are listed as they were sent, also over several links."""
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "a0", "body": text(1, 60)}])
    url = f"lmdb:{tmp_path / 'store'}"
    assert dupwatch("run", "--source", feed, "--store", url).code == 0
    store = LmdbStore.open(tmp_path / "store")
    lost = _stored(store, "a0").record
    lost = msgspec.structs.replace(lost, reference=reference_of("lost", b"planted"), id="lost")
    store.create([Version(lost, None)])
    _plant(store, "flagged", "lost")
    _plant(store, "further", "flagged")
    store.close()
    ended = dupwatch("store", "verify", "--dangling", "--pending-s", "0", "--store", url)
    assert ended.code == 5
    assert sorted(line["id"] for line in json_lines(ended.out)) == ["flagged", "further"]
    recent = dupwatch("store", "verify", "--dangling", "--store", url)
    assert (recent.code, recent.out) == (0, b"")
    assert recent.err == "No dangling flags: no flag names an article that has been pending for more than 3600 s.\n"
