"""Findings on brokers, topics, the group and clocks, computed from the brokers' answers by pure functions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from consumer.config.sections.kafka import KafkaSection
from consumer.doctor.brokers import OFFSETS_TOPIC, Cluster, GroupProgress, GroupState, NewestMessage
from consumer.doctor.finding import Finding, ok, sentence, unchecked, warning, wrong
from consumer.kafka.client_settings import TRANSACTION_TIMEOUT_MS
from consumer.kafka.topics import (
    BROKER_TIME,
    PRODUCER_TIME,
    RETENTION_MIN_MS,
    TIMESTAMP_TYPE,
    ExistingTopic,
    PlannedTopic,
    dated_by_producers,
    topic_problems,
)
from consumer.model.errors import ConfigError, Fatal, SinkError, SourceError
from consumer.model.record import partition_name
from consumer.text.counts import counted
from storage.clock import MS_PER_S

CLOCK_DIFFERENCE_MS_MAX: Final = 5_000
"""The maximum difference between clocks that agree, including the age of the message that shows a clock's time."""
STALE_SHARE: Final = 0.75
"""A message that has used up this share of its topic's retention is about to be deleted."""
_MS_PER_H: Final = 3_600_000
_NEXT_GENERATION: Final = "consumer"
_VERSION: Final = "inter.broker.protocol.version"
_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
_TRANSACTION_MAX: Final = "transaction.max.timeout.ms"


def cluster_findings(cluster: Cluster, section: KafkaSection, *, transactional: bool) -> Iterator[Finding]:
    """Yield findings on a cluster that answers. ``transactional`` says whether the run uses transactions."""
    if cluster.is_mock:
        yield unchecked(
            "These brokers are a mock cluster in memory, such as that of dupwatch demo. It has no controller, so "
            "topics, groups and clocks cannot be checked.",
            "Nothing is broken. To check your own brokers, name them in source.url and sink.url.",
        )
        return
    version = cluster.settings.get(_VERSION)
    described = f", version {version} or later" if version else ""
    yield ok(f"The cluster {cluster.id} answers: {counted(cluster.brokers, 'broker')}{described}.")
    protocols = cluster.settings.get(_PROTOCOLS)
    if section.group_protocol == _NEXT_GENERATION and protocols and _NEXT_GENERATION not in protocols.split(","):
        yield wrong(
            ConfigError,
            f'kafka.group_protocol is "consumer", but the brokers support only {protocols!r}.',
            'Set it to "classic", or upgrade the brokers to 4.0 or later.',
        )
    allowed_ms = int(cluster.settings.get(_TRANSACTION_MAX, TRANSACTION_TIMEOUT_MS))
    timeout_ms = int(section.producer.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))
    if transactional and timeout_ms > allowed_ms:
        yield wrong(
            SinkError,
            f"The transaction time-out is {timeout_ms} ms, but the brokers allow at most {allowed_ms} ms.",
            f"Set transaction.timeout.ms under [kafka.producer] to at most {allowed_ms}, or raise {_TRANSACTION_MAX} "
            "of the brokers.",
        )


def topic_findings(topics: Sequence[PlannedTopic], found: Mapping[str, ExistingTopic], init: str) -> Iterator[Finding]:
    """Yield findings on whether the topics of a sink exist as planned. ``init`` is the command that creates them."""
    for topic in topics:
        if topic.name not in found:
            yield wrong(SinkError, f"The topic {topic.name} does not exist.", f"Create it: {init}")
            continue
        yield from _plan_findings(topic, found[topic.name], SinkError)


