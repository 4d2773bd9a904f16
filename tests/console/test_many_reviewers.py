"""Fifty people decide at the same time, each every two seconds: nothing is lost or made twice, and pages stay fast."""

import logging
import os
import random
import re
import threading
import time
from http.client import HTTPConnection
from math import ceil
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from consumer.reviews import people, sessions
from consumer.reviews.database import Connection, identity
from tests.cli.command import text, wait_for
from tests.console.consoles import Place, Running, consoling, postgres_place, sqlite_place
from tests.console.test_kills import DECISIONS, Decision, kept
from tests.kafka.running import running
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, make_topics, send, wait_for_count

pytestmark = pytest.mark.servers

log = logging.getLogger(__name__)

LOAD_S: Final = float(os.environ.get("TEST_LOAD_S") or 600)
PEOPLE: Final = 50
EVERY_S: Final = 2.0
P99_S: Final = 0.3
STORY_COPIES: Final = 40
CORES: Final = 2
DAY_MS: Final = 86_400_000
PREPARED_S: Final = 300
_TOKEN: Final = re.compile(r'name="token" value="([0-9a-f]{64})"')
_FLAG: Final = re.compile(r"/flags/(\d+)")


class Acknowledged(NamedTuple):
    """A decision that the console said it had."""

    flag_id: int
    decision: Decision


