"""The whole consumer, as its users start it: articles from a topic, verdicts to topics, nothing lost."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from deploy.local.hbase import ThriftGateway
from tests.cli.command import SCHEMAS, text
from tests.examples import drawn
from tests.kafka.reading import commit, committed, delete_records, until
from tests.kafka.running import END_S, running
from tests.kafka.topics import Topics, make_topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers

EXACTLY_ONCE = (
    "--set", "kafka.delivery=exactly-once",
    # A transaction that was left open keeps readers waiting until it times out.
    "--set", 'kafka.producer={"transaction.timeout.ms"=5000}',
)  # fmt: skip
_DELIVERIES = [pytest.param((), id="at least once"), pytest.param(EXACTLY_ONCE, id="exactly once")]
BOTH = pytest.mark.parametrize("more", _DELIVERIES)
EITHER = pytest.mark.parametrize("more", drawn(_DELIVERIES, 2))
"""For tests that take long; ``make test-load`` runs them with both."""
SHORT_SESSION = ("--set", 'kafka.consumer={"session.timeout.ms"=6000, "heartbeat.interval.ms"=2000}')
ALL = ("verdicts", "dead-letters")


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, two partitions each."""
    return make_topics(kafka_address)


def article(body: str, **fields: object) -> dict[str, object]:
    """An article without an id: the key is its id."""
    return {"body": body, "title": "A title"} | fields


def feed(count: int) -> list[tuple[str, object]]:
    """Articles of which every fifth repeats the one before."""
    return [(f"a{number}", article(text(number - (number % 5 == 4)))) for number in range(count)]


@BOTH
def test_a_feed_is_judged_and_what_is_said_goes_where_it_belongs(
    topics: Topics, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """Flags, all verdicts, the clean feed and dead letters; headers say where each comes from; SIGTERM ends with 0."""
    trace = [("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("own", b"\xff\0")]
    count = send(topics, feed(100), trace)
    bad = [("bad", b"{"), (None, article("x")), ("one", article("x", id="other"))]
    count += send(topics, bad, trace)
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, "--set", "kafka.unique=true", *more) as consumer:
        wait_for_count(topics, ALL, count)
        consumer.wait_ready()
        assert consumer.page("/healthz")[0] == 200
        # What is to be seen of a batch is counted after it, and others may have the processor just then.
        until(lambda: consumer.metric("dupwatch_articles_total") == 100)
        assert consumer.stop() == 0, consumer.log.read_text()
    verdicts = read_all(topics, topics.sink("verdicts"))
    validator = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "verdict.schema.json").read_bytes()))
    for verdict in verdicts:
        validator.validate(verdict.content)
        assert verdict.key == verdict.content["id"].encode()
        headers = dict(verdict.headers)
        assert headers["traceparent"] == trace[0][1]
        assert headers["dupwatch-origin-topic"] == topics.source.encode()
    assert Counter(verdict.content["outcome"] for verdict in verdicts) == {"unique": 80, "duplicate": 20}
    flags = read_all(topics, topics.sink("duplicates"))
    # Which of a pair is kept depends on whose partition was read first.
    pairs = {frozenset((flag.content["id"], flag.content["duplicate_of"])) for flag in flags}
    assert pairs == {frozenset((f"a{number - 1}", f"a{number}")) for number in range(4, 100, 5)}
    sent = {message.key: message for message in read_all(topics, topics.source)}
    for message in read_all(topics, topics.sink("unique")):
        if message.value is not None:
            assert (message.value, message.headers[:-1]) == (sent[message.key].value, sent[message.key].headers)
            assert message.headers[-1] == ("dupwatch-timestamp-ms", b"%d" % sent[message.key].timestamp_ms)
    letters = read_all(topics, topics.sink("dead-letters"))
    reasons = {letter.key: dict(letter.headers)["dupwatch-reason"] for letter in letters}
    assert reasons == {b"bad": b"invalid_json", None: b"missing_key", b"one": b"key_contradicts_id"}
    assert {(letter.value, letter.headers[:2] == trace) for letter in letters} == {
        (sent[letter.key].value, True) for letter in letters
    }


