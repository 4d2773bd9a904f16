"""Which faults strike, when, and for how long: all of it drawn from a seed before anything runs."""

import random
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

CONSUMERS: Final = 3
SESSION_S: Final = 6.0
"""The shortest session that a broker grants; a consumer that is stopped for longer is taken for dead."""
_AFTER_S_MAX: Final = 3.0
_INTO_S_MAX: Final = 0.7
_PAIRED: Final = 0.3
_REBALANCE_S: Final = (1.0, 2.5)
"""So long after one was woken the others give up partitions for it: they hear of it with their next heartbeats."""


class Target(StrEnum):
    """What is harmed, in the order in which several are healed: each needs those before it."""

    BROKER = "broker"
    COORDINATOR = "the group's coordinator"
    HBASE = "HBase"
    REGION_SERVER = "region server"
    GATEWAY = "gateway"
    REGIONS = "regions"
    LEADERS = "leaders"
    COORDINATORS = "coordinators"
    SERVICE = "service"
    CONSUMER = "consumer"


class Act(StrEnum):
    """What is done to it; a process that is stopped is continued later, one that is killed is started again."""

    KILL = "kill -9"
    STOP = "SIGSTOP"
    MOVE = "move"
    SPLIT = "split"


class Kind(NamedTuple):
    """A fault as the plan counts it."""

    target: Target
    act: Act

    def __str__(self) -> str:
        return f"{self.act} {self.target}"


_ALONE: Final = (Target.HBASE, Target.GATEWAY, Target.BROKER, Target.CONSUMER)
"""What there is where nothing is there twice, but consumers."""
KINDS: Final = tuple(Kind(target, act) for act in (Act.KILL, Act.STOP) for target in _ALONE)
CLUSTER_KINDS: Final = (
    *(
        Kind(target, act)
        for act in (Act.KILL, Act.STOP)
        for target in (Target.REGION_SERVER, Target.GATEWAY, Target.BROKER, Target.CONSUMER)
    ),
    Kind(Target.COORDINATOR, Act.KILL),
    *(Kind(target, Act.MOVE) for target in (Target.REGIONS, Target.LEADERS, Target.COORDINATORS)),
    Kind(Target.REGIONS, Act.SPLIT),
)
BANK_KINDS: Final = tuple(Kind(target, Act.KILL) for target in (Target.BROKER, Target.SERVICE, Target.CONSUMER))
"""While banks are changed through the service."""
_SHORT: Final = (*(Kind(target, Act.KILL) for target in _ALONE), Kind(Target.CONSUMER, Act.STOP))
_STOPPED: Final = Kind(Target.CONSUMER, Act.STOP)
_HUNG: Final = Kind(Target.GATEWAY, Act.STOP)
_DOWN_S: Final = (0.0, 4.0)
_STOPPED_S: Final = {
    # Longer than the session, sometimes longer than a transaction may take.
    Target.CONSUMER: (SESSION_S + 1, SESSION_S + 7),
    # Longer than a call of the store is waited for.
    Target.GATEWAY: (2.0, 9.0),
    # Longer than its own session, so that HBase sometimes ends itself.
    Target.HBASE: (2.0, 13.0),
    # Longer than the sessions of its consumers, sometimes.
    Target.BROKER: (2.0, 9.0),
    # At least: it is not continued before all of its regions have moved.
    Target.REGION_SERVER: (0.0, 4.0),
}
_TAKEN_OVER_S: Final = (0.0, 12.0)
"""Around the sessions of brokers and region servers."""
_TAKEN_OVER: Final = frozenset({Target.REGION_SERVER, Target.BROKER, Target.COORDINATOR})
_BROKERS: Final = frozenset({Target.BROKER, Target.COORDINATOR})
_NUMBERED: Final = frozenset({Target.CONSUMER, Target.BROKER, Target.REGION_SERVER})


class Fault(NamedTuple):
    """One fault: ``after_s`` after what was before it a burst is sent, ``into_s`` later it strikes, and lasts.

    ``number`` says which one of several. ``upon_healing``: not before its round is well again.
    """

    kind: Kind
    number: int
    after_s: float
    into_s: float
    lasts_s: float
    upon_healing: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.number}" if self.kind.target in _NUMBERED else str(self.kind)


Round = Sequence[Fault]
"""Faults that may overlap; all is well again before the next round."""


