"""``dupwatch release`` reverses a flag."""

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest

from consumer.model.verdict import REASON_CHARS_MAX, RELEASED_BY_CHARS_MAX
from tests.cli.command import (
    FAST,
    SCHEMAS,
    TIMEOUT_S,
    Command,
    articles,
    json_lines,
    run_process,
    start,
    wait_for,
    write_lines,
)

FLAG, ORIGINAL = "a4", "a3"
VERDICT = json.loads((SCHEMAS / "verdict.schema.json").read_text())


@pytest.fixture
def store(dupwatch: Command, tmp_path: Path) -> tuple[str, str]:
    """The option that names a store of five articles, the last of which was flagged."""
    feed = write_lines(tmp_path / "feed.jsonl", articles(range(5)))
    option = ("--store", f"lmdb:{tmp_path / 'store'}")
    assert dupwatch("run", "--source", feed, "--sink", tmp_path / "out.jsonl", *option, *FAST).code == 0
    return option


def shown(dupwatch: Command, store: tuple[str, str], name: str = FLAG) -> list[dict[str, object]]:
    """Return the verdicts of an article and of its original."""
    return [link["verdict"] for link in json.loads(dupwatch("show", name, "--json", *store).out)]


def test_release(dupwatch: Command, store: tuple[str, str]) -> None:
    """It shows the flag and its consequences, then the new verdict, which every command shows from then on."""
    flag = shown(dupwatch, store)[0]
    ended = dupwatch("release", FLAG, "--yes", "--by", "Kim", "--reason", "another ferry", *store)
    assert (ended.code, ended.err) == (0, "")
    output = ended.out.decode()
    for expected in (
        "duplicate of",
        "distance 0 bits",
        "A release makes a4 unique",
        "after the release",
        "released from",
        "Kim",
    ):
        assert expected in output
    (verdict,) = shown(dupwatch, store)
    assert verdict["outcome"] == "unique"
    assert verdict["released"] == {
        "duplicate_of": ORIGINAL,
        "duplicate_of_version": flag["duplicate_of_version"],
        "flagged_at": flag["decided_at"],
        "by": "Kim",
        "reason": "another ferry",
    }
    table = dupwatch("show", FLAG, *store).out.decode()
    assert re.search(rf"released from\s+a3, flagged {flag['decided_at']}", table)
    assert re.search(r"reason\s+another ferry", table)
    assert dupwatch("store", "verify", *store).code == 0
    (found,) = json_lines(dupwatch("store", "stats", "--json", *store).out)
    assert (found["versions"], found["verdicts"]) == (5, 5)


def test_release_as_json(dupwatch: Command, store: tuple[str, str]) -> None:
    """The output is the event alone; a second release returns the same one, whatever its reason."""
    first = dupwatch("release", FLAG, "--yes", "--json", "--by", "Kim", *store)
    (event,) = json_lines(first.out)
    jsonschema.validate(event, VERDICT)
    assert (event["id"], event["outcome"], event["released"]["by"]) == (FLAG, "unique", "Kim")
    again = dupwatch("release", FLAG, "--yes", "--json", "--by", "Lee", *store)
    assert (again.code, again.out) == (0, first.out)
    assert "Already released" in dupwatch("release", FLAG, "--yes", *store).out.decode()


def test_the_pair_is_not_near_any_more_and_copies_are_flagged(
    dupwatch: Command, store: tuple[str, str], tmp_path: Path
) -> None:
    """``explain`` says so for both articles; a later copy repeats one of the two."""
    dupwatch("release", FLAG, "--yes", *store)
    for pair in ((FLAG, ORIGINAL), (ORIGINAL, FLAG)):
        (found,) = json_lines(dupwatch("explain", *pair, "--json", *store).out)
        assert (found["near"], found["not_released"], found["verified"]) == (False, False, True)
    assert re.search(r"✗\s+pair not released", dupwatch("explain", FLAG, ORIGINAL, *store).out.decode())
    body = articles(range(5))[-1]["body"]
    feed = write_lines(tmp_path / "more.jsonl", [{"id": "copy", "body": body}])
    ended = dupwatch("run", "--source", feed, "--sink", tmp_path / "more.out.jsonl", *store, *FAST)
    assert ended.code == 0
    (copy,) = json_lines((tmp_path / "more.out.jsonl").read_bytes())
    assert copy["outcome"] == "duplicate"
    assert {match["id"] for match in copy["matches"]} == {FLAG, ORIGINAL}
    assert dupwatch("store", "verify", *store).code == 0


def test_the_export_has_releases(dupwatch: Command, store: tuple[str, str]) -> None:
    """It has the event in force, and the version from which the article was released."""
    dupwatch("release", FLAG, "--yes", *store)
    lines = {line["id"]: line for line in json_lines(dupwatch("store", "export", *store).out)}
    schema = json.loads((SCHEMAS / "export.schema.json").read_text())
    for line in lines.values():
        jsonschema.validate(line, schema)
    released = lines.pop(FLAG)
    assert released["released_from"][32:] == lines[ORIGINAL]["version"]
    assert released["verdict"]["released"]["duplicate_of"] == ORIGINAL
    assert {line["released_from"] for line in lines.values()} == {None}


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_a_dry_run_changes_nothing(dupwatch: Command, store: tuple[str, str], json_too: tuple[str, ...]) -> None:
    """It prints what would be done, in JSON the event that would be written."""
    ended = dupwatch("release", FLAG, "--dry-run", *json_too, *store)
    assert ended.code == 0
    if json_too:
        assert json_lines(ended.out)[0]["outcome"] == "unique"
    else:
        assert "nothing was changed" in ended.out.decode()
    assert [verdict["outcome"] for verdict in shown(dupwatch, store)] == ["duplicate", "unique"]


