"""``dupwatch migrate``: to other settings while articles come, without losing one or judging one twice."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from consumer.cli.options import configured
from consumer.errors import ConfigError, SourceError, StoreMismatch
from consumer.migration import groups
from consumer.migration.groups import FILLING, SWITCHED, Group
from consumer.migration.migration import Moves, Watcher, prepared_migration
from consumer.stopping import Stopping
from storage.errors import StoreRefused
from storage.lmdb import LmdbOptions, LmdbStore
from storage.records import Stored
from tests.cli.command import FAST, Outcome, run_process, start, text, wait_for
from tests.kafka.running import END_S, running
from tests.kafka.topics import SINKS, Topics, make_topics, read_all, wait_for_count

pytestmark = pytest.mark.servers

NEW = ("--set", "judge.plan=16x28", "--set", "judge.window_s=3600")
OLD = ("--set", "judge.similarity_min=0.99", "--set", "judge.window_s=3600")
EXACTLY_ONCE = (
    "--set", "kafka.delivery=exactly-once",
    "--set", 'kafka.producer={"transaction.timeout.ms"=5000}',
)  # fmt: skip
SHORT_SESSION = ("--set", 'kafka.consumer={"session.timeout.ms"=6000}')
HOUR_MS = 3_600_000


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
    producer = Producer({"bootstrap.servers": topics.address})
    for number in numbers:
        producer.produce(topics.source, body(number), f"a{number}", timestamp=time_ms)
    assert producer.flush(30) == 0


class Sending:
    """Sends articles at a steady rate until stopped; ``count`` is how many."""

    def __init__(self, topics: Topics, rate: float) -> None:
        self.count = 0
        self._topics = topics
        self._rate = rate
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._topics.address, "linger.ms": 2})
        while not self._over.wait(1 / self._rate):
            producer.produce(self._topics.source, body(self.count), f"a{self.count}")
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

    def __init__(self, topics: Topics, old: str, new: str, folder: Path, *more: str) -> None:
        number = len(list(folder.glob("migrate-*.txt")))
        self.log = folder / f"migrate-{number}.txt"
        self._report = folder / f"report-{number}.json"
        with self.log.open("wb") as said, self._report.open("wb") as report:
            self.process = start(
                "migrate", *arguments(topics, old, new), *NEW, "--json", *more, stdout=report, stderr=said
            )

    def says(self, words: str) -> bool:
        """Whether it has said so; it has to be alive until then."""
        if words in self.log.read_text():
            return True
        assert self.process.poll() is None, self.log.read_text()
        return False

    def end(self) -> dict[str, Any]:
        """Its report, when it has ended well."""
        assert self.process.wait(END_S) == 0, self.log.read_text()
        report: dict[str, Any] = json.loads(self._report.read_text())
        return report


@contextmanager
def migrating(topics: Topics, old: str, new: str, folder: Path, *more: str) -> Iterator[Migrating]:
    """Start a migration, which is killed where it is still there."""
    one = Migrating(topics, old, new, folder, *more)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def arguments(topics: Topics, old: str, new: str) -> tuple[str, ...]:
    """What a migration is told."""
    return (
        "--source", topics.url(), "--from-store", old, "--store", new,
        "--from-group", topics.prefix, "--group", f"{topics.prefix}-new", *FAST,
    )  # fmt: skip


def migrate(topics: Topics, old: str, new: str, *more: str, settings: tuple[str, ...] = NEW) -> Outcome:
    """A migration to its end."""
    return run_process("migrate", *arguments(topics, old, new), *settings, *more)


def unanswered(topics: Topics) -> set[bytes | None]:
    """The keys of articles that have no verdict."""
    answered = {one.key for one in read_all(topics, topics.sink("verdicts"))}
    return {one.key for one in read_all(topics, topics.source)} - answered


def stored_events(url: str) -> dict[str, bytes | None]:
    """What a store says of each article."""
    options = LmdbOptions(durability="process", readonly=True)
    with closing(LmdbStore.open(Path(url.removeprefix("lmdb:")), options)) as store:
        return {one.record.id: one.verdict for one in store.scan() if isinstance(one, Stored)}


def new_group(topics: Topics) -> tuple[str, ...]:
    """The setting of the new consumers' group."""
    return ("--set", f"kafka.group={topics.prefix}-new")


