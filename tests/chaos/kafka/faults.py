"""Which faults strike, when, and for how long: all of it drawn from a seed before anything runs."""

import random
from collections.abc import Iterator, Sequence
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

    HBASE = "HBase"
    GATEWAY = "gateway"
    BROKER = "broker"
    CONSUMER = "consumer"


class Kind(NamedTuple):
    """``stop``: the process is stopped and continued later; otherwise it is killed and restarted."""

    target: Target
    stop: bool

    def __str__(self) -> str:
        return f"{'SIGSTOP' if self.stop else 'kill -9'} {self.target}"


KINDS: Final = tuple(Kind(target, stop) for stop in (False, True) for target in Target)
_SHORT: Final = (*(Kind(target, stop=False) for target in Target), Kind(Target.CONSUMER, stop=True))
_STOPPED: Final = Kind(Target.CONSUMER, stop=True)
_HUNG: Final = Kind(Target.GATEWAY, stop=True)
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
}


class Fault(NamedTuple):
    """One fault: ``after_s`` after what was before it a burst is sent, ``into_s`` later it strikes, and lasts.

    ``consumer`` says which one, where it is one. ``upon_healing``: not before its round is well again.
    """

    kind: Kind
    consumer: int
    after_s: float
    into_s: float
    lasts_s: float
    upon_healing: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.consumer}" if self.kind.target is Target.CONSUMER else str(self.kind)


Round = Sequence[Fault]
"""Faults that may overlap; all is well again before the next round."""


def short_plan(seed: str, faults: int) -> list[Round]:
    """This many faults, one a round: first each required kind, in random order, then any."""
    chance = random.Random(f"faults {seed}")
    kinds = chance.sample(_SHORT, len(_SHORT))
    while len(kinds) < faults:
        kinds.append(chance.choice([kind for kind in _SHORT if kind.target is not Target.HBASE]))
    return [[_fault(kind, chance, 1.0)] for kind in kinds]


def long_plan(seed: str, faults: int) -> list[Round]:
    """This many faults, equally many of each kind, in rounds of one or two."""
    chance = random.Random(f"faults {seed}")
    kinds = _dealt(chance)
    rounds: list[Round] = []
    while (left := faults - sum(map(len, rounds))) > 0:
        first = _fault(next(kinds), chance, _AFTER_S_MAX)
        if left == 1 or chance.random() >= _PAIRED:
            rounds.append([first])
            continue
        second = _fault(next(kinds), chance, _AFTER_S_MAX)
        if _process(first) == _process(second):
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
    other = (stopped.consumer + chance.randrange(1, CONSUMERS)) % CONSUMERS
    hang = Fault(_HUNG, other, 0.0, 0.0, _STOPPED_S[Target.GATEWAY][1], upon_healing=True)
    return [hang, _fault(_STOPPED, chance, 0.0)._replace(consumer=other, after_s=chance.uniform(*_REBALANCE_S))]


def _dealt(chance: random.Random) -> Iterator[Kind]:
    while True:
        yield from chance.sample(KINDS, len(KINDS))


def _process(fault: Fault) -> tuple[Target, int]:
    return fault.kind.target, fault.consumer if fault.kind.target is Target.CONSUMER else 0


def _fault(kind: Kind, chance: random.Random, after_s_max: float) -> Fault:
    lasts_s = chance.uniform(*(_STOPPED_S[kind.target] if kind.stop else _DOWN_S))
    return Fault(
        kind,
        consumer=chance.randrange(CONSUMERS),
        after_s=chance.uniform(0, after_s_max),
        into_s=chance.uniform(0, _INTO_S_MAX),
        lasts_s=lasts_s,
    )
