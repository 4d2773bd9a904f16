"""Console, judge, database and store are killed at random moments, while articles come and people decide.

What was acknowledged has to be there, once; and in the end the queue has every flag and near miss of the sink. The
judge is a consumer that writes to topics, or run after run over a feed that grows, which write to a file. A store in
LMDB has no server: it is killed with the judge.
"""

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, cast, get_args

import pytest
from sqlalchemy import select
from typing_extensions import override

from consumer.reviews.database import Database
from consumer.reviews.outbox.limits import sink_backlog, webhook_backlog
from consumer.reviews.tables import AUDIT, FLAGS, REVIEWS, STORIES
from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.kafka import KafkaBroker
from deploy.local.postgres import Postgres
from storage.clock import now_ms
from tests.cli.command import text, wait_for
from tests.console.consoles import Place, Running, add_person, postgres_place, sqlite_place
from tests.console.judges import BROKER, SETTLE_S, FileJudge, Judge, Member, TopicJudge
from tests.examples import drawn
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, make_topics
from tests.unit.reviews.outbox_made import valid
from tests.unit.reviews.webhooks_made import add_webhook, settings
from tests.unit.webhooks.receivers import LOCAL, Reaction, Received, Receiver, serving

pytestmark = pytest.mark.servers

ROUNDS_LOAD: Final = 200
ARTICLES: Final = 40
"""Of a round; most of them repeat one of few texts, so that stories are large and small."""
ROUND_S: Final = 2.0
AWAY_S: Final = 1.0
NAMESPACE: Final = "kills"
Decision = Literal["right", "wrong", "skip"]
DECISIONS: Final[tuple[Decision, ...]] = get_args(Decision)


class Acknowledged(NamedTuple):
    """A decision that the console said it had."""

    flag_id: int
    decision: Decision


class Reviewer:
    """Somebody who decides about whatever is open, as fast as the pages come."""

    def __init__(self, console: Running, chance: random.Random) -> None:
        self._console = console
        self._chance = chance
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reviewer")
        self.acknowledged: list[Acknowledged] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._thread.join(120)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._decide()
            except (OSError, HTTPException, AssertionError):
                # It was killed, or its database: whatever was under way was not acknowledged.
                self._stopping.wait(0.05)

    def _decide(self) -> None:
        flags = self._console.open_flags("certainty")
        if not flags:
            self._stopping.wait(0.05)
            return
        flag_id, decision = self._chance.choice(flags), self._chance.choice(DECISIONS)
        if self._console.decide(flag_id, decision, "seen") == 303:
            self.acknowledged.append(Acknowledged(flag_id, decision))


class Kept(NamedTuple):
    """What a database holds in the end."""

    flags: dict[tuple[str, str], str]
    near_misses: list[tuple[str, str]]
    ids: dict[int, tuple[str, str]]
    reviews: dict[int, list[Decision]]
    unsent: int
    audited: Counter[int]
    begun: set[int]


def kept(database: Database) -> Kept:
    """Read it: the states of flags by version, the reviews in force by flag, and which the audit log has."""
    with database.read_connection() as connection:
        columns = (FLAGS.c.flag_id, FLAGS.c.kind, FLAGS.c.article_id, FLAGS.c.version, FLAGS.c.state)
        rows = connection.execute(select(*columns)).all()
        flags = [row for row in rows if row.kind == "flag"]
        near_misses = [(row.article_id, row.version) for row in rows if row.kind == "near_miss"]
        reviews: dict[int, list[Decision]] = {}
        said = connection.execute(
            select(REVIEWS.c.flag_id, REVIEWS.c.decision, REVIEWS.c.sent_ms, FLAGS.c.kind)
            .join(FLAGS, FLAGS.c.flag_id == REVIEWS.c.flag_id)
            .where(REVIEWS.c.undone_ms.is_(None))
            .order_by(REVIEWS.c.review_id)
        ).all()
        for row in said:
            reviews.setdefault(row.flag_id, []).append(row.decision)
        unsent = sum(row.decision == "wrong" and row.sent_ms is None for row in said if row.kind == "flag")
        acts = connection.execute(select(AUDIT.c.flag_id).where(AUDIT.c.action.in_([f"flag.{d}" for d in DECISIONS])))
        audited = Counter(acts.scalars())
        begun = set(connection.execute(select(STORIES.c.story_id).where(STORIES.c.told_copies > 0)).scalars())
    return Kept(
        {(flag.article_id, flag.version): flag.state for flag in flags},
        near_misses,
        {row.flag_id: (row.article_id, row.version) for row in rows},
        reviews,
        unsent,
        audited,
        begun,
    )


