"""The topics that ``dupwatch topics init`` makes, and what it says of those that are there."""

import json
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs leave out what its module names
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from consumer.kafka.planned_topics import topic_plan
from consumer.kafka.topics import ExistingTopic, Shape, SinkTopics, differences, missing_topics, new_topic
from deploy.local.kafka import KafkaBroker
from tests.cli.command import Outcome, run_process, wait_for
from tests.kafka.reading import WAIT_S, delete_topic

EARLIEST: Final[Any] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client's stubs leave it out
DUPLICATES, VERDICTS, UNIQUE, LETTERS, FLOODS, STORIES, NEAR_MISSES, BANK_MATCHES, ARTICLES = topic_plan(
    SinkTopics("p"), ["articles"]
)
GOOD = ExistingTopic(
    6,
    1,
    {
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
        "min.insync.replicas": "1",
        "message.timestamp.type": "LogAppendTime",
    },
)
DAY_MS = 86_400_000


def changed(**settings: str) -> ExistingTopic:
    """A topic like the good one, with these settings, an underscore for each dot."""
    return GOOD._replace(settings={**GOOD.settings, **{name.replace("_", "."): at for name, at in settings.items()}})


def problems_of(topic: object, found: ExistingTopic, shape: Shape = Shape(None, None)) -> str:  # noqa: B008  # it is a constant
    """All differences, in one text."""
    return " | ".join(differences(topic, found, shape))  # type: ignore[arg-type]


def test_a_topic_as_it_has_to_be_has_no_differences() -> None:
    """Defaults of a broker differ from ours in nothing that matters."""
    assert problems_of(DUPLICATES, GOOD) == problems_of(VERDICTS, GOOD) == problems_of(UNIQUE, GOOD) == ""


def test_only_the_clean_feed_may_be_compacted() -> None:
    """Compaction is named for every other topic, with its reason."""
    compacted = changed(cleanup_policy="compact", retention_ms="1")
    assert problems_of(UNIQUE, compacted) == ""
    for topic in (DUPLICATES, VERDICTS, LETTERS, ARTICLES):
        assert f"is compacted, but must not be ({topic.compaction})" in problems_of(topic, compacted)


def test_short_retention_is_named() -> None:
    """Less than a day is too short; any time limit is for dead letters, which keep their records' times."""
    assert "retention.ms is 3600000 (1.0 h)" in problems_of(VERDICTS, changed(retention_ms="3600000"))
    assert (
        problems_of(VERDICTS, changed(retention_ms="86400000"))
        == problems_of(VERDICTS, changed(retention_ms="-1"))
        == ""
    )
    assert "would be deleted on arrival" in problems_of(LETTERS, changed(retention_ms="604800000"))
    assert problems_of(LETTERS, changed(retention_ms="-1")) == ""


def test_partitions_copies_and_sizes_are_compared() -> None:
    """What was asked for is compared; of three copies two are in sync; a topic takes what a record may be."""
    assert problems_of(DUPLICATES, GOOD, Shape(3, 2)) == "has 6 partitions, not 3 | has 1 copy, not 2"
    assert problems_of(DUPLICATES, GOOD, Shape(6, 1)) == ""
    assert "min.insync.replicas is 1" in problems_of(DUPLICATES, GOOD._replace(replication=3))
    assert "max.message.bytes is 1048588" in problems_of(UNIQUE, changed(max_message_bytes="1048588"))


def test_three_copies_are_safe_copies() -> None:
    """As many copies as there are brokers, three at most; with three, two have to be in sync."""
    assert [new_topic(UNIQUE, Shape(None, None), brokers).replication_factor for brokers in (1, 2, 3, 9)] == [
        1,
        2,
        3,
        3,
    ]
    assert "min.insync.replicas" not in (new_topic(UNIQUE, Shape(None, 2), 3).config or {})
    assert (new_topic(UNIQUE, Shape(None, None), 3).config or {})["min.insync.replicas"] == "2"


def dupwatch(*arguments: str) -> Outcome:
    """Run the command."""
    return run_process("topics", "init", *arguments)


def test_printing_asks_nobody() -> None:
    """--print needs no broker, and names every topic with its settings."""
    ran = dupwatch("--sink", "kafka://127.0.0.1:1/p", "--source", "kafka://127.0.0.1:1/articles", "--print")
    assert ran.code == 0, ran.err
    names = [line.partition(":")[0] for line in ran.out.decode().splitlines() if not line.startswith(" ")]
    sinks = ["p.duplicates", "p.verdicts", "p.unique", "p.dead-letters", "p.floods"]
    sinks += ["p.stories", "p.near-misses", "p.bank-matches"]
    assert names == [*sinks, "articles"]
    assert "cleanup.policy=delete" in ran.out.decode()
    kept = next(line for line in ran.out.decode().splitlines() if line.startswith("articles:"))
    assert f"retention.ms={8 * DAY_MS} " in kept
    assert kept.endswith("message.timestamp.type=LogAppendTime")
    longer = ("--set", "judge.window_s=864000", "--set", "store.slack_s=86400")
    ran = dupwatch("--sink", "kafka://h:1/p", "--source", "kafka://h:1/articles", "--print", *longer)
    assert f"articles: partitions=6 cleanup.policy=delete retention.ms={11 * DAY_MS} " in ran.out.decode()
    assert dupwatch("--sink", "kafka://127.0.0.1:1/p,q", "--print").code == 2
    assert dupwatch("--sink", "kafka://h:1/p", "--source", "kafka://h:2/a", "--print").code == 2