@EITHER
def test_near_misses_are_sent_where_they_are_asked_for(
    kafka_address: str, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """A pair just under the threshold, by its schema, with the sources; its verdict says nothing of it."""
    topics = make_topics(kafka_address, partitions=1)
    words = text(4, 200).split()
    feed = [("first", words), ("nearly", words[:150] + text(5, 50).split()), ("other", text(3, 200).split())]
    send(topics, [(name, article(" ".join(body), source=f"of {name}")) for name, body in feed])
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, "--set", "kafka.near_miss_share=1", *more) as consumer:
        wait_for_count(topics, ALL, 3)
        until(lambda: consumer.metric("dupwatch_near_misses_total") == 1)
        assert consumer.stop() == 0, consumer.log.read_text()
    (near_miss,) = read_all(topics, topics.sink("near-misses"))
    schema = json.loads((SCHEMAS / "near-miss.schema.json").read_bytes())
    jsonschema.Draft202012Validator(schema).validate(near_miss.content)
    assert near_miss.key == b"nearly"
    assert near_miss.content["original"] == "first"
    assert (near_miss.content["source"], near_miss.content["original_source"]) == ("of nearly", "of first")
    verdicts = {verdict.content["id"]: verdict.content for verdict in read_all(topics, topics.sink("verdicts"))}
    assert {verdict["outcome"] for verdict in verdicts.values()} == {"unique"}
    of_verdict = verdicts["nearly"]
    for member in ("version", "arrived_at", "decided_at"):
        assert near_miss.content[member] == of_verdict[member]


@EITHER
def test_versions_and_retractions(kafka_address: str, tmp_path: Path, more: tuple[str, ...]) -> None:
    """What an id says again is in force again. After a kill, and read again from the first, all verdicts are the same.

    A null value retracts, and retracted content matches nothing.
    """
    topics, store = make_topics(kafka_address, partitions=1), f"lmdb:{tmp_path / 'store'}"
    says = [("a", 1), ("a", 2), ("a", 1), ("b", 2), ("c", 1), ("a", None), ("d", 1), ("a", 1)]
    send(topics, [(name, None if number is None else article(text(number))) for name, number in says])
    one_by_one = ("--set", "source.batch_records_max=1", *SHORT_SESSION, *more)
    with running(topics, store, tmp_path, *one_by_one) as consumer:
        wait_for_count(topics, ["verdicts"], 3)
        consumer.kill()
    for _ in range(2):
        with running(topics, store, tmp_path, *one_by_one) as consumer:
            until(lambda: committed(topics.address, topics.prefix, topics.source, 1) == [len(says)])
            assert consumer.stop() == 0, consumer.log.read_text()
        commit(topics.address, topics.prefix, topics.source, {0: 0})
    # Until the transaction of the killed consumer times out, readers do not get what comes after it.
    until(lambda: len(distinct_verdicts(topics)) >= len(says))
    verdicts = [json.loads(event) for event in distinct_verdicts(topics)]
    assert [(verdict["id"], verdict["duplicate_of"] or verdict["outcome"]) for verdict in verdicts] == [
        ("a", "unique"),
        ("a", "unique"),
        ("a", "unique"),
        ("b", "unique"),
        ("c", "a"),
        ("a", "retracted"),
        ("d", "unique"),
        ("a", "d"),
    ]
    assert verdicts[4]["duplicate_of_version"] == verdicts[2]["version"] != verdicts[0]["version"]


def distinct_verdicts(topics: Topics) -> list[bytes]:
    """Return the verdicts in the topic of all of them, each once."""
    return list(dict.fromkeys(verdict.value or b"" for verdict in read_all(topics, topics.sink("verdicts"))))


@pytest.mark.parametrize(
    "more", [pytest.param((), marks=pytest.mark.load), EXACTLY_ONCE], ids=["at least once", "exactly once"]
)
def test_consumers_that_are_killed_lose_nothing(topics: Topics, tmp_path: Path, more: tuple[str, ...]) -> None:
    """Killed with -9 again and again in the middle; each version gets its one verdict, exactly once where asked for."""
    count = 2_000
    send(topics, feed(count))
    store = f"lmdb:{tmp_path / 'store'}"
    few = ("--set", "source.batch_records_max=20", *SHORT_SESSION)
    for done in (200, 900):
        with running(topics, store, tmp_path, *few, *more) as consumer:
            wait_for_count(topics, ["verdicts"], done)
            consumer.kill()
    with running(topics, store, tmp_path, *more) as consumer:
        wait_for_seen(topics, count)
        assert consumer.stop() == 0
    check_verdicts(topics, count, once=bool(more))