def articles(chance: random.Random, number: int) -> list[tuple[str, object]]:
    """The articles of a round: copies of few texts, some that repeat nothing, and two that are nearly copies."""
    words = text(100_000 + 10 * number, 200).split()
    nearly = words[:150] + text(100_005 + 10 * number, 50).split()
    pair: list[tuple[str, object]] = [
        (f"r{number}-near-{index}", article(" ".join(body))) for index, body in enumerate((words, nearly))
    ]
    return pair + [
        (
            f"r{number}-{index}",
            article(text(chance.choice([*range(6), 1_000 * number + index])), source=chance.choice("abc")),
        )
        for index in range(ARTICLES)
    ]


class Killable(Protocol):
    """A server that is killed, and started again."""

    def kill9(self) -> None:
        """Kill it."""
        ...

    def start(self, wait_s: float) -> None:
        """Start it, and wait until it is ready."""
        ...


class HookServer(Killable):
    """A receiver of a webhook that comes back ``AWAY_S`` after it was killed, at the same port.

    It loses its first message, and the first one after each kill.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.lost = 0
        self._loses_next = True
        self.receiver = Receiver(0, self._accept)
        self._listening = ExitStack()
        self._listening.enter_context(serving(self.receiver))

    @override
    def kill9(self) -> None:
        self._listening.close()
        self._loses_next = True

    @override
    def start(self, wait_s: float) -> None:
        time.sleep(AWAY_S)
        self._listening.enter_context(serving(self.receiver))

    def _accept(self, received: Received) -> Reaction:
        """Check the signature at once: it is valid for five minutes."""
        if self._loses_next:
            self._loses_next = False
            self.lost += 1
            return Reaction(500)
        self.events.append(cast("dict[str, Any]", received.verify()))
        return Reaction()

    def place(self, place: Place) -> Place:
        """Have the console of a place send to it, and return the place with the settings that this needs."""
        allowed = "--set", f"console.webhooks.networks={json.dumps(LOCAL)}", "--set", "console.webhooks.http=true"
        with closing(place.opened()) as database:
            add_webhook(database, settings("kills", self.receiver.url(), ("story",)), now_ms=now_ms())
        return place._replace(settings=(*place.settings, *allowed))


def restart(server: Killable) -> None:
    """Kill a server, and start it again."""
    server.kill9()
    server.start(SETTLE_S)


class Killing:
    """Rounds of it over one database. ``servers`` are killed too, each under the name that the counts have."""

    def __init__(self, judge: Judge, place: Place, servers: Mapping[str, Killable], seed: int) -> None:
        self.chance = random.Random(seed)
        self.judge, self.place = judge, place
        self.servers = servers
        self.cookies: dict[str, str] = {}
        self.acknowledged: list[Acknowledged] = []
        self.killed: Counter[str] = Counter()

    def rounds(self) -> int:
        """Return how many rounds kill everything, and the console twice."""
        return len(self.servers) + 3

    def run(self, rounds: int) -> Kept:
        """Kill something in each round; return what is there when everything has come to rest."""
        password = add_person(self.place, "Ann")
        with closing(Member(self._console)) as console, closing(self.judge):
            console.process.wait_ready()
            assert console.process.sign_in("Ann", password).status == 303
            kills: dict[str, Callable[[], None]] = {"console": console.restart, "judge": self.judge.restart}
            kills |= {name: partial(restart, server) for name, server in self.servers.items()}
            for number, target in zip(range(rounds), self._targets([*kills]), strict=False):
                self._round(number, console, kills[target])
                self.killed[target] += 1
            self._settle(console.process)
        return self._read()

    def _targets(self, names: list[str]) -> Iterator[str]:
        """Yield what to kill, without end: every name comes before any comes again, the console's more often."""
        while True:
            some = ["console", *names]
            self.chance.shuffle(some)
            yield from some

    def _round(self, number: int, console: Member[Running], kill: Callable[[], None]) -> None:
        console.process.wait_ready()
        self.judge.wait_begun(console.process)
        with Reviewer(console.process, self.chance) as reviewer:
            self.judge.add(articles(self.chance, number))
            time.sleep(self.chance.uniform(0, ROUND_S))
            kill()
        self.acknowledged += reviewer.acknowledged

    def _settle(self, console: Running) -> None:
        """Wait until the queue has every flag of the sink, and nothing is due."""
        console.wait_ready()
        self.judge.settle()
        wait_for(lambda: not self._missing(), SETTLE_S)
        wait_for(lambda: self._read().unsent == 0, SETTLE_S)
        wait_for(lambda: self._events_waiting() == 0, SETTLE_S)
        wait_for(lambda: console.readiness() == (200, []), SETTLE_S)
        wait_for(lambda: console.metric("dupwatch_console_releases_due") == 0, SETTLE_S)
        assert console.stop() == 0, console.log.read_text()

    def _console(self) -> AbstractContextManager[Running]:
        return self.judge.console(self.place, self.cookies)

    def _read(self) -> Kept:
        with closing(self.place.opened()) as database:
            return kept(database)

    def _events_waiting(self) -> int:
        with closing(self.place.opened()) as database, database.read_connection() as connection:
            return sink_backlog(connection).events + webhook_backlog(connection).events

    def _missing(self) -> set[tuple[str, str]]:
        found = self._read()
        return (self.judge.said().flags - found.flags.keys()) | (self.judge.near_misses() - {*found.near_misses})


