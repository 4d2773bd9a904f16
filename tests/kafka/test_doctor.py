"""``dupwatch doctor`` against real brokers and a real HBase: what it says is wrong, and that it changes nothing."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs leave out what its module names
    AdminClient,
    NewTopic,
    OffsetSpec,
)

from consumer.config.loading import load_config
from consumer.doctor.brokers import Brokers
from consumer.kafka.client_settings import admin_settings
from consumer.kafka.planned_topics import topic_plan
from consumer.kafka.topics import Shape, SinkTopics, init
from consumer.wiring import components, stores
from deploy.local.ports import free_ports
from tests.cli.command import run_process, text
from tests.kafka.reading import until
from tests.kafka.running import running
from tests.kafka.topics import WAIT_S, Topics, make_topics, ordered_producer, send, wait_for_count, wait_until_known

pytestmark = pytest.mark.servers

LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client's stubs leave it out
QUICK = ("--set", "store.hbase.deadline_s=1")
Findings = dict[str, list[dict[str, Any]]]


def doctor(*arguments: str) -> tuple[int, Findings]:
    """The exit code, and the findings by check."""
    ended = run_process("doctor", "--json", *arguments)
    assert "Traceback" not in ended.err, ended.err
    findings: Findings = {}
    for finding in json.loads(ended.out)["findings"]:
        findings.setdefault(finding["check"], []).append(finding)
        assert finding["status"] == "ok" or finding["remedy"], finding
    return ended.code, findings


def wrong(findings: Findings) -> list[str]:
    """All that is wrong, "check: sentence"."""
    return [
        f"{name}: {finding['found']}"
        for name, found in findings.items()
        for finding in found
        if finding["status"] == "wrong"
    ]


def stream(topics: Topics, *more: str) -> tuple[str, ...]:
    """The options of a run."""
    (port,) = free_ports(1)
    settings = (f"http.listen=127.0.0.1:{port}", f"kafka.group={topics.prefix}", *more)
    return (
        "--source", topics.url(), "--sink", topics.sink_url(),
        *(part for setting in settings for part in ("--set", setting)),
    )  # fmt: skip


@pytest.fixture
def good(kafka_address: str) -> Topics:
    """Topics as dupwatch topics init makes them."""
    return topics_like_ours(kafka_address)


@pytest.fixture
def backdated(kafka_address: str) -> Topics:
    """The same, but producers say when their messages were sent."""
    return topics_like_ours(kafka_address, {"message.timestamp.type": "CreateTime"})


def topics_like_ours(kafka_address: str, own: Mapping[str, str] = MappingProxyType({})) -> Topics:
    """Topics of a sink and a source, which is also set so."""
    topics = make_topics(kafka_address)
    topics = topics._replace(source=f"{topics.prefix}-in", prefix=f"{topics.prefix}-out", partitions=2)
    *sinks, source = topic_plan(SinkTopics(topics.prefix), [topics.source])
    wanted = [*sinks, source._replace(settings={**source.settings, **own})]
    init({"bootstrap.servers": kafka_address}, wanted, Shape(2, 1))
    admin = AdminClient({"bootstrap.servers": kafka_address})
    ends = {TopicPartition(topics.source, number): LATEST for number in range(topics.partitions)}
    # Their leaders are elected a moment later.
    until(lambda: not any(offset.exception() for offset in admin.list_offsets(ends).values()))
    return topics


def committed(topics: Topics, offset: int, **settings: str) -> Consumer:
    """A member of the group that has its partitions and has committed an offset; to be closed."""
    client = {"bootstrap.servers": topics.address, "group.id": topics.prefix, "auto.offset.reset": "earliest"}
    member = Consumer({**client, "enable.auto.commit": False, **settings})
    member.subscribe([topics.source])
    until_s = time.monotonic() + WAIT_S
    while not member.assignment():
        assert time.monotonic() < until_s
        member.poll(0.1)
    member.commit(offsets=[TopicPartition(topics.source, 0, offset)], asynchronous=False)
    return member


def test_all_is_well_and_nothing_is_changed(good: Topics, hbase_address: str, hbase_namespace: str) -> None:
    """Every check is ok, also for a bound store; no topic, group, offset or row is created."""
    store = f"hbase://{hbase_address}/{hbase_namespace}"
    admin = AdminClient({"bootstrap.servers": good.address})

    def seen() -> Any:  # noqa: ANN401  # all that can be asked
        groups = {group.group_id for group in admin.list_consumer_groups().result().valid}
        places = {TopicPartition(good.source, partition): LATEST for partition in range(2)}
        ends = [answer.result().offset for answer in admin.list_offsets(places).values()]
        # Other tests make topics beside this one.
        own = {topic for topic in admin.list_topics(timeout=WAIT_S).topics if topic.startswith(good.prefix)}
        return good.prefix in groups, own, ends

    before = seen()
    code, findings = doctor(*stream(good), "--store", store)
    assert code == 0, findings
    assert wrong(findings) == []
    assert list(findings) == [
        "configuration", "open files", "TLS files", "address of the pages", "brokers", "topics of articles", "group",
        "clocks", "topics of verdicts", "gateways and tables", "settings of the store",
        "size of the window",
    ]  # fmt: skip
    assert "1 broker" in findings["brokers"][0]["found"]
    assert "regions answer, on 1 region servers" in findings["gateways and tables"][-1]["found"]
    assert "not bound to any settings yet" in findings["settings of the store"][0]["found"]
    assert seen() == before
    config = load_config(None, {"store": {"url": store}})
    settings = components.judge_settings(config, components.lexicon_of(config))
    with stores.opened_store(config) as opened:
        assert opened.settings() is None
        opened.agree(settings.encode())
    code, findings = doctor(*stream(good, "judge.max_distance=2"), "--store", store)
    assert code == 4
    (sentence,) = wrong(findings)
    assert "max_distance is 3 in the store and 2 here" in sentence


def test_topics_that_are_not_as_they_have_to_be(kafka_address: str) -> None:
    """A compacted source, one that is missing, and a sink without topics; the exit code is of the first of them."""
    topics = make_topics(kafka_address)
    admin = AdminClient({"bootstrap.servers": kafka_address})
    compacted = f"{topics.prefix}-compacted"
    admin.create_topics([NewTopic(compacted, 1, 1, config={"cleanup.policy": "compact"})])[compacted].result()
    wait_until_known(admin, [compacted])
    there = topics._replace(source=f"{compacted},{topics.prefix}-nowhere", prefix=f"{topics.prefix}-no")
    code, findings = doctor(*stream(there))
    assert code == 3
    found = wrong(findings)
    assert [finding for finding in found if f"{compacted}: is compacted" in finding]
    assert f"topics of articles: The topic {topics.prefix}-nowhere does not exist." in found
    assert f"topics of verdicts: The topic {topics.prefix}-no.dead-letters does not exist." in found
    assert f"{topics.prefix}-nowhere" not in admin.list_topics(timeout=WAIT_S).topics


def test_messages_that_were_deleted_and_a_member_of_the_same_name(backdated: Topics) -> None:
    """The group is behind what is there; a clock that is half an hour ahead shows in its messages."""
    good = backdated
    send(good, [(f"a{number}", {"body": "x"}) for number in range(20)])
    producer = ordered_producer(good.address)
    producer.produce(good.source, b"{}", b"late", 0, timestamp=int((time.time() + 1800) * 1000))
    assert producer.flush(WAIT_S) == 0
    admin = AdminClient({"bootstrap.servers": good.address})
    ends = admin.list_offsets({TopicPartition(good.source, 0): LATEST})
    (end,) = [answer.result().offset for answer in ends.values()]
    member = committed(good, 0, **{"group.instance.id": "dupwatch-0"})
    try:
        (deleted,) = admin.delete_records([TopicPartition(good.source, 0, end - 1)]).values()
        deleted.result()
        _, findings = doctor(*stream(good, "kafka.instance_id=dupwatch-0"))
        assert "1 member" in findings["group"][0]["found"]
        assert f"{end - 1} unread messages were deleted from {good.source}[0]." in wrong(findings)[0]
        assert "ahead of this machine" in findings["clocks"][0]["found"]
        assert findings["clocks"][0]["status"] == "wrong"
        assert any("can backdate a copy" in finding["found"] for finding in findings["topics of articles"])
    finally:
        member.close()


def test_the_clock_of_the_brokers_is_seen_where_a_group_commits(good: Topics) -> None:
    """Commits are dated by the brokers, and a consumer commits all the time."""
    member = committed(good, 0)
    try:
        asked = Brokers(good.address, {"bootstrap.servers": good.address})
        asked.cluster()
        newest = {message.topic: message for message in asked.newest_messages([good.source])}["__consumer_offsets"]
        assert abs(newest.now_ms - newest.time_ms) < 60_000
    finally:
        member.close()


def test_unread_messages_that_are_old(backdated: Topics) -> None:
    """Where messages begin that are younger than was asked; at the end where none is."""
    good = backdated
    producer = ordered_producer(good.address)
    now_ms = int(time.time() * 1000)
    for age_s in (3000, 2000, 10):
        producer.produce(good.source, b"{}", b"a", 0, timestamp=now_ms - 1000 * age_s)
    producer.produce(good.source, b"{}", b"b", 1, timestamp=now_ms - 3_000_000)
    assert producer.flush(WAIT_S) == 0
    asked = Brokers(good.address, admin_settings(good.address, components.kafka_options(load_config(None, {}))))
    asked.cluster()
    found = asked.progress(good.prefix, [good.source], lambda _: 1_000_000)
    assert [(progress.first, progress.end, progress.committed, progress.young) for progress in found] == [
        (0, 3, None, 2),
        (0, 1, None, 1),
    ]
    assert {place.young for place in asked.progress(good.prefix, [good.source], lambda _: None)} == {None}


def test_brokers_that_do_not_answer_hide_nothing_else(
    kafka_address: str, hbase_address: str, hbase_namespace: str
) -> None:
    """Of two gateways one answers, which is a warning; what needs the brokers is not asked."""
    (nobody,) = free_ports(1)
    topics = Topics(f"127.0.0.1:{nobody}", "articles", "p", 1)
    store = f"hbase://127.0.0.1:{nobody},{hbase_address}/{hbase_namespace}"
    code, findings = doctor(*stream(topics), "--store", store, *QUICK)
    assert code == 3
    (sentence,) = wrong(findings)
    assert "do not answer" in sentence
    assert "Connection refused" in sentence
    assert [findings[name][0]["status"] for name in ("topics of articles", "group", "clocks")] == ["unchecked"] * 3
    gateways = {finding["status"]: finding["found"] for finding in findings["gateways and tables"]}
    assert f"127.0.0.1:{nobody} does not answer" in gateways["warning"]
    # A password that no broker asked for: the handshake says so.
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
    pairs = ",".join(f"'{name}'='{value}'" for name, value in (given | {"sasl.password": "geheim"}).items())
    sasl = f"kafka.client={{{pairs}}}"
    code, findings = doctor(*stream(topics._replace(address=kafka_address), sasl))
    assert code == 3
    assert findings["brokers"][0]["status"] == "wrong"
    assert "geheim" not in json.dumps(findings)


def test_a_consumer_that_runs_is_seen_by_doctor_and_top(good: Topics, tmp_path: Path) -> None:
    """Its address is taken by one that is ready, it is in the group, its figures are shown; then that it is away."""
    send(good, [(f"a{number}", {"body": text(number - (number % 5 == 4))}) for number in range(50)])
    with running(good, f"lmdb:{tmp_path / 'store'}", tmp_path) as consumer:
        wait_for_count(good, ["verdicts"], 50)
        consumer.wait_ready()
        url = f"http://127.0.0.1:{consumer.port}"
        watching = ("top", url, "--once", "--interval", "0.2")
        shown = run_process(*watching)
        assert shown.code == 0, shown.err
        (row,) = [line for line in shown.out.decode().splitlines() if line.startswith(url)]
        assert row.split()[-4:] == ["0", "0", "2", "ready"]
        assert "commit" in shown.out.decode()
        _, findings = doctor(
            *stream(good), "--set", f"http.listen=127.0.0.1:{consumer.port}", "--store", f"lmdb:{tmp_path / 'store'}"
        )
        assert findings["address of the pages"][0]["found"].endswith("and is ready.")
        assert "1 member" in findings["group"][0]["found"]
        assert findings["settings of the store"][0]["status"] == "ok"
        assert wrong(findings) == []
        consumer.kill()
        assert "unreachable: Connection refused" in run_process(*watching).out.decode()


def test_gateways_without_the_tables_and_without_an_answer(hbase_address: str) -> None:
    """The remedy for missing tables is a command; gateways that do not answer have another exit code."""
    code, findings = doctor("--store", f"hbase://{hbase_address}/nobodys")
    assert code == 4
    (sentence,) = wrong(findings)
    assert "There is no table nobodys:postings" in sentence
    (nobody,) = free_ports(1)
    code, findings = doctor("--store", f"hbase://127.0.0.1:{nobody}/nobodys", *QUICK)
    assert code == 5
    assert findings["settings of the store"][0]["status"] == "unchecked"