@pytest.fixture
def judged(topics: Topics, tmp_path: Path) -> str:
    """A store in force: a hundred articles, of which half came more than a window ago."""
    url = f"lmdb:{tmp_path / 'old'}"
    now_ms = int(time.time() * 1000)
    send(topics, range(50), now_ms - 30 * HOUR_MS)
    send(topics, range(50, 100), now_ms - HOUR_MS // 2)
    with running(topics, url, tmp_path, *OLD) as consumer:
        wait_for_count(topics, ["verdicts"], 100)
        assert consumer.stop() == 0
    return url


@pytest.mark.parametrize(
    "how",
    [pytest.param(EXACTLY_ONCE, id="exactly once"), pytest.param((), id="at least once", marks=pytest.mark.load)],
)
def test_under_load_every_version_has_one_verdict(topics: Topics, tmp_path: Path, how: tuple[str, ...]) -> None:
    """Articles come all the time, the old consumers stop and the new ones start: none is missed or judged twice."""
    old, new = f"lmdb:{tmp_path / 'old'}", f"lmdb:{tmp_path / 'new'}"
    with Sending(topics, 100) as sending, ExitStack() as held:
        old_ones = [held.enter_context(running(topics, old, tmp_path, *OLD, *SHORT_SESSION, *how)) for _ in range(2)]
        for one in old_ones:
            one.wait_ready()
        wait_for_count(topics, ["verdicts"], 100)
        migration = held.enter_context(migrating(topics, old, new, tmp_path))
        wait_for(lambda: migration.says("Stop the consumers"), 60)
        for one in old_ones:
            assert one.stop() == 0, one.log.read_text()
        report = migration.end()
        by_old = {one.key for one in read_all(topics, topics.sink("verdicts"))}
        new_one = held.enter_context(running(topics, new, tmp_path, *NEW, *SHORT_SESSION, *how, *new_group(topics)))
        wait_for_count(topics, ["verdicts"], len(by_old) + 150)
        sending.stop()
        wait_for(lambda: not unanswered(topics), 60)
        assert new_one.stop() == 0, new_one.log.read_text()
    taken = report["taken_over"]["kept"] + report["taken_over"]["duplicates"]
    # What was given up when an old one stopped was settled, and not sent.
    assert taken - report["taken_over"]["not_committed"] <= len(by_old) <= taken
    sent = read_all(topics, topics.sink("verdicts"))
    assert set(Counter(one.key for one in sent).values()) == {1}
    said = {(one.key or b"").decode(): one.value for one in sent}
    assert len(said) == sending.count > len(by_old) + 100
    # What was sent is what the new store has, by whomever it was judged.
    assert said == stored_events(new)
    assert chains_end_at_kept(said)
    outcomes = {name: json.loads(value or b"")["outcome"] for name, value in said.items()}
    for number in range(1, sending.count, 5):
        assert {outcomes[f"a{number}"], outcomes[f"a{number - 1}"]} == {"unique", "duplicate"}, number
    edits = [{f"a{number}", f"a{number - 1}"} for number in range(3, sending.count, 5)]
    judged_by_old = {(key or b"").decode() for key in by_old}
    assert all(outcomes[name] == "unique" for pair in edits for name in pair if pair <= judged_by_old)
    flagged = [{outcomes[name] for name in pair} == {"unique", "duplicate"} for pair in edits if pair - judged_by_old]
    assert sum(flagged) > 0.9 * len(flagged) > 0


def chains_end_at_kept(said: dict[str, bytes | None]) -> bool:
    """Whether following ``duplicate_of`` through what was sent ends at one that is unique."""
    for name, value in said.items():
        here, steps = json.loads(value or b""), 0
        while here["outcome"] == "duplicate":
            here, steps = json.loads(said[here["duplicate_of"]] or b""), steps + 1
            assert steps < 10, name
    return True


def delete_before(topics: Topics, offsets: dict[int, int]) -> None:
    """Delete what is before these offsets of the source's partitions, as retention would."""
    admin = AdminClient({"bootstrap.servers": topics.address})
    places = [TopicPartition(topics.source, number, offset) for number, offset in offsets.items()]
    for done in admin.delete_records(places).values():
        done.result(30)


def notes(topics: Topics) -> set[str]:
    """What stands beside the offsets of the new group."""
    with closing(Group({"bootstrap.servers": topics.address}, f"{topics.prefix}-new")) as group:
        return {one.note for one in group.committed(group.partitions([topics.source])).values()}


def test_killed_it_goes_on_and_new_consumers_wait(topics: Topics, judged: str, tmp_path: Path) -> None:
    """A window is filled, and not what is older; killed, it goes on; nothing is sent; no consumer starts too early."""
    new = f"lmdb:{tmp_path / 'new'}"
    sent = sizes(topics)
    with running(topics, judged, tmp_path, *OLD) as old_one:
        old_one.wait_ready()
        with migrating(topics, judged, new, tmp_path) as killed:
            wait_for(lambda: killed.says("Stop the consumers"), 60)
        assert notes(topics) == {FILLING}
        with running(topics, new, tmp_path, *NEW, *new_group(topics)) as early:
            assert early.process.wait(END_S) == 2
            assert "is being filled" in " ".join(early.log.read_text().split())
        send(topics, range(100, 120), int(time.time() * 1000))
        wait_for_count(topics, ["verdicts"], 120)
        with migrating(topics, judged, new, tmp_path) as migration:
            wait_for(lambda: migration.says("Stop the consumers"), 60)
            assert old_one.stop() == 0
            report = migration.end()
    assert report["switched"]
    assert (report["filled"]["articles"], report["filled"]["filled_before"]) == (20, 0)
    assert report["taken_over"]["would_be_flagged"] == 4
    assert notes(topics) == {SWITCHED}
    assert sorted(stored_events(new)) == sorted(f"a{number}" for number in range(50, 120))
    assert {name: count - sent[name] for name, count in sizes(topics).items()} == {
        "duplicates": 4, "unique": 0, "verdicts": 20, "dead-letters": 0,
    }  # fmt: skip


def sizes(topics: Topics) -> dict[str, int]:
    """How many messages each topic of the sink has."""
    settings = {"bootstrap.servers": topics.address}
    with closing(groups.Topics(settings, [topics.sink(name) for name in SINKS])) as asked:
        marks = asked.marks()
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
    said = {(one.key or b"").decode(): one.value for one in read_all(topics, topics.sink("verdicts"))}
    in_force = stored_events(judged)
    assert {name: said[name] for name in in_force} == in_force
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


def test_what_the_topic_has_no_more_is_said(topics: Topics, judged: str, tmp_path: Path) -> None:
    """Where part of the window was deleted it refuses, and says how much; unless that is allowed."""
    new = f"lmdb:{tmp_path / 'new'}"
    first = {
        one.partition: one.offset for one in reversed(read_all(topics, topics.source)) if one.key in {b"a60", b"a62"}
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
    """A group that nobody knows or that is in use, a store that is empty, and one of other settings."""
    new = f"lmdb:{tmp_path / 'new'}"
    with pytest.raises(ConfigError, match="has committed nothing"):
        begin(topics, judged, new, from_group="nobody")
    with pytest.raises(StoreRefused, match="empty"):
        begin(topics, f"lmdb:{tmp_path / 'empty'}", new)
    with pytest.raises(StoreMismatch, match="other settings"):
        begin(topics, judged, new, settings=OLD)
    with closing(Group({"bootstrap.servers": topics.address}, f"{topics.prefix}-new")) as group:
        group.commit(dict.fromkeys(group.partitions([topics.source]), 0), "")
    with pytest.raises(ConfigError, match="in use"):
        begin(topics, judged, new)


def begin(topics: Topics, old: str, new: str, from_group: str | None = None, settings: tuple[str, ...] = NEW) -> None:
    """A migration in this process."""
    chosen = configured(
        None, [one for one in settings if one != "--set"],
        source__url=topics.url(), store__url=new, kafka__group=f"{topics.prefix}-new",
    )  # fmt: skip
    moves = Moves(from_group or topics.prefix, old)
    with prepared_migration(chosen, moves, Watcher(), Stopping()) as ready:
        ready.run()