def short_plan(seed: str, faults: int) -> list[Round]:
    """This many faults, one a round: first each required kind, or as many as there is room for, then any."""
    chance = random.Random(f"faults {seed}")
    kinds = chance.sample(_SHORT, min(faults, len(_SHORT)))
    while len(kinds) < faults:
        kinds.append(chance.choice([kind for kind in _SHORT if kind.target is not Target.HBASE]))
    return [[_fault(kind, chance, 1.0)] for kind in kinds]


def long_plan(seed: str, faults: int) -> list[Round]:
    """This many faults, equally many of each kind, in rounds of one or two."""
    return _plan(random.Random(f"faults {seed}"), KINDS, faults, _process)


def bank_plan(seed: str, faults: int) -> list[Round]:
    """This many kills of the broker, the service and consumers, equally many of each, in rounds of one or two."""
    return _plan(random.Random(f"bank faults {seed}"), BANK_KINDS, faults, _process)


def cluster_plan(seed: str, faults: int) -> list[Round]:
    """The same for a cluster. Of what there is several times one at most is harmed at a time."""
    chance = random.Random(f"cluster faults {seed}")
    plan = _plan(chance, CLUSTER_KINDS, faults, _group)
    return [[_taken_over(fault, chance) for fault in round_] for round_ in plan]


def _taken_over(fault: Fault, chance: random.Random) -> Fault:
    """The same, but what others take over from is away for longer, so that they sometimes do."""
    if fault.kind.act is Act.KILL and fault.kind.target in _TAKEN_OVER:
        return fault._replace(lasts_s=chance.uniform(*_TAKEN_OVER_S))
    return fault


def _plan(chance: random.Random, kinds: Sequence[Kind], faults: int, apart: Callable[[Fault], object]) -> list[Round]:
    """Rounds in which no two faults are the same as far as ``apart`` tells them apart."""
    dealt = _dealt(chance, kinds)
    rounds: list[Round] = []
    while (left := faults - sum(map(len, rounds))) > 0:
        first = _fault(next(dealt), chance, _AFTER_S_MAX)
        if left == 1 or chance.random() >= _PAIRED:
            rounds.append([first])
            continue
        second = _fault(next(dealt), chance, _AFTER_S_MAX)
        if apart(first) == apart(second):
            # Two of one process at once would be one.
            rounds.extend([[first], [second]])
        else:
            rounds.append([first, second])
    return rounds


def in_rebalances(plan: Sequence[Round], seed: str) -> list[Round]:
    """The same, and after each consumer that was stopped alone another one is, while it gives up partitions for it.

    The gateway is stopped as well: so the batch hangs that the other has begun, and it cannot give them up at once.
    """
    chance = random.Random(f"rebalances {seed}")
    return [[*fault, *_while_it_comes_back(fault[0], chance)] if _stops_one(fault) else fault for fault in plan]


def _stops_one(faults: Round) -> bool:
    return [fault.kind for fault in faults] == [_STOPPED]


def _while_it_comes_back(stopped: Fault, chance: random.Random) -> Round:
    other = (stopped.number + chance.randrange(1, CONSUMERS)) % CONSUMERS
    hang = Fault(_HUNG, other, 0.0, 0.0, _STOPPED_S[Target.GATEWAY][1], upon_healing=True)
    return [hang, _fault(_STOPPED, chance, 0.0)._replace(number=other, after_s=chance.uniform(*_REBALANCE_S))]


def _dealt(chance: random.Random, kinds: Sequence[Kind]) -> Iterator[Kind]:
    while True:
        yield from chance.sample(kinds, len(kinds))


def _process(fault: Fault) -> tuple[Target, int]:
    return fault.kind.target, fault.number if fault.kind.target is Target.CONSUMER else 0


def _group(fault: Fault) -> tuple[Target, int]:
    """A second broker or region server that is away leaves nobody to take over."""
    target, number = _process(fault)
    return (Target.BROKER if target in _BROKERS else target), number


def _fault(kind: Kind, chance: random.Random, after_s_max: float) -> Fault:
    lasts_s = chance.uniform(*_lasting(kind))
    return Fault(
        kind,
        number=chance.randrange(CONSUMERS),
        after_s=chance.uniform(0, after_s_max),
        into_s=chance.uniform(0, _INTO_S_MAX),
        lasts_s=lasts_s,
    )


def _lasting(kind: Kind) -> tuple[float, float]:
    """How long a fault of this kind lasts at least and at most, in seconds."""
    if kind.act is Act.STOP:
        return _STOPPED_S[kind.target]
    return _DOWN_S if kind.act is Act.KILL else (0.0, 0.0)