@EITHER
def test_a_rolling_restart_loses_none_and_repeats_none_where_asked(
    topics: Topics, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """Two consumers, each stopped and started while the feed continues."""
    store = f"lmdb:{tmp_path / 'store'}"
    # A member that leaves in the middle of a rebalance is missed until its session ends.
    few = ("--set", "source.batch_records_max=20", *SHORT_SESSION, *more)
    with running(topics, store, tmp_path, *few) as first, running(topics, store, tmp_path, *few) as second:
        first.wait_ready()
        second.wait_ready()
        send(topics, feed(2_000))
        wait_for_count(topics, ["verdicts"], 200)
        assert first.stop() == 0, first.log.read_text()
        with running(topics, store, tmp_path, *few) as third:
            third.wait_ready()
            assert second.stop() == 0, second.log.read_text()
            wait_for_seen(topics, 2_000)
            assert third.stop() == 0, third.log.read_text()
    check_verdicts(topics, 2_000, once=bool(more))


def test_where_records_went_unread_the_group_is_told_in_a_transaction(topics: Topics, tmp_path: Path) -> None:
    """Also of a partition that is read to its end; the rest of the other one is judged once."""
    send(topics, feed(20))
    ends = Counter(message.partition for message in read_all(topics, topics.source))
    commit(topics.address, topics.prefix, topics.source, dict.fromkeys(ends, 0))
    delete_records(topics.address, topics.source, 0, ends[0])
    delete_records(topics.address, topics.source, 1, 3)
    more = (*EXACTLY_ONCE, "--set", "kafka.on_gap=continue")
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, *more) as consumer:
        wait_for_count(topics, ["verdicts"], ends[1] - 3)
        until(lambda: committed(topics.address, topics.prefix, topics.source) == [ends[0], ends[1]])
        assert consumer.metric("dupwatch_records_lost_to_retention_total") == ends[0] + 3
        assert consumer.stop() == 0, consumer.log.read_text()
    assert len(read_all(topics, topics.sink("verdicts"))) == ends[1] - 3


def wait_for_seen(topics: Topics, count: int) -> None:
    """Return when there are verdicts of this many ids."""
    wait_for_count(topics, ["verdicts"], count)
    for _ in range(100):
        if len({verdict.key for verdict in read_all(topics, topics.sink("verdicts"))}) == count:
            return
    raise AssertionError("some verdict never came")


def check_verdicts(topics: Topics, count: int, *, once: bool) -> None:
    """Every article has a verdict, all events of one are equal, and a fifth are duplicates of the one before."""
    seen = read_all(topics, topics.sink("verdicts"))
    events: dict[bytes | None, set[bytes | None]] = {}
    for verdict in seen:
        events.setdefault(verdict.key, set()).add(verdict.value)
    assert len(events) == count
    assert {len(values) for values in events.values()} == {1}
    assert Counter(json.loads(value or b"")["outcome"] for (value,) in events.values()) == {
        "unique": count * 4 // 5,
        "duplicate": count // 5,
    }
    if once:
        assert len(seen) == count


def test_a_store_that_goes_away_is_waited_for(
    topics: Topics, tmp_path: Path, new_gateway: Callable[..., ThriftGateway], hbase_namespace: str
) -> None:
    """It is not ready then, though alive; it resumes with the store, and there are no dead letters."""
    gateway = new_gateway()
    store = f"hbase://{gateway.address}/{hbase_namespace}"
    with running(topics, store, tmp_path, "--set", "store.hbase.deadline_s=5") as consumer:
        send(topics, feed(50))
        wait_for_count(topics, ["verdicts"], 50)
        consumer.wait_ready()
        gateway.kill9()
        consumer.wait_ready(ready=False)
        send(topics, feed(100)[50:])
        assert [reason.partition(":")[0] for reason in consumer.reasons()] == ["store"]
        assert consumer.page("/healthz")[0] == 200
        assert consumer.metric("dupwatch_unreachable") == 1
        # Not only the probe: the run itself meets the outage, and waits.
        until(lambda: "waiting for it" in consumer.log.read_text())
        gateway.start()
        wait_for_count(topics, ["verdicts"], 100)
        consumer.wait_ready()
        assert consumer.metric("dupwatch_unreachable") == 0
        assert consumer.stop() == 0, consumer.log.read_text()
    assert read_all(topics, topics.sink("dead-letters")) == []
    check_verdicts(topics, 100, once=False)


def test_a_topic_that_is_not_there_is_named(kafka_address: str, tmp_path: Path) -> None:
    """With the command that makes it."""
    topics = make_topics(kafka_address)._replace(source="nowhere")
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path) as consumer:
        assert consumer.process.wait(END_S) == 3
        assert "nowhere" in consumer.log.read_text()