@pytest.mark.servers
def test_missing_topics_are_made_and_others_left(kafka_address: str) -> None:
    """What is missing is made with its settings; what is there is not touched, and wrong ones end with exit code 6."""
    prefix = f"test-{uuid.uuid4().hex[:12]}"
    topics = SinkTopics(prefix)
    sink = ("--sink", f"kafka://{kafka_address}/{prefix}")
    admin = AdminClient({"bootstrap.servers": kafka_address})
    wrong = NewTopic(topics.verdicts_topic, num_partitions=1, replication_factor=1, config={"retention.ms": "1000"})
    admin.create_topics([wrong])[topics.verdicts_topic].result()
    names = [topics.duplicates_topic, topics.verdicts_topic, topics.unique_topic, topics.dead_letters_topic]
    names += [topics.floods_topic, topics.stories_topic, topics.near_misses_topic, topics.bank_matches_topic]
    settings = {"bootstrap.servers": kafka_address}
    # Brokers show a topic a moment after they have said that it is made.
    wait_for(lambda: missing_topics(settings, names) == [name for name in names if name != topics.verdicts_topic])

    first = dupwatch(*sink, "--source", f"kafka://{kafka_address}/{prefix}.articles", "--partitions", "2")
    assert first.code == 6, first.err
    assert f"{topics.verdicts_topic}: differs" in first.out.decode()
    assert "has 1 partition, not 2" in first.out.decode()
    assert "retention.ms is 1000" in first.out.decode()
    assert first.out.decode().count(": created") == 8
    wait_for(lambda: missing_topics(settings, [*names, f"{prefix}.articles"]) == [])
    there = admin.list_topics(timeout=WAIT_S).topics
    assert [len(there[name].partitions) for name in names] == [2, 1, 2, 2, 2, 2, 2, 2]
    letters = config_of(admin, topics.dead_letters_topic)
    assert (letters["retention.ms"], letters["cleanup.policy"]) == ("-1", "delete")
    assert config_of(admin, topics.verdicts_topic)["retention.ms"] == "1000"

    delete_topic(kafka_address, topics.verdicts_topic)
    again = dupwatch(*sink, "--partitions", "2")
    assert again.code == 0, json.dumps([again.out.decode(), again.err])
    assert again.out.decode().count(": ok") == 7
    wait_for(lambda: missing_topics(settings, names) == [])
    assert dupwatch(*sink).code == 0


@pytest.mark.servers
def test_an_old_article_stays_in_the_clean_feed(own_kafka: Callable[..., KafkaBroker]) -> None:
    """One that is older than the retention goes at once from a topic that goes by the articles' times, as this did."""
    broker = own_kafka({"log.retention.check.interval.ms": "200", "log.initial.task.delay.ms": "200"})
    settings: dict[str, Any] = {"bootstrap.servers": broker.address}
    admin = AdminClient(settings)
    by_article = NewTopic("by-article", 1, 1, config={"retention.ms": str(30 * DAY_MS)})
    admin.create_topics([by_article])["by-article"].result()
    created = dupwatch("--sink", f"kafka://{broker.address}/p", "--partitions", "1")
    assert created.code == 0, created.err
    wait_for(lambda: missing_topics(settings, ["p.unique", "by-article"]) == [])
    producer = Producer(settings)
    for topic in ("p.unique", "by-article"):
        producer.produce(topic, b"{}", b"a", timestamp=int(time.time() * 1000) - 40 * DAY_MS)
    assert producer.flush(WAIT_S) == 0

    def first(topic: str) -> int:
        place = TopicPartition(topic, 0)
        (answer,) = admin.list_offsets({place: EARLIEST}).values()
        return int(answer.result().offset)

    wait_for(lambda: first("by-article") == 1)
    # Topics are looked at in turn: by the second message that goes, the first topic was looked at too.
    producer.produce("by-article", b"{}", b"b", timestamp=int(time.time() * 1000) - 40 * DAY_MS)
    assert producer.flush(WAIT_S) == 0
    wait_for(lambda: first("by-article") == 2)
    assert first("p.unique") == 0


def config_of(admin: AdminClient, name: str) -> dict[str, str]:
    """A topic's settings."""
    (answer,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)]).values()
    return {entry.name: entry.value for entry in answer.result().values()}
