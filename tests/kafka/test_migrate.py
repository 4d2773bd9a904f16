"""``dupwatch migrate``: to other settings while articles come, without losing one or judging one twice."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count, product
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from consumer.cli.options import command_config
from consumer.kafka import groups
from consumer.kafka.groups import FILLING_NOTE, SWITCHED_NOTE, CommittedOffset, ConsumerGroup
from consumer.kafka.offset_metadata import Note
from consumer.lifecycle.stopping import StopSignal
from consumer.migration.building import open_migration
from consumer.migration.migration import MigrationPlan
from consumer.model.errors import ConfigError, SourceError, StoreMismatch
from consumer.model.hooks import Hooks
from consumer.wiring import stores
from storage.errors import StoreRefused
from storage.hbase import parse_place
from storage.interface import Store
from storage.records import StoredVersion
from tests.cli.command import FAST, Outcome, run_process, start, text, wait_for
from tests.hbase.proxy import Answer, pass_on, proxied
from tests.hbase_server import COMMON, MOVED, fresh_namespace
from tests.kafka.running import END_S, running
from tests.kafka.topics import SINKS, Topics, make_topics, ordered_producer, read_all, wait_for_count

pytestmark = pytest.mark.servers

NEW = ("--set", "judge.plan=16x28", "--set", "judge.window_s=3600")
OLD = ("--set", "judge.similarity_min=0.99", "--set", "judge.window_s=3600")
EXACTLY_ONCE = (
    "--set", "kafka.delivery=exactly-once",
    "--set", 'kafka.producer={"transaction.timeout.ms"=5000}',
)  # fmt: skip
SHORT_SESSION = ("--set", 'kafka.consumer={"session.timeout.ms"=6000, "heartbeat.interval.ms"=2000}')
HOUR_MS = 3_600_000
ENGINES: Final = ("lmdb", "hbase")
DELIVERIES: Final = {"exactly once": EXACTLY_ONCE, "at least once": ()}
PROTOCOLS: Final = {
    "classic": SHORT_SESSION,
    # A client cannot choose the session here, the brokers do.
    "consumer": ("--set", "kafka.group_protocol=consumer"),
}


class Way(NamedTuple):
    """From which kind of store to which, with which protocol of groups, and how verdicts are delivered."""

    old: str
    new: str
    protocol: str
    delivery: str

    @property
    def settings(self) -> tuple[str, ...]:
        """What consumers and the migration are told of it."""
        return (*PROTOCOLS[self.protocol], *DELIVERIES[self.delivery])


SHORT: Final = Way("hbase", "lmdb", "consumer", "exactly once")
"""What other tests of this file have not; they have HBase as the new one, and the classic protocol."""
WAYS: Final = [
    pytest.param(way, id=", ".join(way), marks=[] if way == SHORT else pytest.mark.load)
    for way in map(Way._make, product(ENGINES, ENGINES, PROTOCOLS, DELIVERIES))
]
POSTS: Final = Path(__file__).parents[2] / "sample" / "posts.jsonl"
RATES: Final = {"lmdb": 100, "hbase": 40}
"""Articles a second; one that comes faster than a busy machine fills is never caught up with."""
Places = Callable[[str, str], str]


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Names an empty store of an engine, the "old" or the "new" one: both may be in one HBase."""
    taken: list[str] = []

    def place(engine: str, name: str) -> str:
        if engine == "lmdb":
            return f"lmdb:{tmp_path / name}"
        address: str = request.getfixturevalue("hbase_address")
        namespace = fresh_namespace(address, MOVED if taken else COMMON)
        taken.append(namespace)
        return f"hbase://{address}/{namespace}"

    return place


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, two partitions each."""
    return make_topics(kafka_address)


def body(number: int) -> str:
    """Of five the second repeats the first, and the fourth is an edit of the third that the new settings flag."""
    if number % 5 == 3:
        words = text(number - 1).split()
        return json.dumps({"body": " ".join([*words[:-2], *text(number + 1_000_000).split()[:2]])})
    return json.dumps({"body": text(number - (number % 5 == 1))})


def send(topics: Topics, numbers: range, time_ms: int = 0) -> None:
    """Send articles at once."""
    producer = ordered_producer(topics.address)
    for number in numbers:
        producer.produce(topics.source, body(number), f"a{number}", timestamp=time_ms)
    assert producer.flush(30) == 0


class Sending:
    """Sends articles at a steady rate until stopped; ``count`` is how many, ``made`` makes the message of each."""

    def __init__(self, topics: Topics, rate: float, made: Callable[[int], str] = body) -> None:
        self.count = 0
        self._topics = topics
        self._rate = rate
        self._made = made
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        producer = ordered_producer(self._topics.address, {"linger.ms": 2})
        while not self._over.wait(1 / self._rate):
            producer.produce(self._topics.source, self._made(self.count), f"a{self.count}")
            producer.poll(0)
            self.count += 1
        producer.flush(30)

    def stop(self) -> None:
        """Send no more; all of it is in the topic."""
        self._over.set()
        self._thread.join()

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, if it was not yet."""
        self.stop()


