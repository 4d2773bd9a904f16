"""What is wrong with brokers, topics, group and clocks, told from facts that were asked for: pure functions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from consumer.config.sections.kafka import KafkaSection
from consumer.doctor.brokers import OFFSETS, Cluster, Group, Newest, Progress
from consumer.doctor.finding import Finding, ok, sentence, unchecked, warning, wrong
from consumer.kafka.client_settings import TRANSACTION_TIMEOUT_MS
from consumer.kafka.topics import (
    BY_BROKER,
    BY_PRODUCER,
    KEEP_FLOOR_MS,
    TIME_OF,
    FoundTopic,
    PlannedTopic,
    dated_by_producers,
    misfits,
)
from consumer.model.errors import ConfigError, Fatal, SinkError, SourceError
from consumer.model.record import partition_name
from storage.clock import MS_PER_S

CLOCKS_AGREE_MS: Final = 5_000
"""Clocks that are no further apart than this, with the age of a message between them, agree."""
STALE_SHARE: Final = 0.75
"""A message that has used up this share of its topic's retention is about to be deleted."""
_MS_PER_H: Final = 3_600_000
_NEXT_GENERATION: Final = "consumer"
_VERSION: Final = "inter.broker.protocol.version"
_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
_TRANSACTION_MAX: Final = "transaction.max.timeout.ms"


def cluster_findings(cluster: Cluster, section: KafkaSection, *, transactional: bool) -> Iterator[Finding]:
    """What brokers that answer can do."""
    version = cluster.settings.get(_VERSION)
    told = f", of version {version} or later" if version else ""
    yield ok(f"{cluster.brokers} brokers of the cluster {cluster.id} answer{told}.")
    protocols = cluster.settings.get(_PROTOCOLS)
    if section.group_protocol == _NEXT_GENERATION and protocols and _NEXT_GENERATION not in protocols.split(","):
        yield wrong(
            ConfigError,
            f'kafka.group_protocol is "consumer", and the brokers have {protocols!r} only.',
            'Set it to "classic", or move to brokers from 4.0 on.',
        )
    most_ms = int(cluster.settings.get(_TRANSACTION_MAX, TRANSACTION_TIMEOUT_MS))
    asked_ms = int(section.producer.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))
    if transactional and asked_ms > most_ms:
        yield wrong(
            SinkError,
            f"Transactions ask for {asked_ms} ms, and the brokers allow {most_ms}.",
            f"Set transaction.timeout.ms under [kafka.producer] to {most_ms} at most, or raise the brokers' "
            f"{_TRANSACTION_MAX}.",
        )


def topic_findings(topics: Sequence[PlannedTopic], found: Mapping[str, FoundTopic], init: str) -> Iterator[Finding]:
    """Whether the topics of a sink are there and as they have to be; ``init`` is the command that makes them."""
    for topic in topics:
        if topic.name not in found:
            yield wrong(SinkError, f"There is no topic {topic.name}.", f"Make it: {init}")
            continue
        yield from _as_planned(topic, found[topic.name], SinkError)


def source_findings(
    topics: Sequence[PlannedTopic], found: Mapping[str, FoundTopic], needed_ms: int
) -> Iterator[Finding]:
    """Whether the topics of articles are there, keep them for window and slack, and let nobody backdate them."""
    for topic in topics:
        if topic.name not in found:
            yield wrong(
                SourceError,
                f"There is no topic {topic.name}.",
                "Correct source.url, or make it: dupwatch topics init",
            )
            continue
        there = found[topic.name]
        yield from _as_planned(topic, there, SourceError)
        keep_ms = int(there.settings.get("retention.ms", "-1"))
        if KEEP_FLOOR_MS <= keep_ms < needed_ms:
            yield warning(
                f"{topic.name} keeps messages for {_hours(keep_ms)}, and window and slack are {_hours(needed_ms)}: a "
                "lost store cannot be filled from it.",
                f"Set retention.ms to {needed_ms} at least, or keep the articles elsewhere for dupwatch backfill.",
            )
        if dated_by_producers(there):
            yield warning(
                f"{topic.name} has {TIME_OF}={BY_PRODUCER}: whoever may send to it can backdate a copy, which then "
                "passes for the original, or for older than the window.",
                f"Set {TIME_OF}={BY_BROKER}, unless all producers are trusted.",
            )
        if int(there.settings.get("retention.bytes", "-1")) >= 0:
            yield warning(
                f"{topic.name} is bounded by retention.bytes: a flood shortens how long messages are kept.",
                "Set retention.bytes to -1, or see to it that a day always fits.",
            )


def _as_planned(topic: PlannedTopic, found: FoundTopic, means: type[Fatal]) -> Iterator[Finding]:
    bad = [wrong(means, f"{topic.name}: {one.found}.", sentence(one.remedy)) for one in misfits(topic, found)]
    yield from bad or [ok(f"{topic.name} has {found.partitions} partitions in {found.replication} copies.")]