def check_events(events: Sequence[dict[str, Any]], begun: set[int]) -> None:
    """Fail unless each of these stories has begun once, and the events of each came in their order."""
    numbers: dict[int, list[int]] = {}
    for event in events:
        numbers.setdefault(valid(event)["story"], []).append(event["event"])
    for of_story in numbers.values():
        # A batch that was sent and not noted is sent again, from its first event on.
        assert list(dict.fromkeys(of_story)) == sorted(set(of_story)), of_story
    began = {event["event"]: event["story"] for event in events if event["cause"] == "began"}
    assert sorted(began.values()) == sorted(begun)


def check(killing: Killing, rounds: int) -> None:
    """Kill, settle, and compare what was promised with what there is."""
    found = killing.run(rounds)
    assert killing.killed.keys() == {"console", "judge", *killing.servers}
    flags, releases = killing.judge.said()
    assert found.flags.keys() == flags
    near_misses = killing.judge.near_misses()
    assert near_misses or isinstance(killing.judge, FileJudge), "no near miss was ever sent: this shows nothing of them"
    assert sorted(found.near_misses) == sorted(near_misses)
    assert killing.acknowledged, "nothing was ever decided, so this shows nothing"
    for flag_id, decision in killing.acknowledged:
        reviews = found.reviews[flag_id]
        # Who skips a flag has it before him again; the last word about it is said once.
        assert decision in reviews, (flag_id, decision, reviews)
        assert found.audited[flag_id] >= 1
    promised = Counter((each.flag_id, each.decision) for each in killing.acknowledged)
    for (flag_id, decision), times in promised.items():
        assert found.reviews[flag_id].count(decision) >= times
    for flag_id, reviews in found.reviews.items():
        assert sum(decision != "skip" for decision in reviews) <= 1, (flag_id, reviews)
        assert found.audited[flag_id] == len(reviews)
    # What is said of a near miss releases nothing.
    wrong = {found.ids[flag_id] for flag_id, reviews in found.reviews.items() if "wrong" in reviews} & flags
    assert wrong == set(releases)
    events = killing.judge.story_events()
    check_events(events, found.begun)
    for server in killing.servers.values():
        if isinstance(server, HookServer):
            assert server.lost
            check_events(server.events, found.begun)
            assert {event["event"] for event in server.events} == {event["event"] for event in events}
    assert {copy for copy, state in found.flags.items() if state == "wrong"} == wrong
    pairs = f"{len(flags)} flags, {len(near_misses)} near misses"
    print(f"{rounds} rounds, killed {dict(killing.killed)}: {pairs}, {len(killing.acknowledged)} decisions")  # noqa: T201