def test_nobody_is_asked_where_nobody_is(dupwatch: Command, store: tuple[str, str]) -> None:
    """Without a terminal it requires --yes or --dry-run, and changes nothing."""
    for arguments in ((), ("--json",)):
        ended = run_process("release", FLAG, *arguments, *store)
        assert ended.code == 2
        assert "--yes" in ended.err
        # Not a word of what it has not done.
        assert ended.out == b""
    assert len(shown(dupwatch, store)) == 2


@pytest.mark.parametrize(("answer", "links"), [(b"y\n", 1), (b"n\n", 2)])
def test_a_person_is_asked(dupwatch: Command, store: tuple[str, str], answer: bytes, links: int) -> None:
    """At a terminal; "no" cancels."""
    ours, theirs = pty.openpty()
    process = start("release", FLAG, *store, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.write(ours, answer)
    out, err = process.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0
    assert b"duplicate of" in out
    assert b"Release it?" in err
    assert len(shown(dupwatch, store)) == links


def _is_asleep(process_id: int) -> bool:
    """Return whether the process waits for something (proc_pid_stat(5))."""
    state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S"


@pytest.mark.parametrize("how", ["Ctrl-C", "Ctrl-D"])
def test_a_person_who_ends_it_at_the_question(dupwatch: Command, store: tuple[str, str], how: str) -> None:
    """This counts as a signal, and nothing is changed."""
    ours, theirs = pty.openpty()
    process = start("release", FLAG, *store, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    asked = b""
    while b"Release it?" not in asked:
        part = os.read(process.stderr.fileno(), 1000)
        assert part, asked
        asked += part
    if how == "Ctrl-C":
        # A signal between Python's last check for signals and its read is noticed only after the read.
        wait_for(lambda: _is_asleep(process.pid))
        process.send_signal(signal.SIGINT)
    else:
        os.write(ours, b"\x04")
    _, err = process.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 130
    assert err.endswith(b"\nNothing was changed.\n")
    assert len(shown(dupwatch, store)) == 2


def test_a_sink_that_gets_no_event_is_named(dupwatch: Command, store: tuple[str, str], tmp_path: Path) -> None:
    """Releases are sent to topics: a file given as the sink is not written, and the command says so."""
    sink = tmp_path / "events.jsonl"
    ended = dupwatch("release", FLAG, "--yes", "--sink", sink, *store)
    assert ended.code == 0
    assert f"No event is sent to {sink}" in ended.err
    assert not sink.exists()


def test_what_cannot_be_released(dupwatch: Command, store: tuple[str, str], tmp_path: Path) -> None:
    """A sentence says why; nothing is changed and no store is created."""
    refusals = {
        (ORIGINAL, *store): (2, "is unique: only a flag can be undone"),
        ("nobody", *store): (2, "'nobody' is not in the store"),
        ("\udcff", *store): (2, "invalid id"),
        (FLAG, "--version", "00" * 16, *store): (2, "is not in the store"),
        (FLAG, "--version", "zz", *store): (2, "is not a version"),
        (FLAG, "--by", "x" * (RELEASED_BY_CHARS_MAX + 1), *store): (2, "use at most 200"),
        (FLAG, "--reason", "x" * (REASON_CHARS_MAX + 1), *store): (2, "use at most 2000"),
        (FLAG, "--reason", "\udcff", *store): (2, "is not UTF-8"),
        (FLAG, "--store", "memory:"): (2, "a store in memory"),
        (FLAG, "--store", f"lmdb:{tmp_path / 'none'}"): (4, "There is no store"),
    }
    for arguments, (code, sentence) in refusals.items():
        ended = dupwatch("release", *arguments, "--yes")
        assert (ended.code, ended.err.count("\n")) == (code, 1)
        assert sentence in ended.err
    assert not (tmp_path / "none").exists()
    assert len(shown(dupwatch, store)) == 2


def test_another_than_the_last_version_is_named(dupwatch: Command, store: tuple[str, str], tmp_path: Path) -> None:
    """Without --version the last one is meant, which was not flagged."""
    version = str(shown(dupwatch, store)[0]["version"])
    feed = write_lines(tmp_path / "more.jsonl", [{"id": FLAG, "body": "Something else altogether, about a harbour."}])
    assert dupwatch("run", "--source", feed, "--sink", tmp_path / "more.out.jsonl", *store, *FAST).code == 0
    assert "is unique" in dupwatch("release", FLAG, "--yes", *store).err
    ended = dupwatch("release", FLAG, "--yes", "--json", "--version", version, *store)
    assert json_lines(ended.out)[0]["version"] == version


def test_nothing_that_a_person_said_steers_the_terminal(dupwatch: Command, store: tuple[str, str]) -> None:
    """Escapes and markup in a reason are shown, not executed."""
    dupwatch("release", FLAG, "--yes", "--by", "[red]\x1b[31m", "--reason", "\x1b]0;owned\x07", *store)
    table = dupwatch("show", FLAG, *store).out.decode()
    assert "\x1b" not in table
    assert "[red]\ufffd[31m" in table