def group_findings(
    group: Group | None, section: KafkaSection, partitions: int, own_hosts: set[str]
) -> Iterator[Finding]:
    """Who is in the group, and whether this machine's member would get in somebody's way."""
    if group is None:
        yield unchecked(
            f"No group has committed anything at these brokers, as far as this user may see; {section.group} was not "
            "asked for.",
            f"Look again after the first run; else allow this user to describe {OFFSETS}.",
        )
        return
    if not group.members:
        yield ok(f"Nobody is in the group {section.group} now.")
        return
    yield ok(f"The group {section.group} is {group.state} and has {len(group.members)} members.")
    if len(group.members) > partitions:
        yield warning(
            f"There are {len(group.members)} members for {partitions} partitions: the others have nothing to do.",
            "Stop some, or give the topics more partitions.",
        )
    elsewhere = [one for one in group.members if one.instance_id is not None and one.host not in own_hosts]
    names = {one.instance_id for one in elsewhere}
    if section.instance_id in names:
        host = next(one.host for one in elsewhere if one.instance_id == section.instance_id)
        yield wrong(
            ConfigError,
            f"The static member {section.instance_id} is in the group already, at {host}: of two with one name the "
            "first is put out.",
            "Give each consumer its own kafka.instance_id.",
        )


def progress_findings(progress: Sequence[Progress], section: KafkaSection) -> Iterator[Finding]:
    """How far behind the group is, and whether messages were or will soon be deleted before it reads them."""
    lag = sum(one.end - max(one.committed, one.first) for one in progress if one.committed is not None)
    fresh = [one for one in progress if one.committed is None]
    waiting = sum(one.end - one.first for one in fresh)
    yield ok(f"The group {section.group} has {lag} messages to read.")
    if fresh:
        yield ok(
            f"In {len(fresh)} partitions it has committed nothing; it begins at the {section.start} of {waiting} "
            "messages."
        )
    for one in progress:
        if one.committed is None:
            continue
        where = f"{one.topic}[{one.partition}]"
        if one.held is not None:
            yield warning(
                f"{partition_name((one.topic, one.partition))} is held at offset {one.committed}:"
                f" {one.held.sentence()}. {max(0, one.end - max(one.committed, one.first))} messages wait there.",
                f"{one.held.remedy()}.",
            )
        if one.committed < one.first:
            lost = one.first - one.committed
            found = f"Of {where} {lost} messages were deleted before the group read them."
            if section.on_gap == "continue":
                yield warning(found, "Keep messages longer: raise the topic's retention.ms.")
            else:
                yield wrong(
                    SourceError,
                    found,
                    'Fetch these articles from elsewhere (dupwatch backfill), set kafka.on_gap = "continue", and raise '
                    "the topic's retention.ms.",
                )
        elif one.young is not None and one.committed < one.young:
            yield warning(
                f"Of {where} unread messages will be deleted soon: over {STALE_SHARE:.0%} of their time is gone.",
                "Start more consumers, or raise the topic's retention.ms until they have caught up.",
            )


def clock_findings(newest: Sequence[Newest], by_broker: set[str], ahead_ms_max: int) -> Iterator[Finding]:
    """How this machine's clock stands to those that messages are dated by.

    A message is never from the future, so one that seems so tells the least by which the clocks differ. One that is
    old may be old, or its clock behind: nothing can be said. ``by_broker`` are the topics that brokers put times on.
    """
    agreed = False
    for one in newest:
        ahead_ms = one.time_ms - one.now_ms
        whose = "the brokers'" if one.topic in by_broker or one.topic == OFFSETS else "its producers'"
        if ahead_ms > CLOCKS_AGREE_MS:
            found = f"The newest message of {one.topic} is {ahead_ms / MS_PER_S:.0f} s ahead of this machine."
            remedy = f"Set this machine's clock and {whose} by NTP."
            if ahead_ms > ahead_ms_max:
                beyond = " That is beyond kafka.ahead_s_max, so messages get the time of reading in place of their own."
                yield wrong(SourceError, found + beyond, remedy)
            else:
                yield warning(found, remedy)
            return
        if ahead_ms >= -CLOCKS_AGREE_MS and whose == "the brokers'":
            agreed = True
    if agreed:
        yield ok(f"This machine's clock and the brokers' agree within {CLOCKS_AGREE_MS // MS_PER_S} s.")
    else:
        yield unchecked(
            "The clocks cannot be compared from here: the brokers have dated no message in the last "
            f"{CLOCKS_AGREE_MS // MS_PER_S} s.",
            "Look again while articles come and a consumer of the group runs: it commits what it has judged.",
        )


def _hours(ms: int) -> str:
    return f"{ms / _MS_PER_H:.1f} h"