def seed() -> int:
    """What the rounds are drawn from; said, so that they can be repeated."""
    drawn = int(os.environ.get("TEST_LOAD_SEED") or random.randrange(1 << 30))
    print(f"TEST_LOAD_SEED={drawn}")  # noqa: T201
    return drawn


@pytest.fixture
def broker(own_kafka: Callable[..., KafkaBroker]) -> KafkaBroker:
    """A broker that lets sessions be short."""
    return own_kafka(BROKER)


@pytest.fixture
def topics(broker: KafkaBroker) -> Topics:
    """Topics of this broker."""
    return make_topics(broker.address)


@pytest.fixture
def hook() -> Iterator[HookServer]:
    """A receiver of the events of stories."""
    server = HookServer()
    yield server
    server.kill9()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("sink", drawn(["topics", "files"], 2))
def test_nothing_is_lost(
    request: pytest.FixtureRequest, own_postgres: Callable[..., Postgres], tmp_path: Path, sink: str
) -> None:
    """Some rounds, in which the server of the database is killed too.

    Between topics so is the gateway to the store in HBase, between files the receiver of a webhook. ``make test-load``
    runs both, other runs one.
    """
    server = own_postgres()
    place = place_of(server, tmp_path)
    servers: dict[str, Killable] = {"database": server}
    judge: Judge = FileJudge(tmp_path)
    if sink == "topics":
        servers["store"] = gateway = request.getfixturevalue("new_gateway")()
        store = f"hbase://{gateway.address}/{request.getfixturevalue('hbase_namespace')}"
        judge = TopicJudge(request.getfixturevalue("topics"), tmp_path, store)
    else:
        servers["receiver"] = hook = request.getfixturevalue("hook")
        place = hook.place(place)
    killing = Killing(judge, place, servers, seed())
    check(killing, killing.rounds())


def place_of(server: Postgres, folder: Path) -> Place:
    """The database of a server of the test's own."""
    return postgres_place(server.url("postgres"), server.password, folder)


@pytest.mark.load
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("sink", ["topics", "file"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_is_lost_in_two_hundred_rounds(
    request: pytest.FixtureRequest,
    own_postgres: Callable[..., Postgres],
    hook: HookServer,
    tmp_path: Path,
    kind: str,
    sink: str,
) -> None:
    """Long enough to meet rare moments; the broker is killed too."""
    servers: dict[str, Killable] = {"receiver": hook}
    judge: Judge = FileJudge(tmp_path)
    if sink == "topics":
        servers["broker"] = request.getfixturevalue("broker")
        judge = TopicJudge(request.getfixturevalue("topics"), tmp_path)
    place = sqlite_place(tmp_path)
    if kind == "postgresql":
        server = own_postgres()
        servers["database"] = server
        place = place_of(server, tmp_path)
    check(Killing(judge, hook.place(place), servers, seed()), ROUNDS_LOAD)


@pytest.mark.load
@pytest.mark.timeout(7_200)
def test_nothing_is_lost_in_two_hundred_rounds_over_hbase(
    broker: KafkaBroker,
    own_postgres: Callable[..., Postgres],
    own_hbase: Callable[[str], tuple[Hbase, ThriftGateway]],
    hook: HookServer,
    tmp_path: Path,
) -> None:
    """As above, and HBase itself is killed as well as its gateway."""
    server, (hbase, gateway) = own_postgres(), own_hbase(NAMESPACE)
    servers = {"database": server, "gateway": gateway, "store": hbase, "broker": broker, "receiver": hook}
    judge = TopicJudge(make_topics(broker.address), tmp_path, f"hbase://{gateway.address}/{NAMESPACE}")
    check(Killing(judge, hook.place(place_of(server, tmp_path)), servers, seed()), ROUNDS_LOAD)
