"""Clients that send near copies to two services at once, and repeat what is not answered, while others kill."""

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from consumer.model.verdict import Verdict, decode_verdict
from tests.cli.command import FAST, text
from tests.cli.serve.service import Process, serving
from tests.unit.service.serving import WAIT_S, Answer, Client

CLIENTS: Final = 4
TORN: Final = b'{"schema":"dupwatch.verdict/1","id":"never acknow'
_WAIT_S: Final = 4 * WAIT_S
"""Longer than all that is killed at a time needs to come back."""
PAUSE_S: Final = 0.02
"""A client that finds nobody asks again after this long."""
DELAY_MAX_S: Final = 0.05
"""A kill comes so long after an answer at most, and so anywhere in a batch."""
OK: Final = 200
UNAVAILABLE: Final = 503
AT_ONCE: Final = 100
"""Articles of a request that looks at them afterwards."""

Kill = Callable[[], object]
"""Kills something, and returns once what was killed works again."""


class Posted(NamedTuple):
    """The events that were answered, by id, and how the requests ended: a status, a type of problem, or "no answer"."""

    answered: dict[str, bytes]
    ends: Counter[str]


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

    def replace(self, *places: int, meanwhile: Kill = lambda: None) -> None:
        """Kill them with -9, have each leave half a line behind, and start them again; act while all are down."""
        for place in places:
            process, resources = self._running[place]
            process.process.kill()
            process.process.wait(WAIT_S)
            resources.close()
            with self.sinks[place].open("ab") as file:
                file.write(TORN)
        meanwhile()
        for place in places:
            self._running[place] = self._started(place)
        for place in places:
            self._running[place][0].wait_ready()

    def ask(self, place: int) -> Client:
        """The one that runs there now."""
        return self._running[place][0]

    def _started(self, place: int) -> tuple[Process, ExitStack]:
        resources = ExitStack()
        more = ("--sink", str(self.sinks[place]), "--set", "sink.emit=all", *FAST, *self._settings)
        return resources.enter_context(serving(self._store, self._folders[place], *more)), resources


class _Progress:
    """What was answered, and how far clients may go: they would be at the end before the second kill otherwise."""

    def __init__(self, groups_at_first: int) -> None:
        self.posted = Posted({}, Counter())
        self._groups = groups_at_first
        self._changed = threading.Condition()

    def note(self, events: dict[str, bytes]) -> None:
        """Note events. Sent again, to whatever service, an article has one verdict."""
        with self._changed:
            for article_id, event in events.items():
                assert self.posted.answered.setdefault(article_id, event) == event, article_id
            self._changed.notify_all()

    def count(self, end: str) -> None:
        """Note how a request has ended."""
        with self._changed:
            self.posted.ends[end] += 1

    def allow(self, groups: int) -> None:
        """Let clients go on to this group."""
        with self._changed:
            self._groups = groups
            self._changed.notify_all()

    def wait_for_group(self, group: int) -> None:
        """Wait until a client may send an article of this group."""
        with self._changed:
            assert self._changed.wait_for(lambda: group < self._groups, _WAIT_S)

    def wait_for_answers(self, articles: int) -> None:
        """Wait until so many articles are answered."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.posted.answered) >= articles, _WAIT_S)


def post(services: Services, groups: int, kills: Sequence[Kill], seed: str) -> Posted:
    """Post near copies from all clients, and kill meanwhile, one after the other, at moments that the seed picks.

    Each kill has a share of the groups, which begins before it and goes on while what was killed is away.
    """
    share = groups // (len(kills) + 2)
    progress, moments = _Progress(2 * share), random.Random(seed)
    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [
            pool.submit(_Poster(services, number, random.Random(f"{seed} {number}"), progress).send_all, groups)
            for number in range(CLIENTS)
        ]
        for number, kill in enumerate(kills, 1):
            progress.wait_for_answers(CLIENTS * share * number)
            time.sleep(moments.uniform(0, DELAY_MAX_S))
            kill()
            progress.allow(share * (number + 2))
        progress.allow(groups)
        for client in clients:
            client.result(_WAIT_S)
    return progress.posted


def ask_again(services: Services, groups: int, answered: dict[str, bytes]) -> None:
    """Check the promises of docs/contributing/protocol.md about stored verdicts by asking the running services."""
    bodies = {_name(group, number): _body(group, number) for group in range(groups) for number in range(CLIENTS)}
    articles = [{"id": name, "body": body} for name, body in bodies.items()]
    for start in range(0, len(articles), AT_ONCE):
        part, client = articles[start : start + AT_ONCE], services.ask(start // AT_ONCE % 2)
        assert _events(client.store(*part)) == [answered[article["id"]] for article in part]
        found = client.check(*({"body": article["body"]} for article in part)).json["results"]
        # What is kept can be found: a copy of each article has something to repeat.
        assert {result["outcome"] for result in found} == {"duplicate"}
        assert all(_is_kept(answered[match["id"]]) for result in found for match in result["matches"])
    for group in range(groups):
        kept = [name for number in range(CLIENTS) if _is_kept(answered[name := _name(group, number)])]
        for one, other in combinations(kept, 2):
            assert not _explained(services.ask(0), one, other)["near"], (one, other)


def check(services: Services, groups: int, answered: dict[str, bytes]) -> None:
    """Check the promises of docs/contributing/protocol.md on what was answered, and on what the sinks have."""
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


def _body(group: int, number: int) -> str:
    return f"{text(group)} {' '.join(['again'] * number)}"


def _is_kept(event: bytes) -> bool:
    return decode_verdict(event).outcome == "unique"


def _explained(client: Client, one: str, other: str) -> Any:  # noqa: ANN401  # whatever JSON can hold
    return client.get(f"/v1/articles/{quote(one, safe='')}/explain/{quote(other, safe='')}").json


class _Poster:
    """A client: it sends one article of each group, two in a request, some of them twice, to either service."""

    def __init__(self, services: Services, number: int, chance: random.Random, progress: _Progress) -> None:
        self._services = services
        self._number = number
        self._chance = chance
        self._progress = progress

    def send_all(self, groups: int) -> None:
        """Send all. The clients are at about the same group, so that its copies meet."""
        for start in range(0, groups, 2):
            some = range(start, min(start + 2, groups))
            self._progress.wait_for_group(some[-1])
            names = [_name(group, self._number) for group in some]
            articles = [
                {"id": name, "body": _body(group, self._number)} for name, group in zip(names, some, strict=True)
            ]
            for _ in range(self._chance.choice((1, 1, 2))):
                self._progress.note(dict(zip(names, _events(self._sent(articles)), strict=True)))

    def _sent(self, articles: list[dict[str, str]]) -> Answer:
        """Send a request until it is answered."""
        until_s = time.monotonic() + _WAIT_S
        while time.monotonic() < until_s:
            try:
                answer = self._services.ask(self._chance.randrange(2)).store(*articles)
            except (OSError, HTTPException):
                # Nobody listens there, or who did was killed.
                self._progress.count("no answer")
            else:
                self._progress.count(
                    str(answer.status) if answer.status == OK else answer.json["type"].rpartition(":")[2]
                )
                if answer.status == OK:
                    return answer
                assert answer.status == UNAVAILABLE, answer
            time.sleep(PAUSE_S)
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
