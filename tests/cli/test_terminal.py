"""No article, file name or option can control a terminal; programs get every character."""

import json
import os
import pty
import re
import select
import subprocess
import time
import unicodedata
from pathlib import Path
from typing import NamedTuple

import pytest

from consumer.files.letters import dead_letters_path
from tests.cli.command import FAST, ROOT, TIMEOUT_S, environment, json_lines, run_process, start, text, write_lines

EVIL = "e\x9b31mv\x1b]0;owned\x07i\u202el\u2066\u200e\U000e0041\x85\u2028\ue000\r\x7f"
"""CSI and the next line of C1, a title of the terminal, bidi, a tag, a line's end of Unicode's own, private use."""
BODY = text(1, 60)
STYLES = re.compile(r"\x1b\[\??[0-9;]*[A-Za-z]")
"""What rich writes: colours, and the cursor for a bar. No text of ours begins a sequence so."""
STEERING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Files(NamedTuple):
    """The files that the commands read."""

    folder: Path
    feed: Path
    store: str

    def given(self, *command: str) -> list[str]:
        """Return the command with its placeholders replaced."""
        return [part.format(folder=self.folder, feed=self.feed, store=self.store, evil=EVIL) for part in command]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A feed of hostile articles, judged into a store, with dead letters."""
    folder = tmp_path_factory.mktemp("terminal")
    fields = {"title": EVIL, "source": EVIL, "url": EVIL, "lang": EVIL}
    edited = BODY.replace(BODY.split()[30], f"elsewhere {EVIL}")
    records: list[object] = [
        {"id": f"{EVIL}{number}", "body": f"{body} {EVIL} shared", **fields}
        for number, body in ((1, BODY), (2, edited))
    ]
    feed = write_lines(folder / "feed.jsonl", [*records, {"id": EVIL, "body": 1, EVIL: EVIL}, EVIL.encode()])
    (folder / f"text-{EVIL}.txt").write_text(f"{BODY} {EVIL}")
    # JSON's strings are TOML's, but for one character.
    written = json.dumps(EVIL).replace("\\udb40\\udc41", "\\U000e0041").replace("\x7f", "\\u007f")
    (folder / "evil.toml").write_text(f'[kafka]\ngroup = {written}\n[rules.{written}]\nflag = "never"\n')
    (folder / "wrong.toml").write_text(f"[judge]\nplan = {written}\n[sink]\nemit = {written}\n")
    store = f"lmdb:{folder / 'store'}"
    ended = run_process("run", "--source", feed, "--sink", folder / "out.jsonl", "--store", store, *FAST)
    assert ended.code == 0, ended.err
    assert len(json_lines((folder / "out.jsonl").read_bytes())) == 1
    return Files(folder, feed, store)


def seen(*arguments: str) -> str:
    """Return everything that a command writes to a terminal on both streams."""
    master, slave = pty.openpty()
    try:
        process = start(*arguments, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=environment(TERM="xterm"))
        os.close(slave)
        slave = -1
        output, until_s = bytearray(), time.monotonic() + TIMEOUT_S
        while time.monotonic() < until_s:
            if not select.select([master], [], [], 0.2)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                part = os.read(master, 1 << 16)
            except OSError:
                # The other end is closed.
                break
            if not part:
                break
            output += part
        process.wait(TIMEOUT_S)
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)
    return output.decode()


def steering(output: str) -> list[str]:
    """Return what could control a terminal; a pty writes a line end as two characters."""
    plain = STYLES.sub("", output).replace("\r\n", "\n").replace("\r", "")
    return [char for char in plain if char not in "\n\t" and unicodedata.category(char) in STEERING]


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--source", "{feed}", "--show", "--emit", "all"),
        ("run", "--source", "{feed}", "--show", "--sink", "{folder}/again.jsonl"),
        ("show", "{evil}2", "--store", "{store}"),
        ("show", "{evil}2", "--store", "{store}", "--json"),
        ("explain", "{evil}1", "{evil}2", "--store", "{store}"),
        ("explain", "{evil}1", "{evil}2", "--store", "{store}", "--json"),
        ("query", "{feed}", "--store", "{store}"),
        ("release", "{evil}2", "--store", "{store}", "--dry-run"),
        ("release", "{evil}2", "--store", "{store}", "--dry-run", "--json"),
        ("dead-letters", "list", "--sink", "{folder}/out.jsonl"),
        ("dead-letters", "list", "--sink", "{folder}/out.jsonl", "--json"),
        ("dead-letters", "show", "1", "--sink", "{folder}/out.jsonl"),
        ("dead-letters", "show", "1", "--sink", "{folder}/out.jsonl", "--json"),
        ("store", "stats", "--store", "{store}"),
        ("store", "verify", "--store", "{store}", "--json"),
        ("store", "verify", "--store", "{store}", "--dangling"),
        ("store", "export", "--store", "{store}"),
        ("compare", "{folder}/text-{evil}.txt", "{feed}"),
        ("compare", "{folder}/text-{evil}.txt", "{feed}", "--json"),
        ("fingerprint", "{folder}/text-{evil}.txt"),
        ("fingerprint", "{folder}/text-{evil}.txt", "--json"),
        ("idf", "build", "{feed}", "-o", "-"),
        ("config", "show", "--config", "{folder}/evil.toml"),
        ("doctor", "--source", "{folder}/{evil}"),
        ("doctor", "--source", "{folder}/{evil}", "--json"),
        ("show", "{evil}", "--store", "{store}"),
        ("show", "{evil}", "--store", "lmdb:{folder}/{evil}"),
        ("config", "check", "--config", "{folder}/wrong.toml"),
        ("dead-letters", "show", "{evil}", "--sink", "{folder}/out.jsonl"),
        ("top", "--once", "{evil}"),
        ("produce", "{folder}/{evil}", "--to", "kafka://127.0.0.1:1/t"),
        ("backfill", "{feed}", "--store", "lmdb:{folder}/filled", "--state", "{folder}/state"),
        ("evaluate", "{feed}", "--pairs", "{folder}/{evil}"),
    ],
)
def test_nothing_steers_the_terminal(files: Files, command: tuple[str, ...]) -> None:
    """Neither results nor errors; JSON shows the original characters."""
    output = seen(*files.given(*command))
    assert output
    assert "Traceback" not in output
    assert steering(output) == [], output


def test_paths_are_not_coloured(files: Files) -> None:
    """A terminal shows what one can copy: rich would colour the numbers in a path, and what looks like a URL."""
    sink = files.folder / "2026-11" / "v3.0" / "out.jsonl"
    sink.parent.mkdir(parents=True)
    output = seen(*files.given("run", "--source", "{feed}", "--sink", str(sink), "--store", "memory:"))
    assert "Summary" in output
    # The terminal may break a path in two, but nothing else may stand in it.
    shown = output.replace("\r\n", "")
    assert str(sink) in shown
    assert str(dead_letters_path(sink)) in shown


def test_json_on_a_terminal_means_the_same(files: Files) -> None:
    """And in a pipe its bytes are unchanged."""
    command = files.given("show", "{evil}2", "--store", "{store}", "--json")
    piped = run_process(*command)
    assert json.loads(seen(*command)) == json.loads(piped.out)
    for char in ("\x9b", "\u202e", "\U000e0041"):
        assert char in piped.out.decode()


def test_every_command_writes_through_one_module() -> None:
    """Writing to the streams directly would bypass the escaping."""
    folder = ROOT / "consumer" / "cli"
    past = re.compile(r"sys\.(stdout|stderr)|\bConsole\(|typer\.echo|\bprint\(")
    found = {path.name for path in folder.glob("*.py") if past.search(_without_methods(path.read_text()))}
    # The two that guard, the one that tells errors, escaped, and the one that moves a prompt to standard error.
    assert found == {"results.py", "render.py", "main.py", "prompts.py"}


def _without_methods(source: str) -> str:
    return re.sub(r"\.print\(|def _?print\(", "", source)