def source_findings(
    topics: Sequence[PlannedTopic], found: Mapping[str, ExistingTopic], needed_ms: int
) -> Iterator[Finding]:
    """Yield findings on the topics of articles.

    Topics should exist, retain messages for window and slack (``needed_ms``), have times set by brokers, and have no
    limit in bytes.
    """
    for topic in topics:
        if topic.name not in found:
            yield wrong(
                SourceError,
                f"The topic {topic.name} does not exist.",
                "Correct source.url, or create the topic: dupwatch topics init",
            )
            continue
        existing = found[topic.name]
        yield from _plan_findings(topic, existing, SourceError)
        keep_ms = int(existing.settings.get("retention.ms", "-1"))
        if RETENTION_MIN_MS <= keep_ms < needed_ms:
            yield warning(
                f"{topic.name} retains messages for {_hours(keep_ms)}, less than window and slack "
                f"({_hours(needed_ms)}): a lost store cannot be refilled from it.",
                f"Set retention.ms to at least {needed_ms}, or archive the articles for dupwatch backfill.",
            )
        if dated_by_producers(existing):
            yield warning(
                f"{topic.name} has {TIMESTAMP_TYPE}={PRODUCER_TIME}: any producer can backdate a copy, which then "
                "passes as the original or falls out of the window.",
                f"Set {TIMESTAMP_TYPE}={BROKER_TIME}, unless you trust all producers.",
            )
        if int(existing.settings.get("retention.bytes", "-1")) >= 0:
            yield warning(
                f"{topic.name} has a retention.bytes limit: a flood shortens the retention time.",
                "Set retention.bytes to -1, or make sure that the busiest day fits.",
            )


def _plan_findings(topic: PlannedTopic, found: ExistingTopic, run_error: type[Fatal]) -> Iterator[Finding]:
    wrongs = [
        wrong(run_error, f"{topic.name}: {problem.description}.", sentence(problem.remedy))
        for problem in topic_problems(topic, found)
    ]
    yield from wrongs or [
        ok(f"{topic.name} has {counted(found.partitions, 'partition')} with {counted(found.replication, 'replica')}.")
    ]
    yield from _replica_findings(topic.name, found, run_error)


def _replica_findings(name: str, found: ExistingTopic, run_error: type[Fatal]) -> Iterator[Finding]:
    """Yield at most one finding: on missing leaders, too few replicas in sync for writes, or replicas not in sync."""
    brokers = ", ".join(map(str, found.missing_brokers))
    remedy = (
        f"Start these brokers, or find out why they lag behind: {brokers}."
        if brokers
        else "Start the brokers of its replicas."
    )
    needed = int(found.settings.get("min.insync.replicas", "1"))
    if found.leaderless:
        numbers = ", ".join(map(str, found.leaderless))
        yield wrong(
            run_error, f"{name} has partitions without a leader, which nobody can read or write: {numbers}.", remedy
        )
    elif found.in_sync_min is not None and found.in_sync_min < needed:
        yield wrong(
            run_error,
            f"{name} has partitions with {counted(found.in_sync_min, 'replica')} in sync, but min.insync.replicas is "
            f"{needed}: brokers refuse writes to them.",
            remedy,
        )
    elif found.out_of_sync:
        yield warning(
            f"{name} has {len(found.out_of_sync)} of {found.partitions} partitions with a replica that is not in sync, "
            f"on broker {brokers}. Reads and writes continue.",
            remedy,
        )


def group_findings(
    group: GroupState | None, section: KafkaSection, partitions: int, own_hosts: set[str]
) -> Iterator[Finding]:
    """Yield findings on the members of the group, and on a static member elsewhere with this consumer's name."""
    if group is None:
        yield unchecked(
            f"The group {section.group} was not checked: as far as this user can see, no group has committed offsets "
            "on these brokers.",
            f"Check again after the first run; if that does not help, allow this user to describe {OFFSETS_TOPIC}.",
        )
        return
    if not group.members:
        yield ok(f"The group {section.group} has no members now.")
        return
    yield ok(f"The group {section.group} is {group.state} and has {counted(len(group.members), 'member')}.")
    if len(group.members) > partitions:
        yield warning(
            f"There are {len(group.members)} members for {counted(partitions, 'partition')}, so some are idle.",
            "Stop some, or add partitions to the topics.",
        )
    elsewhere = [member for member in group.members if member.instance_id is not None and member.host not in own_hosts]
    same_name = next((member for member in elsewhere if member.instance_id == section.instance_id), None)
    if same_name is not None:
        yield wrong(
            ConfigError,
            f"The static member {section.instance_id} is already in the group, on {same_name.host}: a second one with "
            "that name would replace it.",
            "Give each consumer its own kafka.instance_id.",
        )