class Reviewer(threading.Thread):
    """Somebody who reads a flag, decides, and goes on with the next one that the console gives them."""

    def __init__(self, url: str, cookie: str, phase_s: float, until_s: float) -> None:
        super().__init__(name="reviewer", daemon=True)
        self._host = urlsplit(url).netloc
        self._headers = {"cookie": cookie, "origin": url}
        self._phase_s = phase_s
        self._until_s = until_s
        self._chance = random.Random(phase_s)
        self.seconds: list[float] = []
        self.acknowledged: list[Acknowledged] = []
        self.refused = 0
        self.error: Exception | None = None

    def run(self) -> None:
        """Decide every two seconds until it is time to stop."""
        connection = HTTPConnection(self._host, timeout=60)
        try:
            time.sleep(self._phase_s)
            self._work(connection)
        except Exception as error:  # noqa: BLE001  # raised in the test
            self.error = error
        finally:
            connection.close()

    def _work(self, connection: HTTPConnection) -> None:
        _, path, _ = self._ask(connection, "GET", "/flags/1/next")
        due_s = time.monotonic()
        while due_s < self._until_s and (found := _FLAG.match(path)):
            status, _, page = self._ask(connection, "GET", path)
            token = _TOKEN.search(page)
            assert status == 200, page[-1_000:]
            assert token is not None, page[-1_000:]
            time.sleep(max(0.0, due_s - time.monotonic()))
            decision = self._chance.choice(DECISIONS)
            form = {"token": token[1], "decision": decision, "note": "seen", "queue": ""}
            flag_id = int(found[1])
            status, path, _ = self._ask(connection, "POST", f"/flags/{flag_id}/decide", form)
            if status == 303:
                self.acknowledged.append(Acknowledged(flag_id, decision))
            else:
                self.refused += 1
                _, path, _ = self._ask(connection, "GET", f"/flags/{flag_id}/next")
            due_s += EVERY_S

    def _ask(
        self, connection: HTTPConnection, method: str, path: str, form: dict[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Send a request; its status, where it leads, and the page. How long that takes is kept."""
        body = None if form is None else urlencode(form)
        headers = self._headers | ({} if form is None else {"content-type": "application/x-www-form-urlencoded"})
        began_s = time.perf_counter()
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        page = answer.read().decode()
        self.seconds.append(time.perf_counter() - began_s)
        return answer.status, answer.getheader("location") or "", page


def fill(topics: Topics, store: str, folder: Path, stories: int) -> int:
    """Judge stories of one text each; the number of flags."""
    names = [(n, copy) for n in range(stories) for copy in range(STORY_COPIES + 1)]
    send(topics, [(f"a{n}-{copy}", article(text(n, 200), source=f"s{copy % 9}")) for n, copy in names])
    with running(topics, store, folder, "--set", "kafka.unique=true") as consumer:
        wait_for_count(topics, ["verdicts"], len(names), PREPARED_S)
        assert consumer.stop() == 0, consumer.log.read_text()
    return stories * STORY_COPIES


def cookies(place: Place, console: Running, number: int) -> list[str]:
    """Add people, each with a session, as their browsers hold it."""

    def begun(connection: Connection) -> list[str]:
        now_ms = time.time_ns() // 1_000_000
        name = f"dupwatch-{identity(connection)}"
        added = [people.add_person(connection, f"Person {n}", "reviewer", now_ms) for n in range(number)]
        secrets = [sessions.begin_session(connection, each.person_id, now_ms, DAY_MS) for each in added]
        return [f"{name}={secret}" for secret in secrets]

    console.wait_ready()
    database = place.opened()
    found = database.write(begun)
    database.close()
    return found


def on_two_cores(pid: int) -> None:
    """Let a process have no more of this machine than two cores."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cores)


def processor_s(pid: int) -> float:
    """How much processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check(topics: Topics, place: Place, folder: Path, seconds: float) -> None:
    """Let fifty people decide for so long, and look for what they decided."""
    wanted = ceil(PEOPLE * seconds / EVERY_S)
    store = f"lmdb:{folder / 'store'}"
    flags = fill(topics, store, folder, ceil((wanted + 2 * PEOPLE) / STORY_COPIES))
    with consoling(topics, store, place, folder, undo_s=10) as console:
        held = cookies(place, console, PEOPLE)
        wait_for(lambda: console.metric('dupwatch_console_flags{state="open"}') == flags, PREPARED_S)
        on_two_cores(console.process.pid)
        used_s = processor_s(console.process.pid)
        until_s = time.monotonic() + seconds
        phases = (EVERY_S * n / PEOPLE for n in range(PEOPLE))
        reviewers = [
            Reviewer(console.url, cookie, phase_s, until_s) for cookie, phase_s in zip(held, phases, strict=True)
        ]
        for reviewer in reviewers:
            reviewer.start()
        for reviewer in reviewers:
            reviewer.join(seconds + PREPARED_S)
        used_s = processor_s(console.process.pid) - used_s
        errors = [reviewer.error for reviewer in reviewers if reviewer.error is not None]
        assert errors == []
        found = kept(place.opened())
        assert console.stop() == 0, console.log.read_text()
    acknowledged = [each for reviewer in reviewers for each in reviewer.acknowledged]
    times = sorted(took for reviewer in reviewers for took in reviewer.seconds)
    p50, p99 = (times[int(share * len(times))] for share in (0.5, 0.99))
    log.info(
        "%s: %d decisions and their pages, 50 %% of requests within %.0f ms, 99 %% within %.0f ms, slowest %.0f ms; "
        "%.1f ms of processor time for each decision and page",
        place.url.partition(":")[0], len(acknowledged), 1_000 * p50, 1_000 * p99, 1_000 * times[-1],
        1_000 * used_s / max(1, len(acknowledged)),
    )  # fmt: skip
    assert sum(reviewer.refused for reviewer in reviewers) == 0
    assert {each.flag_id: [each.decision] for each in acknowledged} == found.reviews
    assert len(acknowledged) == len(found.reviews) == found.audited.total()
    assert len(acknowledged) >= 0.95 * wanted
    assert p99 < P99_S


@pytest.mark.load
@pytest.mark.timeout(2_400)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_fifty_people(kafka_address: str, request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """For ten minutes, or as many seconds as ``TEST_LOAD_S`` says."""
    if kind == "sqlite":
        place = sqlite_place(tmp_path)
    else:
        database = request.getfixturevalue("postgres_database")
        place = postgres_place(database.url, database.password, tmp_path)
    check(make_topics(kafka_address), place, tmp_path, LOAD_S)
