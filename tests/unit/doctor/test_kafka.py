"""Findings on brokers, topics, group and clocks."""

from typing import Any

import pytest

from consumer.config.sections.kafka import KafkaSection
from consumer.doctor.brokers import OFFSETS_TOPIC, Cluster, GroupMember, GroupProgress, GroupState, NewestMessage
from consumer.doctor.finding import Finding
from consumer.doctor.kafka import (
    clock_findings,
    cluster_findings,
    group_findings,
    progress_findings,
    source_findings,
    topic_findings,
)
from consumer.kafka.offset_metadata import HoldReason
from consumer.kafka.planned_topics import topic_plan
from consumer.kafka.topics import ExistingTopic, SinkTopics
from consumer.model.errors import ConfigError, SinkError, SourceError

SECTION = KafkaSection()
DAY_MS = 86_400_000
KEEP_MS = 8 * DAY_MS
SOURCES = topic_plan(SinkTopics(""), ["articles"])[-1:]
CLUSTER = Cluster("c", 3, {"inter.broker.protocol.version": "3.9-IV0"})


def statuses(findings: list[Finding]) -> list[str]:
    """Return the status of each finding."""
    assert all(finding.remedy for finding in findings if finding.status != "ok")
    return [finding.status for finding in findings]


def topic(**settings: str) -> ExistingTopic:
    """Return a correct topic, except for these settings."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    usual = {"cleanup.policy": "delete", "retention.ms": str(KEEP_MS), "message.timestamp.type": "LogAppendTime"}
    return ExistingTopic(6, 1, usual | given)


def test_brokers_that_are_too_old_for_the_group_protocol() -> None:
    """The new protocol needs brokers that support it; if they do not say, there is no finding."""
    new = KafkaSection(group_protocol="consumer")
    old = CLUSTER._replace(settings={"group.coordinator.rebalance.protocols": "classic"})
    assert statuses(list(cluster_findings(old, SECTION, transactional=False))) == ["ok"]
    found = list(cluster_findings(old, new, transactional=False))
    assert statuses(found) == ["ok", "wrong"]
    assert found[1].run_error is ConfigError
    both = CLUSTER._replace(settings={"group.coordinator.rebalance.protocols": "classic,consumer"})
    assert statuses(list(cluster_findings(both, new, transactional=False))) == ["ok"]
    assert statuses(list(cluster_findings(CLUSTER, new, transactional=False))) == ["ok"]


def test_transactions_that_are_longer_than_the_brokers_allow() -> None:
    """Only with transactions; the configured time-out counts, otherwise the default."""
    short = CLUSTER._replace(settings={"transaction.max.timeout.ms": "20000"})
    assert statuses(list(cluster_findings(short, SECTION, transactional=True))) == ["ok", "wrong"]
    assert statuses(list(cluster_findings(short, SECTION, transactional=False))) == ["ok"]
    asked = KafkaSection(producer={"transaction.timeout.ms": 10_000})
    assert statuses(list(cluster_findings(short, asked, transactional=True))) == ["ok"]


def test_a_source_topic_that_is_as_it_has_to_be() -> None:
    """It retains window and slack, has times set by the brokers, no compaction and no limit in bytes."""
    assert statuses(list(source_findings(SOURCES, {"articles": topic()}, KEEP_MS))) == ["ok"]
    assert statuses(list(source_findings(SOURCES, {"articles": topic(retention_ms="-1")}, KEEP_MS))) == ["ok"]


@pytest.mark.parametrize(
    ("settings", "status", "named"),
    [
        ({"cleanup_policy": "compact"}, "wrong", "compacted"),
        ({"cleanup_policy": "compact,delete"}, "wrong", "compacted"),
        ({"retention_ms": "3600000"}, "wrong", "1.0 h"),
        ({"retention_ms": str(7 * DAY_MS)}, "warning", "168.0 h"),
        ({"message_timestamp_type": "CreateTime"}, "warning", "backdate"),
        ({"retention_bytes": "1000000000"}, "warning", "retention.bytes"),
        ({"max_message_bytes": "1048588"}, "wrong", "max.message.bytes"),
    ],
)
def test_a_source_topic_that_is_not(settings: dict[str, str], status: str, named: str) -> None:
    """Each setting that breaks a requirement is reported."""
    found = list(source_findings(SOURCES, {"articles": topic(**settings)}, KEEP_MS))
    matching = [finding for finding in found if named in finding.found]
    assert statuses(matching) == [status]
    assert all(finding.run_error in {None, SourceError} for finding in found)


def test_topics_that_are_missing() -> None:
    """For a sink's topic the remedy names the command that creates it."""
    plans = topic_plan(SinkTopics("p"))
    found = list(topic_findings(plans, {}, "dupwatch topics init --sink kafka://h:1/p"))
    assert statuses(found) == ["wrong"] * len(plans)
    assert {finding.run_error for finding in found} == {SinkError}
    assert "dupwatch topics init --sink kafka://h:1/p" in str(found[0].remedy)
    assert statuses(list(source_findings(SOURCES, {}, KEEP_MS))) == ["wrong"]


