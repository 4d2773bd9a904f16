"""``dupwatch bank``, and runs that compare with banks."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tests.cli.command import (
    FAST,
    SCHEMAS,
    TIMEOUT_S,
    Command,
    json_lines,
    line_count,
    start,
    text,
    wait_for,
    write_lines,
)

Bank = Callable[..., object]
OFFER = text(1, 30)


@pytest.fixture
def banks(tmp_path: Path) -> Path:
    """Return where the file of banks is, or will be."""
    return tmp_path / "banks.jsonl"


@pytest.fixture
def made(dupwatch: Command, banks: Path) -> Path:
    """Return a file with a bank of each kind."""
    for arguments in (
        ("create", "spam", "--action", "deny", "--label", "casino"),
        ("add", "spam", "--text", OFFER, "--item", "offer", "--title", "An offer", "--by", "An Na"),
        ("create", "notices", "--action", "allow"),
        ("add", "notices", "--text", text(2), "--item", "closure"),
    ):
        ended = dupwatch("bank", *arguments, "--banks", banks)
        assert ended.code == 0, ended.err
    return banks


def feed(path: Path) -> Path:
    """Write a feed that repeats a part of an offer, and a notice."""
    return write_lines(
        path,
        [
            {"id": "post", "body": f"{text(3)} {OFFER} {text(4)}"},
            {"id": "notice", "body": text(2)},
            {"id": "notice again", "body": text(2)},
            {"id": "story", "body": text(5)},
            {"id": "copy", "body": text(5)},
        ],
    )


def test_a_run_reports_what_is_denied_and_keeps_what_is_allowed(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """Verdicts say which item it was; the default output has flags and what is denied."""
    store = ("--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    sink = tmp_path / "verdicts.jsonl"
    ended = dupwatch(
        "run", "--source", feed(tmp_path / "feed.jsonl"), "--sink", sink, *store, "--set", f"banks.url={made}",
        "--show",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    schema = json.loads((SCHEMAS / "verdict.schema.json").read_text())
    verdicts = {line["id"]: line for line in json_lines(sink.read_bytes())}
    for verdict in verdicts.values():
        jsonschema.validate(verdict, schema)
    assert set(verdicts) == {"post", "copy"}
    (mention,) = verdicts["post"]["banks"]
    assert (mention["bank"], mention["item"], mention["action"], mention["form"]) == ("spam", "offer", "deny", "part")
    assert "contains 100% of offer of the bank spam: denied" in ended.err
    assert "equals closure of the bank notices: allowed, never flagged" in ended.err
    (shown,) = json.loads(dupwatch("show", "notice again", "--json", *store).out)
    assert shown["verdict"]["outcome"] == "unique"
    assert shown["verdict"]["banks"][0]["item"] == "closure"


def test_a_query_says_what_a_bank_knows(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """With the banks of the configuration; without, an allowed text is a duplicate again."""
    store = ("--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    path = write_lines(tmp_path / "old.jsonl", [{"id": "old", "body": text(2)}])
    assert dupwatch("run", "--source", path, "--sink", tmp_path / "v.jsonl", *store).code == 0
    asked = write_lines(tmp_path / "new.jsonl", [{"id": "new", "body": text(2)}])
    (known,) = json_lines(dupwatch("query", asked, *store, "--set", f"banks.url={made}").out)
    assert (known["outcome"], known["banks"][0]["bank"]) == ("unique", "notices")
    (unknown,) = json_lines(dupwatch("query", asked, *store).out)
    assert (unknown["outcome"], "banks" in unknown) == ("duplicate", False)


def test_fingerprints_are_taken_from_the_cache(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """By the next process with the same store; another store has a cache of its own."""
    cache = tmp_path / "cache"

    def run(name: str, *settings: object) -> tuple[list[object], str]:
        source, sink = feed(tmp_path / f"{name}.jsonl"), tmp_path / f"{name}.verdicts"
        ended = dupwatch(
            "run", "--source", source, "--sink", sink, "--store", f"lmdb:{tmp_path / name}", *settings,
            "--set", f"banks.url={made}", "--set", f"banks.cache={cache}", "--set", "log.level=info",
        )  # fmt: skip
        assert ended.code == 0, ended.err
        return [line.get("banks") for line in json_lines(sink.read_bytes())], ended.err

    first, log = run("first", *FAST)
    assert "from the cache" not in log
    assert len(list(cache.iterdir())) == 1
    added = dupwatch("bank", "add", "spam", "--text", text(7), "--banks", made)
    assert added.code == 0, added.err
    second, log = run("second", *FAST)
    assert "2 from the cache, 1 to compute" in log
    third, log = run("third", "--set", "store.durability=process")
    assert "from the cache" not in log
    assert len(list(cache.iterdir())) == 2
    assert first == second == third
    assert first[0] is not None


def test_a_text_is_tried_with_the_cache(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """A bank of a million items takes two minutes without; a scan of an archive uses the same one."""
    cache = tmp_path / "cache"
    banks = ("--banks", made, "--set", f"banks.cache={cache}", "--set", "log.level=info")
    first, second = (dupwatch("bank", "test", "--text", text(1), *banks) for _ in range(2))
    assert ("from the cache" in first.err, "2 from the cache, 0 to compute" in second.err) == (False, True)
    assert first.out == second.out != b""
    scanned = dupwatch("bank", "scan", feed(tmp_path / "feed.jsonl"), "--bank", "spam", *banks)
    assert "1 from the cache, 0 to compute" in scanned.err
    assert len(list(cache.iterdir())) == 1


def test_a_change_counts_while_a_run_goes_on(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """Within two seconds; an invalid file changes nothing and is named in the log."""
    sink = tmp_path / "verdicts.jsonl"
    process = start(
        "run", "--source", "-", "--sink", sink, "--store", "memory:", "--emit", "all", *FAST,
        "--set", f"banks.url={made}", stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    sent = 0

    def matched(body: str) -> list[str]:
        nonlocal sent
        assert process.stdin is not None
        process.stdin.write(json.dumps({"id": f"a{sent}", "body": body}).encode() + b"\n")
        process.stdin.flush()
        sent += 1
        wait_for(lambda: line_count(sink) >= sent)
        last = json_lines(sink.read_bytes())[-1]
        return [mention["item"] for mention in last.get("banks", ())]

    assert matched(OFFER) == ["offer"]
    assert matched(text(6)) == []
    assert dupwatch("bank", "add", "spam", "--text", text(6), "--item", "new", "--banks", made).code == 0
    wait_for(lambda: matched(text(6)) == ["new"])
    with made.open("ab") as file:
        file.write(b"{}\n")
    assert process.stderr is not None
    while b"The banks cannot be read" not in (line := process.stderr.readline()):
        assert line
    assert b"line 6" in line
    assert matched(OFFER) == ["offer"]
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def test_a_run_does_not_begin_with_an_invalid_file(dupwatch: Command, banks: Path, tmp_path: Path) -> None:
    """Or without the file that the configuration names."""
    for content, complaint in ((None, "does not exist"), ("{}\n", "line 1")):
        if content is not None:
            banks.write_text(content)
        ended = dupwatch(
            "run", "--source", feed(tmp_path / "feed.jsonl"), "--sink", tmp_path / "v.jsonl", "--store", "memory:",
            "--set", f"banks.url={banks}",
        )  # fmt: skip
        assert ended.code == 2
        assert complaint in ended.err
        assert not (tmp_path / "v.jsonl").exists()


def test_lists(dupwatch: Command, made: Path) -> None:
    """Banks, items, and one item with its text."""
    listed = {line["bank"]: line for line in json_lines(dupwatch("bank", "list", "--json", "--banks", made).out)}
    assert (listed["spam"]["items"], listed["spam"]["similarity"], listed["spam"]["labels"]) == (1, 0.7, ["casino"])
    assert listed["notices"]["similarity"] == 0.9
    (item,) = json_lines(dupwatch("bank", "show", "spam", "offer", "--json", "--banks", made).out)
    assert (item["text"], item["title"], item["by"]) == (OFFER, "An offer", "An Na")
    for arguments in (("list",), ("show", "spam"), ("show", "spam", "offer")):
        assert b"spam" in dupwatch("bank", *arguments, "--banks", made).out or arguments == ("show", "spam")


def test_switches_and_removal(dupwatch: Command, made: Path) -> None:
    """Of an item and of a bank; removing a bank with items is asked about."""

    def finds() -> bool:
        return bool(dupwatch("bank", "test", "--text", OFFER, "--banks", made).out)

    assert finds()
    for name in (("spam", "offer"), ("spam",)):
        assert b"is disabled" in dupwatch("bank", "disable", *name, "--banks", made).out
        assert b"nothing was changed" in dupwatch("bank", "disable", *name, "--banks", made).out
        assert not finds()
        assert dupwatch("bank", "enable", *name, "--banks", made).code == 0
        assert finds()
    assert dupwatch("bank", "remove", "spam", "offer", "--banks", made).code == 0
    assert not finds()
    assert b"nothing was changed" in dupwatch("bank", "remove", "spam", "offer", "--banks", made).out
    refused = dupwatch("bank", "remove", "notices", "--banks", made)
    assert (refused.code, "standard input is not a terminal; add --yes" in refused.err) == (2, True)
    assert dupwatch("bank", "remove", "notices", "--yes", "--banks", made).code == 0
    assert [line["bank"] for line in json_lines(dupwatch("bank", "list", "--json", "--banks", made).out)] == ["spam"]


def test_a_bank_that_is_created_again_stays_disabled(dupwatch: Command, made: Path) -> None:
    """Whoever changes its note does not switch it on; what says nothing new is not written."""
    banks = ("--banks", made)
    assert dupwatch("bank", "disable", "spam", *banks).code == 0
    again = dupwatch("bank", "create", "spam", "--action", "deny", "--note", "lotteries", *banks)
    assert b"Changed the bank spam" in again.out
    assert b"It is disabled. To enable it: dupwatch bank enable spam --banks" in again.out
    (spam, _) = json_lines(dupwatch("bank", "list", "--json", *banks).out)
    assert (spam["enabled"], spam["note"], spam["labels"], spam["items"]) == (False, "lotteries", [], 1)
    before = made.read_bytes()
    same = dupwatch("bank", "create", "spam", "--action", "deny", "--note", "lotteries", *banks)
    assert b"nothing was changed" in same.out
    assert made.read_bytes() == before


def test_an_item_is_confirmed(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """Until that is withdrawn, or the text is another one; also by way of a file. The audit log says who did it."""
    log = ("--set", f"service.audit={tmp_path / 'audit.jsonl'}", "--banks", made)

    def is_confirmed() -> bool:
        (item,) = json_lines(dupwatch("bank", "show", "spam", "offer", "--json", "--banks", made).out)
        return bool(item.get("confirmed"))

    assert b"spam/offer is confirmed." in dupwatch("bank", "confirm", "spam", "offer", "--by", "An Na", *log).out
    assert b"was already confirmed" in dupwatch("bank", "confirm", "spam", "offer", *log).out
    assert b"enabled, confirmed" in dupwatch("bank", "show", "spam", "offer", "--banks", made).out
    for form, name in ((("--csv",), "spam.csv"), ((), "spam.jsonl")):
        exported = tmp_path / name
        exported.write_bytes(dupwatch("bank", "export", "spam", *form, "--banks", made).out)
        assert b"is no longer confirmed" in dupwatch("bank", "confirm", "spam", "offer", "--undo", *log).out
        assert b"was not confirmed; nothing" in dupwatch("bank", "confirm", "spam", "offer", "--undo", *log).out
        assert not is_confirmed()
        assert dupwatch("bank", "import", "spam", exported, "--banks", made).code == 0
        assert is_confirmed()
    assert dupwatch("bank", "add", "spam", "--text", OFFER, "--item", "offer", "--banks", made).code == 0
    assert is_confirmed()
    assert dupwatch("bank", "add", "spam", "--text", text(9), "--item", "offer", "--banks", made).code == 0
    assert not is_confirmed()
    recorded = [(line["action"], line["id"]) for line in json_lines((tmp_path / "audit.jsonl").read_bytes())]
    assert recorded == [(f"banks.{action}", "spam/offer") for action in ("confirm", "unconfirm", "unconfirm")]
    ended = dupwatch("bank", "confirm", "spam", "none", "--banks", made)
    assert (ended.code, "has no item 'none'" in ended.err) == (2, True)


def test_export_and_import(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """An export is a file of banks; CSV goes there and back; a file with a fault changes nothing."""
    exported = tmp_path / "copy.jsonl"
    exported.write_bytes(dupwatch("bank", "export", "--banks", made).out)
    assert dupwatch("bank", "test", "--text", OFFER, "--banks", exported).out
    csv = tmp_path / "spam.csv"
    csv.write_bytes(dupwatch("bank", "export", "spam", "--csv", "--banks", made).out)
    assert dupwatch("bank", "create", "more", "--action", "deny", "--banks", made).code == 0
    assert b"Added 1 item to" in dupwatch("bank", "import", "more", csv, "--banks", made).out
    found = json_lines(dupwatch("bank", "test", "--text", OFFER, "--banks", made).out)
    assert [mention["bank"] for mention in found] == ["more", "spam"]
    before = made.read_bytes()
    csv.write_text("text\nletters enough\nabc\n")
    ended = dupwatch("bank", "import", "more", csv, "--banks", made)
    assert ended.code == 2
    assert "line 3" in ended.err
    assert made.read_bytes() == before
    csv.write_text("text\nletters enough\nletters enough\n")
    assert b"Added 1 item to" in dupwatch("bank", "import", "more", csv, "--banks", made).out


def test_a_stored_article_is_copied(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """With its title; the item says which article it was."""
    store = ("--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    path = write_lines(tmp_path / "old.jsonl", [{"id": "old", "title": "Old", "body": text(8)}])
    assert dupwatch("run", "--source", path, "--sink", tmp_path / "v.jsonl", *store).code == 0
    ended = dupwatch("bank", "add", "spam", "--article", "old", "--item", "x", *store, "--banks", made)
    assert ended.code == 0, ended.err
    (item,) = json_lines(dupwatch("bank", "show", "spam", "x", "--json", "--banks", made).out)
    assert (item["text"], item["title"], item["article"]) == (text(8), "Old", "old")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("add", "spam", "--text", "abc"), "needs at least 6"),
        (("add", "other", "--text", "letters"), "dupwatch bank create other"),
        (("add", "spam"), "name one text"),
        (("add", "spam", "--text", "letters", "--similarity", "0.1"), "0.5"),
        (("add", "spam", "--text", "letters", "--until", "soon"), "--until"),
        (("add", "spam", "--text", "letters", "--item", "a b"), "the id of an item must have"),
        (("create", "Spam", "--action", "deny"), "the name of a bank must have"),
        (("create", "spam", "--action", "allow"), "has the action 'deny', which cannot be changed"),
        (("show", "other"), "the banks are notices, spam"),
        (("show", "spam", "other"), "has no item 'other'"),
        (("export", "--csv"), "name the bank"),
    ],
)
def test_what_cannot_be_done(dupwatch: Command, made: Path, arguments: tuple[str, ...], complaint: str) -> None:
    """A sentence says why, and nothing is changed."""
    before = made.read_bytes()
    ended = dupwatch("bank", *arguments, "--banks", made)
    assert ended.code == 2, ended.err
    assert complaint in ended.err
    assert made.read_bytes() == before


def test_an_item_that_finds_nothing_is_added_with_a_reason(dupwatch: Command, made: Path) -> None:
    """Because it has ended, or its bank is disabled."""
    ended = dupwatch("bank", "add", "spam", "--text", text(6), "--until", "2020-01-01", "--banks", made)
    assert (ended.code, ended.out.count(b"Articles are not compared with it: it ended at 2020-01-01")) == (0, 1)
    assert dupwatch("bank", "disable", "spam", "--banks", made).code == 0
    ended = dupwatch("bank", "add", "spam", "--text", text(7), "--banks", made)
    # A narrow terminal wraps the line.
    assert f"dupwatch bank enable spam --banks {made}" in " ".join(ended.out.decode().split())


@pytest.mark.parametrize(("answer", "code", "left"), [(b"y\n", 0, 1), (b"n\n", 1, 2), (b"\x04", 130, 2)])
def test_a_bank_is_removed_after_a_question(dupwatch: Command, made: Path, answer: bytes, code: int, left: int) -> None:
    """The end of the input, like Ctrl-C, changes nothing."""
    ours, theirs = pty.openpty()
    process = start(
        "bank", "remove", "spam", "--banks", made, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.write(ours, answer)
    out, err = process.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, b"Remove the bank spam and its only item?" in err) == (code, True), err
    assert b"[y/N]" not in out
    assert len(json_lines(dupwatch("bank", "list", "--json", "--banks", made).out)) == left


def test_an_item_that_is_replaced_is_said_to_be(dupwatch: Command, made: Path) -> None:
    """Its title is gone, since none was given."""
    ended = dupwatch("bank", "add", "spam", "--text", OFFER, "--item", "offer", "--banks", made)
    assert (ended.code, ended.out.count(b"Replaced offer in the bank spam")) == (0, 1)
    (item,) = json_lines(dupwatch("bank", "show", "spam", "offer", "--json", "--banks", made).out)
    assert "title" not in item


def test_a_text_that_repeats_nothing_is_said_to(dupwatch: Command, made: Path) -> None:
    """Where people read; the output stays empty."""
    ended = dupwatch("bank", "test", "--text", text(9), "--banks", made)
    assert (ended.code, ended.out) == (0, b"")
    assert "repeats none of 2 items" in ended.err


def test_a_file_that_is_not_there_is_made_by_a_command(dupwatch: Command, banks: Path) -> None:
    """The error names it."""
    ended = dupwatch("bank", "list", "--banks", banks)
    assert (ended.code, "dupwatch bank create creates it" in ended.err) == (2, True)


def test_a_file_has_to_be_named(dupwatch: Command) -> None:
    """By the option or by the configuration."""
    ended = dupwatch("bank", "list")
    assert ended.code == 2
    assert "--banks FILE" in ended.err


def test_changes_are_in_the_audit_log(dupwatch: Command, made: Path, tmp_path: Path) -> None:
    """Who, what and when."""
    log = tmp_path / "audit.jsonl"
    ended = dupwatch("bank", "disable", "spam", "offer", "--banks", made, "--set", f"service.audit={log}")
    assert ended.code == 0
    (line,) = json_lines(log.read_bytes())
    assert (line["action"], line["id"]) == ("banks.disable", "spam/offer")


def test_a_killed_writer_leaves_a_whole_file(made: Path) -> None:
    """Every item is there or not; the next change goes through."""
    for number in range(6):
        process = start(
            "bank", "add", "spam", "--text", text(100 + number), "--item", f"i{number}", "--banks", made,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.wait(0.02 * number)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    process = start("bank", "add", "spam", "--text", text(99), "--item", "last", "--banks", made)
    assert process.wait(TIMEOUT_S) == 0
    assert all(json.loads(line) for line in made.read_bytes().splitlines())