class Migrating:
    """A migration as a process, its words in a file and its report in another."""

    def __init__(self, topics: Topics, old: str, new: str, folder: Path, settings: tuple[str, ...]) -> None:
        number = len(list(folder.glob("migrate-*.txt")))
        self.log = folder / f"migrate-{number}.txt"
        self._report = folder / f"report-{number}.json"
        with self.log.open("wb") as log, self._report.open("wb") as report:
            self.process = start(
                "migrate", *arguments(topics, old, new), *settings, "--json", stdout=report, stderr=log
            )

    def says(self, words: str) -> bool:
        """Return whether it has printed these words; it has to be alive until then."""
        if words in " ".join(self.log.read_text().split()):
            return True
        assert self.process.poll() is None, self.log.read_text()
        return False

    def end(self) -> dict[str, Any]:
        """Its report, when it has ended well."""
        assert self.process.wait(END_S) == 0, self.log.read_text()
        report: dict[str, Any] = json.loads(self._report.read_text())
        return report


@contextmanager
def migrating(
    topics: Topics, old: str, new: str, folder: Path, *more: str, settings: tuple[str, ...] = NEW
) -> Iterator[Migrating]:
    """Start a migration, which is killed where it is still there."""
    migration = Migrating(topics, old, new, folder, (*settings, *more))
    try:
        yield migration
    finally:
        if migration.process.poll() is None:
            migration.process.kill()
            migration.process.wait()


def arguments(topics: Topics, old: str, new: str) -> tuple[str, ...]:
    """The arguments of a migration."""
    return (
        "--source", topics.url(), "--from-store", old, "--store", new,
        "--from-group", topics.prefix, "--group", f"{topics.prefix}-new", *FAST,
    )  # fmt: skip


def migrate(topics: Topics, old: str, new: str, *more: str, settings: tuple[str, ...] = NEW) -> Outcome:
    """A migration to its end."""
    return run_process("migrate", *arguments(topics, old, new), *settings, *more)


def unanswered(topics: Topics) -> set[bytes | None]:
    """The keys of articles that have no verdict."""
    answered = {message.key for message in read_all(topics, topics.sink("verdicts"))}
    return {message.key for message in read_all(topics, topics.source)} - answered


@contextmanager
def looked_into(url: str) -> Iterator[Store]:
    """A store, for reading."""
    with stores.opened_store(command_config(None, [], store__url=url), readonly=True) as store:
        yield store


def stored_events(url: str) -> dict[str, bytes | None]:
    """What a store says of each article."""
    with looked_into(url) as store:
        return {entry.record.id: entry.verdict for entry in store.scan() if isinstance(entry, StoredVersion)}


