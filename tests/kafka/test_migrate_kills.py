"""``dupwatch migrate`` ends at random moments, again and again: the store is that of a fill that nobody disturbed."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from storage.records import Record, StoredVersion
from tests.cli.command import FAST, run_process, wait_for
from tests.hbase_server import MOVED, fresh_namespace
from tests.kafka.running import END_S, running
from tests.kafka.test_migrate import ENGINES, HOUR_MS, OLD, looked_into, migrate, migrating, send
from tests.kafka.topics import Topics, make_topics, wait_for_count

pytestmark = [pytest.mark.servers, pytest.mark.load, pytest.mark.timeout(1_800)]

ARTICLES: Final = 5_000
KILLS: Final = 30
LONGEST_S: Final = 2.0
KEYS_AT_ONCE: Final = 500
SIGNALS: Final = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# By the signal itself while Python starts or ends.
ENDS: Final = {0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGINT, 128 + signal.SIGTERM}

Content = tuple[dict[bytes, tuple[Record, bytes | None]], dict[bytes, frozenset[bytes]]]


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own."""
    return make_topics(kafka_address)


def content(url: str) -> Content:
    """The versions of a store with their verdicts, and the postings under each of their keys."""
    with looked_into(url) as store:
        versions = {
            entry.record.reference: (entry.record, entry.verdict)
            for entry in store.scan()
            if isinstance(entry, StoredVersion)
        }
        keys = sorted({key for record, _ in versions.values() for key in record.keys})
        postings: dict[bytes, frozenset[bytes]] = {}
        for begin in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[begin : begin + KEYS_AT_ONCE]
            for key, row in zip(some, store.look_up(some), strict=True):
                width = row.layout.posting_bytes
                places = range(0, len(row.packed), width)
                postings[key] = frozenset(bytes(row.packed[place : place + width]) for place in places)
                assert len(postings[key]) == len(places), f"a posting came twice under {key.hex()}"
    return versions, postings


class Ending:
    """Ends migrations of one old store; ``ended`` counts them by their exit codes."""

    def __init__(self, topics: Topics, old: str, folder: Path, seed: int) -> None:
        self._topics = topics
        self._old = old
        self._folder = folder
        self._chance = random.Random(seed)
        self.ended: Counter[int] = Counter()

    @property
    def kills(self) -> int:
        """How many did not end by themselves."""
        return self.ended.total() - self.ended[0]

    def once(self, new: str, group: tuple[str, ...]) -> bool:
        """Migrate for a while; return whether it has switched."""
        workers = self._chance.choice(((), (), ("--workers", "2")))
        with migrating(self._topics, self._old, new, self._folder, *group, *workers) as migration:
            wait_for(lambda: migration.process.poll() is not None or migration.says("Filling"), 60)
            until_s = time.monotonic() + self._chance.uniform(0, LONGEST_S)
            while time.monotonic() < until_s and migration.process.poll() is None:
                time.sleep(0.02)
            migration.process.send_signal(self._chance.choice(SIGNALS))
            code = migration.process.wait(END_S)
            self.ended[code] += 1
            said = migration.log.read_text()
            assert "Traceback" not in said
            assert code in ENDS, said
            return "Switched." in said


@pytest.mark.parametrize("engine", ENGINES)
def test_whenever_it_ends_the_store_is_the_same(
    request: pytest.FixtureRequest, topics: Topics, tmp_path: Path, engine: str
) -> None:
    """Thirty ends by three signals, with and without workers; after each switch a new store is filled."""

    def empty_store(number: int) -> str:
        if engine == "lmdb":
            return f"lmdb:{tmp_path / f'new-{number}'}"
        address: str = request.getfixturevalue("hbase_address")
        return f"hbase://{address}/{fresh_namespace(address, MOVED)}"

    old = f"lmdb:{tmp_path / 'old'}"
    send(topics, range(ARTICLES), int(time.time() * 1000) - HOUR_MS // 2)
    with running(topics, old, tmp_path, *OLD) as consumer:
        wait_for_count(topics, ["verdicts"], ARTICLES)
        assert consumer.stop() == 0
    calm = migrate(topics, old, url := empty_store(0), *FAST)
    assert calm.code == 0, calm.err
    expected = content(url)
    assert len(expected[0]) == ARTICLES
    seed = int(os.environ.get("TEST_LOAD_SEED") or random.randrange(1 << 30))
    print(f"TEST_LOAD_SEED={seed}")  # noqa: T201  # so that it can be repeated
    ending, number = Ending(topics, old, tmp_path, seed), 0
    while ending.kills < KILLS:
        number += 1
        url, group = empty_store(number), ("--group", f"{topics.prefix}-new-{number}")
        while not ending.once(url, group):
            pass
        again = migrate(topics, old, url, *group)
        assert again.code == 0, again.err
        assert content(url) == expected
        verified = run_process("store", "verify", "--dangling", "--store", url)
        assert verified.code == 0, verified.err
    print(f"{number} stores, ends by code: {dict(ending.ended)}")  # noqa: T201  # as above
