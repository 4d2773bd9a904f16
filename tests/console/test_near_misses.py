"""Near misses and other entries to a decision: through their topics, and through whatever happens to these."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs leave out what its module names
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from consumer.evaluation.reviewed_pairs import SCHEMA
from consumer.model.near_miss import encode
from consumer.model.verdict import encode as encode_verdict
from deploy.local.kafka import KafkaBroker
from tests.cli.command import FAST, run_process, text, wait_for
from tests.console.consoles import Place, Running, consoling, sqlite_place
from tests.console.test_whole_way import judged, signed_in
from tests.kafka.reading import delete_topic
from tests.kafka.running import running
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, make_topics, ordered_producer, read_all, send, wait_for_count, wait_until_known
from tests.unit.console.events_made import flag, matched, missed, repeat, unique

pytestmark = pytest.mark.servers

WAIT_S: Final = 120
TAKEN: Final = 'dupwatch_console_events_total{kind="near_miss"}'
OPEN: Final = 'dupwatch_console_open_entries{kind="near_miss"}'
SKIPPED: Final = 'dupwatch_console_events_skipped_total{reason="not_an_event"}'
WITH_ACLS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def nearly(seed: int, name: str) -> list[tuple[str, object]]:
    """Two articles that are just too unlike to be a flag."""
    words = text(seed, 200).split()
    bodies = {"first": words, "nearly": words[:150] + text(seed + 1, 50).split()}
    return [(f"{name}-{part}", article(" ".join(body), source=f"of {part}")) for part, body in bodies.items()]


@contextmanager
def sampling(topics: Topics, store: str, folder: Path, records: list[tuple[str, object]]) -> Iterator[None]:
    """A consumer that sends every near miss, until it has judged these."""
    send(topics, records)
    with running(topics, store, folder, "--set", "kafka.unique=true", "--set", "kafka.near_miss_share=1") as consumer:
        wait_for_count(topics, ["verdicts"], len(records))
        yield
        assert consumer.stop() == 0, consumer.log.read_text()


def put(topics: Topics, *values: bytes | None, topic: str = "near-misses") -> None:
    """Put records into a topic of the sink, all into one partition."""
    producer = ordered_producer(topics.address, {"message.max.bytes": 2_000_000})
    for value in values:
        producer.produce(topics.sink(topic), value, partition=0)
    assert producer.flush(WAIT_S) == 0


def pages(console: Running) -> list[str]:
    """The pages of all open pairs, as they read."""
    return [console.get(f"/flags/{flag_id}").shown for flag_id in console.open_flags()]


def test_a_near_miss_of_a_consumer_is_judged_and_releases_nothing(
    kafka_address: str, place: Place, tmp_path: Path
) -> None:
    """It is in the queue with both sources and texts; what is said of it is exported, and changes nothing else."""
    topics = make_topics(kafka_address, partitions=1)
    store = f"lmdb:{tmp_path / 'store'}"
    with sampling(topics, store, tmp_path, [*nearly(4, "a"), *nearly(11, "b")]):
        pass
    stored = run_process("show", "a-nearly", "--store", store, "--json", *FAST).out
    with consoling(topics, store, place, tmp_path) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 2, WAIT_S)
        queue = console.get("/?kind=near_miss").shown
        assert "near miss" in queue
        assert "of nearly" in queue
        assert "of first" in queue
        (second, first), seen = console.open_flags(), pages(console)
        for page in seen:
            assert "This pair was not flagged. Your answer does not affect the two articles" in page
            assert "Same article" in page
            assert "Different articles" in page
        assert text(4, 200)[:60] in seen[1]
        assert console.decide(first, "right") == 303
        assert console.decide(second, "wrong", "another story") == 303
        assert console.open_flags() == []
        wait_for(lambda: console.metric(OPEN) == 0)
        assert console.metric("dupwatch_console_releases_due") == 0
        assert console.stop() == 0, console.log.read_text()
    reviews = [json.loads(line) for line in run_process("reviews", *place.settings).out.splitlines()]
    told = [(each["schema"], each["kind"], each["decision"], each["sampled_in"]) for each in reviews]
    assert told == [(SCHEMA, "near_miss", "right", 1.0), (SCHEMA, "near_miss", "wrong", 1.0)]
    assert {(each["source"], each["original_source"]) for each in reviews} == {("of nearly", "of first")}
    assert read_all(topics, topics.sink("duplicates")) == []
    assert run_process("show", "a-nearly", "--store", store, "--json", *FAST).out == stored


def test_they_are_read_again_from_the_topic_and_not_from_the_store(kafka_address: str, tmp_path: Path) -> None:
    """The console goes on where it was; a new database gets them by ``--rebuild sink`` alone, which the log says."""
    topics = make_topics(kafka_address, partitions=1)
    store = f"lmdb:{tmp_path / 'store'}"
    with sampling(topics, store, tmp_path, nearly(4, "a")):
        pass
    for folder, more, taken in (("one", [], 1), ("one", [], 0), ("two", ["store"], 0), ("two", ["sink"], 1)):
        (tmp_path / folder).mkdir(exist_ok=True)
        place = sqlite_place(tmp_path / folder)
        given = [word for origin in more for word in ("--rebuild", origin)]
        with consoling(topics, store, place, tmp_path / folder, *given) as console:
            console.wait_ready()
            put(topics, b"{")
            wait_for(lambda: console.metric('dupwatch_console_events_skipped_total{reason="not_an_event"}') > 0, WAIT_S)
            assert console.metric(TAKEN) == taken
            assert console.stop() == 0, console.log.read_text()
        if more == ["store"]:
            assert "It has no near misses; --rebuild sink reads those of topics" in console.log.read_text()


def test_a_topic_that_is_not_there_is_no_error_and_may_come_later(topics: Topics, tmp_path: Path) -> None:
    """It is off by default: the console is ready, and says once that there are none; later they come in."""
    admin = AdminClient({"bootstrap.servers": topics.address})
    name = topics.sink("near-misses")
    delete_topic(topics.address, name)
    store = f"lmdb:{tmp_path / 'store'}"
    judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(3)], 3)
    with consoling(topics, store, sqlite_place(tmp_path), tmp_path) as console:
        console.wait_ready()
        wait_for(lambda: console.metric('dupwatch_console_flags{state="open"}') == 2, WAIT_S)
        wait_for(lambda: "so there are no near misses" in console.log.read_text(), WAIT_S)
        assert console.readiness() == (200, [])
        # Nobody who only looks has made it.
        assert name not in admin.list_topics(timeout=WAIT_S).topics
        admin.create_topics([NewTopic(name, 2, 1)])[name].result(WAIT_S)
        wait_until_known(admin, [name])
        put(topics, encode(missed(1)))
        wait_for(lambda: console.metric(TAKEN) == 1, WAIT_S)
        assert console.readiness() == (200, [])
        assert console.stop() == 0, console.log.read_text()
    assert console.log.read_text().count("so there are no near misses") == 1


def test_what_is_broken_or_newer_costs_no_flag(topics: Topics, tmp_path: Path) -> None:
    """Broken records are counted and named; one of a newer version waits, and says so, while flags come in."""
    store = f"lmdb:{tmp_path / 'store'}"
    huge = encode(missed(2, id="a" * 1_000_000))
    beyond = encode(missed(2)).replace(b'"distance":9', b'"distance":1' + b"0" * 40)
    nan = encode(missed(2)).replace(b'"similarity":0.7', b'"similarity":NaN')
    shown = missed(3, id="<script>alert(1)</script>\u202e\x1b[2J", source="<b>\u2066evil")
    put(topics, b"", b"\xff", None, huge, beyond, nan, encode(missed(1)), encode(shown))
    with consoling(topics, store, sqlite_place(tmp_path), tmp_path) as console:
        signed_in(console, sqlite_place(tmp_path))
        wait_for(lambda: console.metric(TAKEN) == 2, WAIT_S)
        # A page of metrics is not a snapshot: counters change while it is made.
        wait_for(lambda: console.metric('dupwatch_console_events_skipped_total{reason="not_an_event"}') == 5, WAIT_S)
        assert console.metric('dupwatch_console_events_skipped_total{reason="null_value"}') == 1
        log = console.log.read_text()
        assert f"{topics.sink('near-misses')} [0] offset 4 is skipped" in log
        assert "\x1b" not in log
        raw = console.get("/").text
        assert "<script>alert" not in raw
        assert not {"\u202e", "\u2066", "\x1b"} & set(raw)
        put(topics, encode(missed(4)).replace(b"near-miss/1", b"near-miss/2"), encode(missed(5)))
        wait_for(lambda: any("near-miss/2" in reason for reason in console.readiness()[1]), WAIT_S)
        assert console.readiness()[0] == 200
        judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(3)], 3)
        wait_for(lambda: console.metric('dupwatch_console_flags{state="open"}') == 2, WAIT_S)
        assert console.metric(TAKEN) == 2
        assert console.stop() == 0, console.log.read_text()


def test_bank_matches_and_repeats_of_ended_articles_come_from_their_topics(topics: Topics, tmp_path: Path) -> None:
    """Once, and again where the topics are read again; *wrong* releases nothing. Other verdicts are passed over."""
    matches = [matched(1), matched(1, item="late", retroactive=True), matched(2)]
    put(topics, *(msgspec.json.encode(each) for each in matches), topic="bank-matches")
    verdicts = [unique(3), flag(4), repeat(5), repeat(5)]
    put(topics, *(encode_verdict(each) for each in verdicts), topic="verdicts")
    store = f"lmdb:{tmp_path / 'store'}"
    taken = {"bank_match": 2, "ended_before": 1}
    for folder, more, times in (("one", (), 1), ("one", (), 0), ("two", ("--rebuild", "sink"), 1)):
        (tmp_path / folder).mkdir(exist_ok=True)
        place = sqlite_place(tmp_path / folder)
        with consoling(topics, store, place, tmp_path / folder, *more) as console:
            console.wait_ready()
            if times:
                signed_in(console, place)
            put(topics, b"{", topic="bank-matches")
            put(topics, b"{", topic="verdicts")
            wait_for(lambda: console.metric(SKIPPED) >= 2, WAIT_S)
            for kind, events in taken.items():
                assert console.metric(f'dupwatch_console_events_total{{kind="{kind}"}}') == events * times, kind
            if times:
                assert console.metric('dupwatch_console_events_total{kind="other"}') == 2
                for flag_id in console.open_flags():
                    assert console.decide(flag_id, "wrong") == 303
                assert console.open_flags() == []
                assert console.metric("dupwatch_console_releases_due") == 0
            assert console.stop() == 0, console.log.read_text()
    assert read_all(topics, topics.sink("duplicates")) == []


def test_who_may_not_read_them_is_told(own_kafka: Callable[..., KafkaBroker], tmp_path: Path) -> None:
    """Flags come in all the same; once it is allowed, near misses do, too."""
    topics = make_topics(own_kafka(WITH_ACLS).address)
    store = f"lmdb:{tmp_path / 'store'}"
    put(topics, encode(missed(1)))
    denied = (ResourceType.TOPIC, topics.sink("near-misses"), ResourcePatternType.LITERAL, "User:ANONYMOUS", "*")
    deny = (AclOperation.ALL, AclPermissionType.DENY)
    admin = AdminClient({"bootstrap.servers": topics.address})
    of_all(admin.create_acls([AclBinding(*denied, *deny)]))
    with consoling(topics, store, sqlite_place(tmp_path), tmp_path) as console:
        console.wait_ready()
        wait_for(lambda: any("Topic authorization failed" in why for why in console.readiness()[1]), WAIT_S)
        status, reasons = console.readiness()
        reason = next(why for why in reasons if why.startswith("source: "))
        assert status == 200
        assert f"{topics.sink('near-misses')} cannot be read" in reason
        assert f"as the group {topics.prefix}-console-near-misses" in reason
        judged(topics, store, tmp_path, [(f"a{number}", article(text(1))) for number in range(3)], 3)
        wait_for(lambda: console.metric('dupwatch_console_flags{state="open"}') == 2, WAIT_S)
        assert console.log.read_text().count("Topic authorization failed") == 1
        of_all(admin.delete_acls([AclBindingFilter(*denied, *deny)]))
        wait_for(lambda: console.metric(TAKEN) == 1, WAIT_S)
        wait_for(lambda: console.readiness() == (200, []), WAIT_S)
        assert "The near-misses thread goes on." in console.log.read_text()
        assert console.stop() == 0, console.log.read_text()


def of_all(futures: dict[Any, Any]) -> None:
    """Wait until the brokers have done it."""
    for future in futures.values():
        future.result(WAIT_S)