def new_group(topics: Topics) -> tuple[str, ...]:
    """The setting of the new consumers' group."""
    return ("--set", f"kafka.group={topics.prefix}-new")


@pytest.fixture
def judged(topics: Topics, tmp_path: Path) -> str:
    """A store in force: a hundred articles, of which half came more than a window ago."""
    return judged_into(f"lmdb:{tmp_path / 'old'}", topics, tmp_path)


def judged_into(url: str, topics: Topics, folder: Path, *settings: str) -> str:
    """Make this a store in force."""
    now_ms = int(time.time() * 1000)
    send(topics, range(50), now_ms - 30 * HOUR_MS)
    send(topics, range(50, 100), now_ms - HOUR_MS // 2)
    with running(topics, url, folder, *OLD, *settings) as consumer:
        wait_for_count(topics, ["verdicts"], 100)
        assert consumer.stop() == 0
    return url


@pytest.mark.parametrize("way", WAYS)
def test_under_load_every_version_has_one_verdict(topics: Topics, places: Places, tmp_path: Path, way: Way) -> None:
    """Articles come all the time, the old consumers stop and the new ones start: none is missed or judged twice."""
    report, by_old = move_under_load(topics, places, tmp_path, way)
    taken = report["taken_over"]["kept"] + report["taken_over"]["duplicates"]
    # What was given up when an old one stopped was settled, and not sent.
    assert taken - report["taken_over"]["not_committed"] <= by_old <= taken


@pytest.mark.load
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_killed_at_any_moment_under_load(
    topics: Topics, places: Places, tmp_path: Path, protocol: str, delivery: str
) -> None:
    """Killed again and again while it fills an HBase, and about the switch: none is missed or judged twice."""
    report, _ = move_under_load(topics, places, tmp_path, Way("hbase", "hbase", protocol, delivery), kills=4)
    assert report["switched"]


def move_under_load(
    topics: Topics, places: Places, folder: Path, way: Way, kills: int = 0
) -> tuple[dict[str, Any], int]:
    """Have articles come, and migrate; check what was sent; the last report, and how many the old ones answered."""
    old, new, settings = places(way.old, "old"), places(way.new, "new"), way.settings
    with Sending(topics, min(RATES[way.old], RATES[way.new])) as sending, ExitStack() as stack:
        old_ones = [stack.enter_context(running(topics, old, folder, *OLD, *settings)) for _ in range(2)]
        for consumer in old_ones:
            consumer.wait_ready()
        wait_for_count(topics, ["verdicts"], 100)
        for _ in range(kills):
            with migrating(topics, old, new, folder, *settings) as killed:
                wait_for(lambda consumer=killed: consumer.says("Filling"), 60)  # type: ignore[misc]
                time.sleep(random.uniform(0.0, 3.0))
        with migrating(topics, old, new, folder, *settings) as migration:
            wait_for(lambda: migration.says("Stop the consumers of that group"), 120)
            for consumer in old_ones:
                assert consumer.stop() == 0, consumer.log.read_text()
            if kills:
                time.sleep(random.uniform(0.0, 2.0))
            else:
                report = migration.end()
        if kills:
            with migrating(topics, old, new, folder, *settings) as migration:
                report = migration.end()
        by_old = {message.key for message in read_all(topics, topics.sink("verdicts"))}
        new_one = stack.enter_context(running(topics, new, folder, *NEW, *settings, *new_group(topics)))
        wait_for_count(topics, ["verdicts"], len(by_old) + 150)
        sending.stop()
        wait_for(lambda: not unanswered(topics))
        assert new_one.stop() == 0, new_one.log.read_text()
    check_sent(topics, new, sending.count, by_old, once=way.delivery == "exactly once")
    return report, len(by_old)


def check_sent(topics: Topics, new: str, count: int, by_old: set[bytes | None], *, once: bool) -> None:
    """Every article has one verdict, as the new store has it, and one of each pair is kept, by the old settings.

    At least once it may be said again, in the same words: who is stopped in a rebalance has not committed since.
    """
    sent = read_all(topics, topics.sink("verdicts"))
    assert len({(message.key, message.value) for message in sent}) == len({message.key for message in sent})
    assert set(Counter(message.key for message in sent).values()) == {1} or not once
    verdicts = {(message.key or b"").decode(): message.value for message in sent}
    assert len(verdicts) == count > len(by_old) + 100
    # What was sent is what the new store has, by whomever it was judged.
    assert verdicts == stored_events(new)
    assert chains_end_at_kept(verdicts)
    outcomes = {name: json.loads(value or b"")["outcome"] for name, value in verdicts.items()}
    for number in range(1, count, 5):
        assert {outcomes[f"a{number}"], outcomes[f"a{number - 1}"]} == {"unique", "duplicate"}, number
    edits = [{f"a{number}", f"a{number - 1}"} for number in range(3, count, 5)]
    judged_by_old = {(key or b"").decode() for key in by_old}
    assert all(outcomes[name] == "unique" for pair in edits for name in pair if pair <= judged_by_old)
    flagged = [{outcomes[name] for name in pair} == {"unique", "duplicate"} for pair in edits if pair - judged_by_old]
    assert sum(flagged) > 0.9 * len(flagged) > 0


def chains_end_at_kept(verdicts: dict[str, bytes | None]) -> bool:
    """Whether following ``duplicate_of`` through what was sent ends at one that is unique."""
    for name, value in verdicts.items():
        here, steps = json.loads(value or b""), 0
        while here["outcome"] == "duplicate":
            here, steps = json.loads(verdicts[here["duplicate_of"]] or b""), steps + 1
            assert steps < 10, name
    return True


def delete_before(topics: Topics, offsets: dict[int, int]) -> None:
    """Delete what is before these offsets of the source's partitions, as retention would."""
    admin = AdminClient({"bootstrap.servers": topics.address})
    places = [TopicPartition(topics.source, number, offset) for number, offset in offsets.items()]
    for done in admin.delete_records(places).values():
        done.result(END_S)


def notes(topics: Topics) -> set[Note]:
    """What stands beside the offsets of the new group."""
    with closing(ConsumerGroup({"bootstrap.servers": topics.address}, f"{topics.prefix}-new")) as group:
        return {place.note for place in group.committed(group.partitions([topics.source])).values()}


def test_killed_it_goes_on_and_new_consumers_wait(topics: Topics, judged: str, tmp_path: Path) -> None:
    """A window is filled, and nothing older; a killed fill resumes; nothing is sent; no consumer starts too early."""
    new = f"lmdb:{tmp_path / 'new'}"
    sent = sizes(topics)
    with running(topics, judged, tmp_path, *OLD) as old_one:
        old_one.wait_ready()
        with migrating(topics, judged, new, tmp_path) as killed:
            wait_for(lambda: killed.says("Stop the consumers of that group"))
        assert notes(topics) == {FILLING_NOTE}
        with running(topics, new, tmp_path, *NEW, *new_group(topics)) as early:
            assert early.process.wait(END_S) == 2
            assert "is being filled" in " ".join(early.log.read_text().split())
        send(topics, range(100, 120), int(time.time() * 1000))
        wait_for_count(topics, ["verdicts"], 120)
        with migrating(topics, judged, new, tmp_path) as migration:
            wait_for(lambda: migration.says("Stop the consumers of that group"))
            assert old_one.stop() == 0
            report = migration.end()
    assert report["switched"]
    assert (report["filled"]["articles"], report["filled"]["filled_before"]) == (20, 0)
    assert report["taken_over"]["would_be_flagged"] == 4
    # Beside it stands what the old group knew of each partition.
    assert {note.migrate for note in notes(topics)} == {SWITCHED_NOTE.migrate}
    assert sorted(stored_events(new)) == sorted(f"a{number}" for number in range(50, 120))
    assert {name: count - sent[name] for name, count in sizes(topics).items()} == {
        "duplicates": 4, "verdicts": 20, "unique": 0, "dead-letters": 0, "floods": 0, "stories": 0,
        "near-misses": 0, "bank-matches": 0,
    }  # fmt: skip
    empty = migrate(topics, judged, f"lmdb:{tmp_path / 'empty'}")
    assert (empty.code, "is empty, but the group" in empty.err) == (2, True), empty.err
    filled = migrate(topics, judged, new, "--group", f"{topics.prefix}-other")
    assert (filled.code, "has articles already" in filled.err) == (2, True), filled.err


@pytest.mark.parametrize(
    ("engine", "protocol"),
    [
        pytest.param(*pair, id=", ".join(pair), marks=[] if pair == ("lmdb", "classic") else pytest.mark.load)
        for pair in product(ENGINES, PROTOCOLS)
    ],
)
def test_killed_in_the_middle_of_a_batch_it_goes_on(
    topics: Topics, places: Places, tmp_path: Path, engine: str, protocol: str
) -> None:
    """Killed between a record in HBase and its postings, and between verdicts and their answers, it loses nothing."""
    settings = PROTOCOLS[protocol]
    old = judged_into(places(engine, "old"), topics, tmp_path, *settings)
    new = places("hbase", "new")
    in_force = {name: event for name, event in stored_events(old).items() if int(name[1:]) >= 50}
    # Two batches: of the second there are records.
    fill_until(60, topics, old, new, tmp_path, *settings)
    begun = stored_events(new)
    assert (sum(event is not None for event in begun.values()), None in begun.values()) == (25, True)
    # The first has been filled, and the verdicts of the second are under way.
    fill_until(10, topics, old, new, tmp_path, *settings)
    ended = migrate(topics, old, new, "--json", *settings)
    assert ended.code == 0, ended
    filled = json.loads(ended.out)["filled"]
    assert (filled["articles"], filled["filled_before"] >= 25) == (50, True)
    assert stored_events(new) == in_force
    assert posted_in(new) == {
        name for name, event in in_force.items() if json.loads(event or b"")["outcome"] == "unique"
    }


def fill_until(swaps: int, topics: Topics, old: str, new: str, folder: Path, *settings: str) -> None:
    """Migrate until HBase has answered more compare-and-sets than these; then kill it."""
    numbers, there = count(1), threading.Event()

    def hold(answer: Answer) -> None:
        if there.is_set() or (answer.call == "checkAndPut" and next(numbers) > swaps):
            there.set()
        else:
            pass_on(answer)

    place = parse_place(new)
    with proxied(str(place.addresses[0])) as proxy:
        proxy.rule = hold
        through = f"hbase://{proxy.address}/{place.namespace}"
        batches = ("--set", "source.batch_records_max=25")
        with migrating(topics, old, through, folder, *batches, *settings) as killed:
            wait_for(lambda: there.is_set() or killed.says("Switched"))
            assert there.is_set(), killed.log.read_text()


def posted_in(url: str) -> set[str]:
    """The articles that have all of their postings."""
    with looked_into(url) as store:
        records = [entry.record for entry in store.scan() if isinstance(entry, StoredVersion)]
        keys = sorted({key for record in records for key in record.keys})
        rows = dict(zip(keys, store.look_up(keys), strict=True))
        posted = {key: {posting["reference"].tobytes() for posting in row.postings} for key, row in rows.items()}
    there = {record.id: [record.reference in posted[key] for key in record.keys] for record in records}
    assert all(all(present) or not any(present) for present in there.values()), "postings of some keys only"
    return {name for name, present in there.items() if all(present)}


def sizes(topics: Topics) -> dict[str, int]:
    """How many messages each topic of the sink has."""
    settings = {"bootstrap.servers": topics.address}
    with closing(groups.GroupTopics(settings, [topics.sink(name) for name in SINKS])) as asked:
        marks = asked.watermarks()
    return {name: sum(high for (topic, _), (_, high) in marks.items() if topic == topics.sink(name)) for name in SINKS}


def test_what_was_not_committed_is_not_judged_twice(topics: Topics, judged: str, tmp_path: Path) -> None:
    """What old consumers had settled before they died is answered by the new ones with the same words."""
    new = f"lmdb:{tmp_path / 'new'}"
    send(topics, range(100, 140), int(time.time() * 1000))
    # As a consumer would that is killed between its verdicts and its commit.
    settled = run_process(
        "replay", "--source", topics.url(), "--from", "0", "--store", judged, *OLD, *FAST,
    )  # fmt: skip
    assert settled.code == 0, settled
    ended = migrate(topics, judged, new, "--json")
    assert ended.code == 0, ended
    report = json.loads(ended.out)
    assert (report["filled"]["articles"], report["taken_over"]["not_committed"]) == (90, 40)
    with running(topics, new, tmp_path, *NEW, *new_group(topics)):
        wait_for_count(topics, ["verdicts"], 140)
    verdicts = {(message.key or b"").decode(): message.value for message in read_all(topics, topics.sink("verdicts"))}
    in_force = stored_events(judged)
    assert {name: verdicts[name] for name in in_force} == in_force
    assert len(in_force) == 140


def test_judged_anew_where_there_is_no_store_in_force(topics: Topics, judged: str, tmp_path: Path) -> None:
    """Without the old store, what it flagged or kept is decided by the new settings."""
    del judged
    new = f"lmdb:{tmp_path / 'new'}"
    ended = run_process(
        "migrate", "--source", topics.url(), "--anew", "--store", new, "--json",
        "--from-group", topics.prefix, "--group", f"{topics.prefix}-new", *NEW, *FAST,
    )  # fmt: skip
    assert ended.code == 0, ended
    report = json.loads(ended.out)
    assert report["filled"] == {
        "articles": 50, "kept": 30, "duplicates": 20, "filled_before": 0, "retractions": 0, "dead_letters": 0,
    }  # fmt: skip
    assert report["taken_over"]["kept"] == 0


def test_html_moves_to_the_next_revision_of_its_reader(topics: Topics, tmp_path: Path) -> None:
    """Articles that read the same keep their verdicts; the others are judged by what they are now."""
    old, new, html = f"lmdb:{tmp_path / 'old'}", f"lmdb:{tmp_path / 'new'}", ("--set", "source.body_format=html")
    plain = f"<p>{text(1)}</p><p>{text(2)}</p>"
    bodies = {"plain": plain, "escaped": plain.replace("<", "&lt;").replace(">", "&gt;"), "other": f"<p>{text(3)}"}
    producer = ordered_producer(topics.address)
    for name, markup in bodies.items():
        # A topic has two partitions, and verdicts are to come in this order.
        producer.produce(topics.source, json.dumps({"body": markup}), name, partition=0)
    assert producer.flush(30) == 0
    with running(topics, old, tmp_path, *html, "--set", "source.reader_revision=1") as consumer:
        wait_for_count(topics, ["verdicts"], 3)
        assert consumer.stop() == 0
    ended = migrate(topics, old, new, "--json", settings=html)
    assert ended.code == 0, ended
    before, after = stored_events(old), stored_events(new)
    assert (after["plain"], after["other"]) == (before["plain"], before["other"])
    assert [b'"similarity":1.0' in (events["escaped"] or b"") for events in (before, after)] == [False, True]
    with looked_into(new) as store:
        assert json.loads(store.settings() or b"")["extractor"] == "html/2"


def test_a_store_moves_to_another_profile(topics: Topics, tmp_path: Path) -> None:
    """News keep their verdicts, and a repost that comes later is found with the keys and slots of the new store."""
    old, new = f"lmdb:{tmp_path / 'old'}", f"lmdb:{tmp_path / 'new'}"
    posts = {
        post["id"]: json.dumps({"body": post["body"]})
        for post in map(json.loads, POSTS.read_text(encoding="utf-8").splitlines())
    }
    moved = ("--set", "judge.profile=posts", "--set", "judge.facts=slots")
    producer = ordered_producer(topics.address)
    for name in posts.keys() - {"en-seeds.repost"}:
        producer.produce(topics.source, posts[name], name, partition=0)
    assert producer.flush(30) == 0
    with running(topics, old, tmp_path) as consumer:
        wait_for_count(topics, ["verdicts"], 4)
        assert consumer.stop() == 0
    ended = migrate(topics, old, new, "--json", settings=moved)
    assert ended.code == 0, ended
    assert stored_events(new) == stored_events(old)
    with looked_into(new) as store:
        settings = json.loads(store.settings() or b"")
    assert (settings["slot_conflicts_max"], settings["scheme"]["sketch"]["bands"]) == (0, 14)
    producer.produce(topics.source, posts["en-seeds.repost"], "en-seeds.repost", partition=0)
    assert producer.flush(30) == 0
    with running(topics, new, tmp_path, *new_group(topics), *moved) as consumer:
        wait_for_count(topics, ["verdicts"], 5)
        assert consumer.stop() == 0
    found = json.loads(stored_events(new)["en-seeds.repost"] or b"")
    assert (found["outcome"], found["duplicate_of"]) == ("duplicate", "en-seeds")


def test_what_the_topic_has_no_more_is_said(topics: Topics, judged: str, tmp_path: Path) -> None:
    """Where part of the window was deleted it refuses, and says how much; unless that is allowed."""
    new = f"lmdb:{tmp_path / 'new'}"
    first = {
        message.partition: message.offset
        for message in reversed(read_all(topics, topics.source))
        if message.key in {b"a60", b"a62"}
    }
    delete_before(topics, first)
    with pytest.raises(SourceError, match=r"are missing.*--allow-gap"):
        begin(topics, judged, new)
    assert notes(topics) == set()
    allowed = migrate(topics, judged, new, "--allow-gap", "--json")
    assert allowed.code == 0, allowed
    report = json.loads(allowed.out)
    assert len(report["gaps"]) == len(first)
    assert 0 < report["filled"]["articles"] < 50


def test_places_that_cannot_be_meant(topics: Topics, judged: str, tmp_path: Path) -> None:
    """An unknown group, one that is in use, an empty store, and a store with other settings."""
    new = f"lmdb:{tmp_path / 'new'}"
    with pytest.raises(ConfigError, match="has committed no offsets"):
        begin(topics, judged, new, from_group="nobody")
    with pytest.raises(StoreRefused, match="empty"):
        begin(topics, f"lmdb:{tmp_path / 'empty'}", new)
    with pytest.raises(StoreMismatch, match="other settings"):
        begin(topics, judged, new, settings=OLD)
    with closing(ConsumerGroup({"bootstrap.servers": topics.address}, f"{topics.prefix}-new")) as group:
        group.commit(dict.fromkeys(group.partitions([topics.source]), CommittedOffset(0)))
    with pytest.raises(ConfigError, match="in use"):
        begin(topics, judged, new)


def begin(topics: Topics, old: str, new: str, from_group: str | None = None, settings: tuple[str, ...] = NEW) -> None:
    """A migration in this process."""
    chosen = command_config(
        None, [setting for setting in (*settings, *FAST) if setting != "--set"],
        source__url=topics.url(), store__url=new, kafka__group=f"{topics.prefix}-new",
    )  # fmt: skip
    moves = MigrationPlan(from_group or topics.prefix, old)
    with open_migration(chosen, moves, Hooks(), StopSignal()) as ready:
        ready.run()
