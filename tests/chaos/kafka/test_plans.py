"""What a seed makes: the feed, and the faults."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from tests.chaos.kafka.faults import (
    BANK_KINDS,
    CLUSTER_KINDS,
    CONSUMERS,
    KINDS,
    Act,
    Kind,
    Target,
    bank_plan,
    cluster_plan,
    in_rebalances,
    long_plan,
    short_plan,
)
from tests.chaos.kafka.feed_message import FeedMessage
from tests.chaos.kafka.known_feed import FLOOD, KnownFeed

SEEDS = [str(number) for number in range(20)]


def messages(seed: str, count: int = 5_000) -> list[FeedMessage]:
    """The beginning of a feed."""
    feed = KnownFeed(seed)
    return [feed.next() for _ in range(count)]


def test_a_seed_makes_the_same_feed_and_faults_again() -> None:
    """Another one makes others."""
    assert messages("a") == messages("a") != messages("b")
    assert long_plan("a", 40) == long_plan("a", 40) != long_plan("b", 40)
    assert short_plan("a", 6) == short_plan("a", 6) != short_plan("b", 6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_long_plan_has_every_kind_equally_often_and_some_at_once(seed: str) -> None:
    """Forty faults: eight kinds, five times each; a process is in no round twice."""
    plan = long_plan(seed, 40)
    assert Counter(fault.kind for faults in plan for fault in faults) == dict.fromkeys(KINDS, 5)
    assert {len(faults) for faults in plan} == {1, 2}
    for faults in plan:
        assert len({str(fault).removeprefix(str(fault.kind).split()[0]) for fault in faults}) == len(faults)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_for_a_cluster_has_every_kind_and_leaves_somebody_to_take_over(seed: str) -> None:
    """Thirteen kinds, three times each and one more; no two brokers or region servers at once."""
    plan = cluster_plan(seed, 40)
    counted = Counter(fault.kind for faults in plan for fault in faults)
    assert counted.keys() == set(CLUSTER_KINDS)
    assert set(counted.values()) == {3, 4}
    assert {len(faults) for faults in plan} == {1, 2}
    brokers = {Target.BROKER, Target.COORDINATOR}
    for faults in plan:
        targets = [fault.kind.target for fault in faults]
        assert sum(target in brokers for target in targets) <= 1
        assert targets.count(Target.REGION_SERVER) <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_short_plan_has_the_kinds_that_may_not_be_missing(seed: str) -> None:
    """Everything is killed, and a consumer is stopped."""
    kinds = {fault.kind for faults in short_plan(seed, 6) for fault in faults}
    assert kinds == {*(kind for kind in KINDS if kind.act is Act.KILL), Kind(Target.CONSUMER, Act.STOP)}
    assert all(fault.number < CONSUMERS for faults in short_plan(seed, 6) for fault in faults)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_with_banks_kills_each_kind_equally_often(seed: str) -> None:
    """Twelve kills: the broker, the service and consumers, four times each."""
    counted = Counter(fault.kind for faults in bank_plan(seed, 12) for fault in faults)
    assert counted == dict.fromkeys(BANK_KINDS, 4)
    assert {kind.act for kind in BANK_KINDS} == {Act.KILL}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_consumer_is_stopped_while_it_gives_up_partitions_for_the_first(seed: str) -> None:
    """After every one that was stopped alone, with the gateway; and nothing else of the plan is changed."""
    stop, hang = Kind(Target.CONSUMER, Act.STOP), Kind(Target.GATEWAY, Act.STOP)
    plan = long_plan(seed, 40)
    changed = in_rebalances(plan, seed)
    assert [after[: len(before)] for before, after in zip(plan, changed, strict=True)] == plan
    more = [(before[0], after[len(before) :]) for before, after in zip(plan, changed, strict=True) if after != before]
    assert len(more) == sum([fault.kind for fault in faults] == [stop] for faults in plan)
    for first, (gateway, other) in more:
        assert (first.kind, gateway.kind, other.kind) == (stop, hang, stop)
        assert gateway.upon_healing
        assert first.number != other.number < CONSUMERS


def test_articles_of_groups_stay_as_they_are() -> None:
    """One message an article, but for the same again; no retraction; every text in one group only."""
    contents: defaultdict[bytes | None, set[bytes | None]] = defaultdict(set)
    groups: defaultdict[str | None, set[int]] = defaultdict(set)
    for message in messages("c"):
        contents[message.key].add(message.value)
        if message.group is not None:
            groups[message.text].add(message.group)
    known = {message.key for message in messages("c") if message.group is not None}
    assert all(len(contents[key]) == 1 and None not in contents[key] for key in known)
    assert {len(numbers) for numbers in groups.values()} == {1}
    assert sum(map(len, contents.values())) > len(contents)


def test_a_feed_has_all_that_it_is_to_have() -> None:
    """Groups of all sizes, near and far apart, exact copies, retractions, messages that come again, and poison."""
    feed = messages("d")
    places: defaultdict[int, list[int]] = defaultdict(list)
    for number, message in enumerate(feed):
        if message.group is not None:
            places[message.group].append(number)
    sizes = Counter(map(len, places.values()))
    assert {2, 3, 4, 5} <= sizes.keys()
    assert max(sizes) >= FLOOD
    distances = [later - earlier for group in places.values() for earlier, later in pairwise(group)]
    assert min(distances) == 1
    assert max(distances) > 100
    texts = Counter(message.text for message in feed if message.group is not None)
    assert sum(count > 1 for count in texts.values()) > 100
    assert 50 < sum(message.value is None for message in feed) < 500
    assert 20 < sum(not message.expected.verdict for message in feed) < 200
    assert max(Counter(feed).values()) > 1