@pytest.mark.parametrize(
    ("replicas", "status", "named"),
    [
        ({"out_of_sync": (0, 3), "missing_brokers": (2,), "in_sync_min": 2}, "warning", "2 of 6 partitions"),
        ({"out_of_sync": (0,), "missing_brokers": (2, 3), "in_sync_min": 1}, "wrong", "1 replica in sync"),
        (
            {"out_of_sync": (4,), "missing_brokers": (2, 3), "in_sync_min": 0, "leaderless": (4,)},
            "wrong",
            "write: 4.",
        ),
    ],
)
def test_replicas_of_brokers_that_are_away(replicas: dict[str, Any], status: str, named: str) -> None:
    """One that others stand in for is a warning; where nothing can be written the topic is wrong. Brokers are named."""
    found = topic(min_insync_replicas="2", retention_ms=str(KEEP_MS))._replace(**replicas)
    (plan,) = (plan for plan in topic_plan(SinkTopics("p")) if plan.name == "p.verdicts")
    for findings, means in (
        (list(source_findings(SOURCES, {"articles": found}, KEEP_MS)), SourceError),
        (list(topic_findings([plan], {plan.name: found}, "init")), SinkError),
    ):
        assert statuses(findings) == ["ok", status]
        assert named in findings[1].found
        assert "why they lag behind: 2" in str(findings[1].remedy)
        assert findings[1].run_error is (means if status == "wrong" else None)


def test_replicas_that_are_all_in_sync() -> None:
    """Nothing is said of them, nor of a topic without partitions."""
    for in_sync in (2, 3, None):
        found = topic(min_insync_replicas="2")._replace(in_sync_min=in_sync)
        assert statuses(list(source_findings(SOURCES, {"articles": found}, KEEP_MS))) == ["ok"]


def test_the_clean_feed_may_be_compacted_and_dead_letters_may_not() -> None:
    """Compaction is judged separately for each topic."""
    plans = {plan.name: plan for plan in topic_plan(SinkTopics("p"))}
    there = dict.fromkeys(plans, topic(cleanup_policy="compact", retention_ms="-1"))
    by_topic = {name: statuses(list(topic_findings([plan], there, "init"))) for name, plan in plans.items()}
    assert by_topic["p.unique"] == ["ok"]
    assert by_topic["p.dead-letters"] == by_topic["p.duplicates"] == by_topic["p.verdicts"] == ["wrong"]
    there = dict.fromkeys(plans, topic(retention_ms=str(30 * DAY_MS)))
    assert statuses(list(topic_findings([plans["p.dead-letters"]], there, "init"))) == ["wrong"]


def test_the_clean_feed_is_not_deleted_by_the_times_of_its_articles() -> None:
    """With a time limit the brokers must set the times; without one, or with compaction alone, producers may."""
    (plan,) = (topic for topic in topic_plan(SinkTopics("p")) if topic.name == "p.unique")
    for settings, expected in (
        ({}, ["wrong"]),
        ({"cleanup_policy": "compact,delete"}, ["wrong"]),
        ({"cleanup_policy": "compact"}, ["ok"]),
        ({"retention_ms": "-1"}, ["ok"]),
        ({"message_timestamp_type": "LogAppendTime"}, ["ok"]),
    ):
        found = {"p.unique": topic(**({"message_timestamp_type": "CreateTime"} | settings))}
        assert statuses(list(topic_findings([plan], found, "init"))) == expected, settings


def member(host: str, instance_id: str | None = None) -> GroupMember:
    """Return a member of the group."""
    return GroupMember("rdkafka", host, instance_id, 1)


def test_a_static_member_of_this_name_that_is_elsewhere() -> None:
    """Two consumers with one name replace each other; a member on this machine is the consumer itself."""
    mine = KafkaSection(instance_id="dupwatch-0")
    there = GroupState("stable", (member("10.0.0.9", "dupwatch-0"), member("10.0.0.1", "dupwatch-1")))
    found = list(group_findings(there, mine, 6, {"10.0.0.1"}))
    assert statuses(found) == ["ok", "wrong"]
    assert "10.0.0.9" in found[1].found
    assert statuses(list(group_findings(there, mine, 6, {"10.0.0.9"}))) == ["ok"]
    assert statuses(list(group_findings(there, KafkaSection(), 6, {"10.0.0.1"}))) == ["ok"]


