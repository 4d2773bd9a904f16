"""``store pack`` and ``store unpack`` end at random moments, beside each other and a consumer that is killed too.

In the end every verdict is that of a run that nobody disturbed, and every live posting is there once.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from storage.records import Record, StoredVersion
from tests.cli.command import FAST, run_process, start, text
from tests.hbase import packed_rows

pytestmark = [pytest.mark.servers, pytest.mark.load, pytest.mark.timeout(1_800)]

KILLS: Final = 30
BEFORE: Final = 1_500
"""Articles that are stored when it begins."""
ARTICLES: Final = 4_000
BUCKET_S: Final = 1
LONGEST_S: Final = 4.0
"""Much longer than Python takes to start."""
END_S: Final = 600
SIGNALS: Final = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# By the signal itself while Python starts or ends.
ENDS: Final = {0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGINT, 128 + signal.SIGTERM}
COMMANDS: Final = {
    "pack": ("store", "pack", "--bucket-s", str(BUCKET_S), "--row-postings-min", "1"),
    "unpack": ("store", "unpack"),
}


def write_feed(path: Path, numbers: Iterable[int]) -> Path:
    """Write articles: of five the second repeats the first, and of seven one an article that came long before."""
    with path.open("w") as file:
        for number in numbers:
            repeats = number - 500 - number % 5 if number % 7 == 6 and number > 500 else number - (number % 5 == 1)
            file.write(json.dumps({"id": f"a{number}", "body": text(repeats)}) + "\n")
    return path


def run_command(feed: Path, sink: Path, store: str) -> tuple[str, ...]:
    """The arguments of a consumer."""
    return ("run", "--source", str(feed), "--sink", str(sink), "--store", store, "--emit", "all")


def verdicts(*sinks: Path) -> dict[str, tuple[object, ...]]:
    """What was said of each article, without times."""
    events = [json.loads(line) for sink in sinks for line in sink.read_text().splitlines()]
    return {
        event["id"]: (event["outcome"], event["duplicate_of"], event["similarity"], event["truncated"])
        for event in events
    }


def kept(url: str) -> list[Record]:
    """The records of articles that are unique."""
    store = packed_rows.opened(url)
    stored = [entry for entry in store.scan() if isinstance(entry, StoredVersion)]
    found = [entry.record for entry in stored if b'"unique"' in (entry.verdict or b"")]
    store.close()
    return found


def check_found(url: str, live: list[Record]) -> None:
    """Every posting of these is found, once; removed ones that were packed may be there as well."""
    wanted = packed_rows.wanted(live)
    store = packed_rows.opened(url)
    there = packed_rows.found(store, sorted(wanted))
    store.close()
    assert {key: postings - there[key] for key, postings in wanted.items() if postings - there[key]} == {}


class Disturbance:
    """Commands and a consumer that are ended at random moments; ``ended`` counts how."""

    def __init__(self, url: str, folder: Path, chance: random.Random) -> None:
        self._url = url
        self._folder = folder
        self._chance = chance
        self._number = 0
        self.ended: Counter[tuple[str, int]] = Counter()

    def pack(self) -> int:
        """Start one or two commands, and end them; return how many did not end by themselves."""
        names = self._chance.choices(("pack", "pack", "unpack"), k=self._chance.choice((1, 1, 2)))
        running = [(name, *self.started(*COMMANDS[name], "--store", self._url)) for name in names]
        return sum(self._end(name, process, log) for name, process, log in running)

    def started(self, *command: str) -> tuple["subprocess.Popen[bytes]", Path]:
        """Start a command; what it prints is in the file."""
        self._number += 1
        log = self._folder / f"{self._number}.txt"
        with log.open("wb") as file:
            return start(*command, stdout=file, stderr=file), log

    def _end(self, name: str, process: "subprocess.Popen[bytes]", log: Path) -> bool:
        try:
            process.wait(self._chance.uniform(0.8, LONGEST_S))
        except subprocess.TimeoutExpired:
            process.send_signal(self._chance.choice(SIGNALS))
        code = process.wait(END_S)
        self.ended[name, code] += 1
        assert code in ENDS, log.read_text()
        assert "Traceback" not in log.read_text()
        return code != 0


def test_nothing_is_lost_whenever_it_ends(hbase_address: str, hbase_namespace: str, tmp_path: Path) -> None:
    """Thirty ends by three signals, some while two commands run, beside a consumer that is killed as well."""
    url = f"hbase://{hbase_address}/{hbase_namespace}"
    everything = write_feed(tmp_path / "all.jsonl", range(ARTICLES))
    calm = run_process(*run_command(everything, tmp_path / "calm", f"lmdb:{tmp_path / 'calm.store'}"), *FAST)
    assert calm.code == 0, calm.err
    begun = run_process(*run_command(write_feed(tmp_path / "1.jsonl", range(BEFORE)), tmp_path / "first", url))
    assert begun.code == 0, begun.err
    rest = run_command(write_feed(tmp_path / "2.jsonl", range(BEFORE, ARTICLES)), tmp_path / "second", url)
    seed = int(os.environ.get("TEST_LOAD_SEED") or random.randrange(1 << 30))
    print(f"TEST_LOAD_SEED={seed}")  # noqa: T201  # so that it can be repeated
    disturbance = Disturbance(url, tmp_path, random.Random(seed))
    killed = 0
    while killed < KILLS:
        consumer, _ = disturbance.started(*rest)
        killed += disturbance.pack()
        consumer.kill()
        consumer.wait(END_S)
    ended = run_process(*rest)
    assert ended.code == 0, ended.err
    assert verdicts(tmp_path / "first", tmp_path / "second") == verdicts(tmp_path / "calm")
    live = kept(url)
    for name in ("pack", "pack", "unpack"):
        time.sleep(2.2 * BUCKET_S)
        ended = run_process(*COMMANDS[name], "--store", url)
        assert ended.code == 0, ended.err
        check_found(url, live)
    verified = run_process("store", "verify", "--dangling", "--store", url)
    assert verified.code == 0, verified.err
    print(f"{killed} ends: {dict(disturbance.ended)}")  # noqa: T201  # as above
