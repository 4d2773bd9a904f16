"""Timing in turn: every round gives each contender the same work, so that what slows the machine slows them all."""

import gc
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple


class Contender(NamedTuple):
    """Something that does the work of a round, numbered from 0, and says of how many units that was."""

    name: str
    work: Callable[[int], int]


class Spread(NamedTuple):
    """The median of all rounds, and the lowest and highest of them."""

    median: float
    low: float
    high: float


class Timing(NamedTuple):
    """What each round took, and how many units it did."""

    name: str
    units: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def rates(self) -> tuple[float, ...]:
        """Units a second, round by round."""
        return tuple(units / seconds for units, seconds in zip(self.units, self.seconds, strict=True))

    @property
    def rate(self) -> Spread:
        """Units a second."""
        return spread(self.rates)

    @property
    def microseconds(self) -> Spread:
        """Microseconds a unit."""
        return spread([1e6 / rate for rate in self.rates])


def spread(values: Sequence[float]) -> Spread:
    """Sum up the values of all rounds; ``ValueError`` where there are none."""
    if not values:
        raise ValueError("no round was measured")
    return Spread(median(values), min(values), max(values))


def take_turns(
    contenders: Sequence[Contender],
    rounds: int,
    *,
    warm_up_rounds: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timing]:
    """Time the contenders round by round, one after the other in each: A B C A B C, and so on.

    The first ``warm_up_rounds`` are not counted: tables fill, files come into the page cache.
    """
    seconds: list[list[float]] = [[] for _ in contenders]
    units: list[list[int]] = [[] for _ in contenders]
    for number in range(warm_up_rounds + rounds):
        for place, contender in enumerate(contenders):
            # Nobody pays for the garbage of the one before.
            gc.collect()
            began = clock()
            done = contender.work(number)
            took = clock() - began
            if number >= warm_up_rounds:
                seconds[place].append(took)
                units[place].append(done)
    return [
        Timing(contender.name, tuple(units[place]), tuple(seconds[place])) for place, contender in enumerate(contenders)
    ]


def ratios(fast: Timing, slow: Timing) -> Spread:
    """How many times the one's rate is the other's: the spread of the ratios of each round."""
    return spread([ours / theirs for ours, theirs in zip(fast.rates, slow.rates, strict=True)])