def progress_findings(progress: Sequence[GroupProgress], section: KafkaSection) -> Iterator[Finding]:
    """Yield findings on the lag of the group, on held partitions, and on unread messages that are lost or soon lost."""
    lag = sum(place.end - max(place.committed, place.first) for place in progress if place.committed is not None)
    uncommitted = [place for place in progress if place.committed is None]
    waiting = sum(place.end - place.first for place in uncommitted)
    yield ok(f"The group {section.group} has {counted(lag, 'message')} to read.")
    if uncommitted:
        yield ok(
            f"It has no committed offset in {counted(len(uncommitted), 'partition')} with "
            f"{counted(waiting, 'message')}; there it starts at the {section.start} offset."
        )
    for place in progress:
        if place.committed is not None:
            yield from _partition_findings(place, place.committed, section)


def _partition_findings(place: GroupProgress, committed: int, section: KafkaSection) -> Iterator[Finding]:
    where = f"{place.topic}[{place.partition}]"
    if place.held is not None:
        waiting = max(0, place.end - max(committed, place.first))
        yield warning(
            f"{partition_name((place.topic, place.partition))} is held at offset {committed}:"
            f" {place.held.sentence()}. {counted(waiting, 'message waits', 'messages wait')} there.",
            f"{place.held.remedy()}.",
        )
    if committed < place.first:
        found = (
            f"{counted(place.first - committed, 'unread message was', 'unread messages were')} deleted from {where}."
        )
        if section.on_gap == "continue":
            yield warning(found, "Raise retention.ms of the topic.")
        else:
            yield wrong(
                SourceError,
                found,
                'Restore these articles from an archive (dupwatch backfill), set kafka.on_gap = "continue", and raise '
                "retention.ms of the topic.",
            )
    elif place.young is not None and committed < place.young:
        yield warning(
            f"Unread messages of {where} will be deleted soon: they have used over {STALE_SHARE:.0%} of the retention "
            "time.",
            "Start more consumers, or raise retention.ms of the topic until they have caught up.",
        )


def clock_findings(newest: Sequence[NewestMessage], by_broker: set[str], ahead_ms_max: int) -> Iterator[Finding]:
    """Yield a finding that compares this machine's clock with the clocks that set the times of messages.

    If a message is dated ahead of this machine's clock, the clocks differ by at least that much. A message from more
    than ``CLOCK_DIFFERENCE_MS_MAX`` ago proves nothing: the message may be old, or its clock may be slow. ``by_broker``
    has the topics whose times the brokers set.
    """
    agreed = False
    for message in newest:
        ahead_ms = message.time_ms - message.now_ms
        clock_owner = (
            "the brokers'" if message.topic in by_broker or message.topic == OFFSETS_TOPIC else "the producers'"
        )
        if ahead_ms > CLOCK_DIFFERENCE_MS_MAX:
            found = f"The newest message of {message.topic} is {ahead_ms / MS_PER_S:.0f} s ahead of this machine."
            remedy = f"Synchronise this machine's clock and {clock_owner} with NTP."
            if ahead_ms > ahead_ms_max:
                effect = " That is more than kafka.ahead_s_max, so messages get the time of reading instead."
                yield wrong(SourceError, found + effect, remedy)
            else:
                yield warning(found, remedy)
            return
        if ahead_ms >= -CLOCK_DIFFERENCE_MS_MAX and clock_owner == "the brokers'":
            agreed = True
    if agreed:
        yield ok(f"The clocks of this machine and of the brokers agree within {CLOCK_DIFFERENCE_MS_MAX // MS_PER_S} s.")
    else:
        yield unchecked(
            "The clocks cannot be compared: there is no message of the last "
            f"{CLOCK_DIFFERENCE_MS_MAX // MS_PER_S} s with a time that the brokers set.",
            "Check again while articles arrive and a consumer of the group runs.",
        )


def _hours(ms: int) -> str:
    return f"{ms / _MS_PER_H:.1f} h"
