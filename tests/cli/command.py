"""Runs the command as users start it, and makes feeds for the tests."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.prefork import Forked

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample" / "feed.jsonl"
LABELS = ROOT / "sample" / "labels.jsonl"
SCHEMAS = ROOT / "docs" / "schemas"
DUPWATCH = Path(sys.executable).with_name("dupwatch")
TIMEOUT_S = 120
"""What usually takes a second or less may take this long on a machine that is busy with other tests."""
_PAUSE_S_MAX = 0.5
ONE_SECRET = ("--set", f"fingerprint.secret_file={ROOT / 'tests' / 'fixtures' / 'published.secret'}")
"""New stores are keyed with the published secret: similarities near the threshold are the same in every run."""
FAST = ("--set", "store.durability=process", *ONE_SECRET)
"""Nobody pulls the plug on a test."""
_WORDS = [f"{first}{last}" for first in ("har", "fer", "mar", "tol", "ven", "sil", "bor") for last in
          ("bour", "ket", "den", "wick", "ton", "ling", "mere", "gate", "field", "stone", "worth", "by")]  # fmt: skip


class Outcome(NamedTuple):
    """How a command ended, and its output."""

    code: int
    out: bytes
    err: str


Command = Callable[..., Outcome]


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without settings, and without variables that enable colours."""
    left_out = ("DUPWATCH_", "FORCE_COLOR", "TTY_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return inherited | {"COLUMNS": "200"} | more


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401  # as Popen takes them
    """Start the command as a process, in its own process group."""
    options.setdefault("env", environment())
    return Forked([DUPWATCH, *map(str, arguments)], **options)


def start_anew(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401  # as above
    """As ``start``, in a new interpreter, as its users start it."""
    options.setdefault("env", environment())
    return subprocess.Popen([DUPWATCH, *map(str, arguments)], start_new_session=True, **options)


def run_process(*arguments: str | Path, given: bytes = b"", **options: Any) -> Outcome:  # noqa: ANN401  # as above
    """Run the command as a process until it ends, with ``given`` on standard input."""
    process = start(*arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    out, err = process.communicate(given, timeout=TIMEOUT_S)
    return Outcome(process.returncode, out, err.decode())


def run_without(packages: Sequence[str], *arguments: str | Path) -> Outcome:
    """Run the command in a new interpreter, as where these packages are not installed.

    Within this process, modules would have to be imported again, and other tests would see halves of them.
    """
    hidden = f"import sys; sys.modules.update(dict.fromkeys({list(packages)})); from consumer.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", hidden, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=environment(),
        timeout=TIMEOUT_S,
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr.decode())


def json_lines(data: bytes) -> list[dict[str, Any]]:
    """Return the objects in JSON lines."""
    return [json.loads(line) for line in data.splitlines()]


def write_lines(path: Path, records: Iterable[object]) -> Path:
    """Write records as JSON lines, bytes unchanged, and return the path."""
    lines = [
        record if isinstance(record, bytes) else json.dumps(record, ensure_ascii=False).encode() for record in records
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def text(seed: int, words: int = 40) -> str:
    """Return a text that is not similar to the text of any other seed."""
    return " ".join(random.Random(seed).choices(_WORDS, k=words))


def articles(numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Return an article for each number; every fifth repeats the one before it."""
    return [{"id": f"a{number}", "body": text(number - (number % 5 == 4))} for number in numbers]


def wait_for(holds: Callable[[], bool], seconds: float = TIMEOUT_S, pause_s: float = 0.02) -> None:
    """Wait until the condition holds; fail if that takes too long.

    After a check that takes long, because it asks a server or reads a topic, the pause is ten times as long as the
    check, but at most half a second: the processes that are waited for need the processor more.
    """
    until = time.monotonic() + seconds
    while True:
        began_s = time.monotonic()
        if holds():
            return
        now_s = time.monotonic()
        assert now_s < until, "it took too long"
        time.sleep(max(pause_s, min(10 * (now_s - began_s), _PAUSE_S_MAX)))


def stop(
    process: "subprocess.Popen[bytes]", number: signal.Signals = signal.SIGTERM, seconds: float = TIMEOUT_S
) -> int:
    """Send a signal once the process handles it, and return the exit code.

    A signal that arrives while the process still starts ends it at once, with another exit code.
    """
    wait_for(lambda: process.poll() is not None or _handles(process.pid, number), seconds)
    process.send_signal(number)
    return process.wait(seconds)


def _handles(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal: SigCgt in proc(5)."""
    status = Path(f"/proc/{pid}/status").read_text()
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def line_count(path: Path) -> int:
    """Return the number of complete lines in a file, 0 if it does not exist."""
    return path.read_bytes().count(b"\n") if path.exists() else 0