def test_more_members_than_partitions() -> None:
    """Idle members are a warning; an empty group is ok."""
    group = GroupState("stable", (member("a"), member("b"), member("c")))
    assert statuses(list(group_findings(group, SECTION, 2, set()))) == ["ok", "warning"]
    assert statuses(list(group_findings(group, SECTION, 3, set()))) == ["ok"]
    assert statuses(list(group_findings(GroupState("empty", ()), SECTION, 3, set()))) == ["ok"]


def test_brokers_that_have_no_group() -> None:
    """Without any group the check is unchecked."""
    assert statuses(list(group_findings(None, SECTION, 3, set()))) == ["unchecked"]


def at(first: int, end: int, committed: int | None, young: int | None = None) -> GroupProgress:
    """Return the progress of the group in a partition."""
    return GroupProgress("articles", 0, first, end, committed, young)


def test_lag_and_messages_that_were_deleted_before_they_were_read() -> None:
    """Lost messages stop a run, unless ``kafka.on_gap`` is "continue"."""
    (finding,) = progress_findings([at(0, 100, 90), at(0, 50, 50)], SECTION)
    assert finding.found == "The group dupwatch has 10 messages to read."
    found = list(progress_findings([at(40, 100, 10)], SECTION))
    assert statuses(found) == ["ok", "wrong"]
    assert "60 messages to read" in found[0].found
    assert "30 unread messages were deleted from articles[0]." in found[1].found
    going_on = list(progress_findings([at(40, 100, 10)], KafkaSection(on_gap="continue")))
    assert statuses(going_on) == ["ok", "warning"]


def test_unread_messages_that_are_about_to_be_deleted() -> None:
    """A group is warned before messages it has not read are deleted."""
    assert statuses(list(progress_findings([at(0, 100, 10, young=20)], SECTION))) == ["ok", "warning"]
    assert statuses(list(progress_findings([at(0, 100, 20, young=20)], SECTION))) == ["ok"]
    assert statuses(list(progress_findings([at(0, 100, 10, young=None)], SECTION))) == ["ok"]


def test_a_partition_that_is_held() -> None:
    """It is named as ``dupwatch poison`` names it, with the number of waiting messages, and is only a warning."""
    progress = at(0, 100, 40)._replace(held=HoldReason(bad=6, records=10, reason="invalid_json"))
    found = list(progress_findings([progress, at(0, 50, 50)], SECTION))
    assert statuses(found) == ["ok", "warning"]
    assert found[1].found.startswith("articles:0 is held at offset 40: 6 of the last 10 records cannot be judged")
    assert "60 messages wait there." in found[1].found
    assert "dupwatch poison resume" in (found[1].remedy or "")


def test_a_group_that_has_committed_nothing() -> None:
    """The finding says where the group will start."""
    found = list(progress_findings([at(5, 100, None)], KafkaSection(start="latest")))
    assert statuses(found) == ["ok", "ok"]
    assert "with 95 messages; there it starts at the latest offset" in found[1].found


def test_clocks_that_differ() -> None:
    """A message from the future reveals it: a warning, or an error beyond ``kafka.ahead_s_max``."""

    def clock_messages(ahead_ms: int, topic: str = OFFSETS_TOPIC) -> list[str]:
        return statuses(list(clock_findings([NewestMessage(topic, 1_000_000 + ahead_ms, 1_000_000)], set(), 300_000)))

    assert clock_messages(0) == clock_messages(-5_000) == clock_messages(5_000) == ["ok"]
    assert clock_messages(5_001) == ["warning"]
    assert clock_messages(300_001) == ["wrong"]
    assert clock_messages(-5_001) == ["unchecked"]


def test_only_times_that_brokers_set_say_that_clocks_agree() -> None:
    """A producer may set any time, so a fresh message of one proves nothing about the brokers' clock."""
    fresh = [NewestMessage("articles", 1_000_000, 1_000_000)]
    (untold,) = clock_findings(fresh, set(), 300_000)
    assert untold.status == "unchecked"
    # Nothing is committed where nothing comes.
    assert untold.remedy is not None
    assert "while articles arrive" in untold.remedy
    assert statuses(list(clock_findings(fresh, {"articles"}, 300_000))) == ["ok"]
    assert statuses(list(clock_findings([], set(), 300_000))) == ["unchecked"]
    ahead = [NewestMessage("articles", 1_060_000, 1_000_000), NewestMessage(OFFSETS_TOPIC, 1_000_000, 1_000_000)]
    found = list(clock_findings(ahead, set(), 300_000))
    assert statuses(found) == ["warning"]
    assert "the producers' with NTP" in str(found[0].remedy)
