"""Clients that send near copies to two services at once, and repeat what is not answered, while services are killed."""

import json
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from consumer.model.verdict import Verdict, decode_verdict
from tests.cli.command import FAST, text
from tests.cli.serve.service import Process, serving
from tests.unit.service.serving import WAIT_S, Answer, Client

CLIENTS: Final = 4
TORN: Final = b'{"schema":"dupwatch.verdict/1","id":"never acknow'
TRIES_MAX: Final = 5_000
PAUSE_S: Final = 0.02
"""A client that finds nobody asks again after this long."""


class Services:
    """Two services over one store, each with a file for its verdicts, that are killed and started again."""

    def __init__(self, store: str, folder: Path, *settings: str) -> None:
        self._store = store
        self._settings = settings
        self._folders = [folder / name for name in ("first", "second")]
        for each in self._folders:
            each.mkdir()
        self._running: list[tuple[Process, ExitStack]] = []

    @property
    def sinks(self) -> list[Path]:
        """Where the verdicts are."""
        return [folder / "verdicts.jsonl" for folder in self._folders]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start both, and end them afterwards, as a supervisor does."""
        try:
            self._running = [self._started(place) for place in range(2)]
            for process, _ in self._running:
                process.wait_ready()
            yield
            assert [process.stop() for process, _ in self._running] == [0, 0]
        finally:
            for _, resources in self._running:
                resources.close()

    def replace(self, place: int) -> None:
        """Kill one with -9, have it leave half a line behind, and start it again."""
        process, resources = self._running[place]
        process.process.kill()
        process.process.wait(WAIT_S)
        resources.close()
        with self.sinks[place].open("ab") as file:
            file.write(TORN)
        self._running[place] = self._started(place)
        self._running[place][0].wait_ready()

    def ask(self, place: int) -> Client:
        """The one that runs there now."""
        return self._running[place][0]

    def _started(self, place: int) -> tuple[Process, ExitStack]:
        resources = ExitStack()
        more = ("--sink", str(self.sinks[place]), "--set", "sink.emit=all", *FAST, *self._settings)
        return resources.enter_context(serving(self._store, self._folders[place], *more)), resources


def post(services: Services, groups: int, kills: int) -> dict[str, bytes]:
    """Post near copies from all clients, and kill services meanwhile; return the events that were answered, by id."""
    answered: dict[str, bytes] = {}
    changed = threading.Condition()

    def note(events: dict[str, bytes]) -> None:
        with changed:
            for article_id, event in events.items():
                # Sent again, to whatever service, an article has one verdict.
                assert answered.setdefault(article_id, event) == event, article_id
            changed.notify_all()

    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(_send_all, services, number, groups, note) for number in range(CLIENTS)]
        for kill in range(kills):
            due = groups * CLIENTS * (kill + 1) // (kills + 2)
            with changed:
                assert changed.wait_for(lambda due=due: len(answered) >= due, 4 * WAIT_S)  # type: ignore[misc]
            services.replace(kill % 2)
        for client in clients:
            client.result(4 * WAIT_S)
    return answered


def check(services: Services, groups: int, answered: dict[str, bytes]) -> None:
    """Check the promises of docs/protocol.md on what was answered, and on what the sinks have."""
    assert len(answered) == groups * CLIENTS
    written: dict[str, set[bytes]] = defaultdict(set)
    for sink in services.sinks:
        for line in sink.read_bytes().splitlines():
            written[decode_verdict(line).id].add(line)
    assert dict(written) == {article_id: {event} for article_id, event in answered.items()}
    verdicts = {article_id: decode_verdict(event) for article_id, event in answered.items()}
    for group in range(groups):
        members = [verdicts[_name(group, number)] for number in range(CLIENTS)]
        assert any(verdict.outcome == "unique" for verdict in members), members
        assert all(_original(verdict, verdicts).outcome == "unique" for verdict in members)
    assert sum(verdict.outcome == "duplicate" for verdict in verdicts.values()) > groups


def _original(verdict: Verdict, verdicts: dict[str, Verdict]) -> Verdict:
    for _ in range(CLIENTS):
        if verdict.duplicate_of is None:
            return verdict
        verdict = verdicts[verdict.duplicate_of]
    raise AssertionError("a circle of duplicates")


def _name(group: int, number: int) -> str:
    return f"group {group}/{number}"


def _send_all(services: Services, number: int, groups: int, note: Callable[[dict[str, bytes]], None]) -> None:
    """Send one article of each group, two in a request, and some of them twice."""
    chance = random.Random(number)
    order = list(range(groups))
    # All clients are at about the same group at a time, so that its copies meet.
    for start in range(0, groups, 2):
        names = [_name(group, number) for group in order[start : start + 2]]
        articles = [
            {"id": name, "body": f"{text(group)} {' '.join(['again'] * number)}"}
            for name, group in zip(names, order[start : start + 2], strict=True)
        ]
        for _ in range(chance.choice((1, 1, 2))):
            note(dict(zip(names, _events(_send(services, articles, chance)), strict=True)))


def _send(services: Services, articles: list[dict[str, str]], chance: random.Random) -> Answer:
    """Send a request until it is answered, to either service."""
    for _ in range(TRIES_MAX):
        try:
            answer = services.ask(chance.randrange(2)).store(*articles)
        except OSError:
            # Nobody listens there, or who did was killed.
            threading.Event().wait(PAUSE_S)
            continue
        if answer.status == 200:
            return answer
        assert answer.status == 503, answer
        threading.Event().wait(PAUSE_S)
    raise AssertionError("no service answers")


def _events(answer: Answer) -> list[bytes]:
    """The events in an answer, byte for byte."""
    data, decoder = answer.data.decode(), json.JSONDecoder()
    events, place = [], data.index("[") + 1
    for _ in answer.json["results"]:
        _, end = decoder.raw_decode(data, place)
        events.append(data[place:end].encode())
        place = end + 1
    return events
