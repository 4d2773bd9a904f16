"""Random schedules of cases that are too large to explore: five or six articles in three processes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pytest

from consumer.judge.detector import Detector
from storage.records import Record, Tombstone, Version
from tests.builders import TIME_MS, make_tombstone
from tests.examples import drawn
from tests.protocol.articles import NEVER, SETTINGS, make_article
from tests.protocol.explorer import Process, World
from tests.protocol.mutants import ClaimsNothing, GivesUpOnPendingOnes, LooksUpFirst
from tests.protocol.promises import broken_promises

LOTS = range(32)
WORLDS_A_LOT = 25
WALKS_A_WORLD = 6
CRASHES = 2


@dataclass(frozen=True, slots=True)
class Dice:
    """Draws cases and schedules; equal seeds draw the same."""

    random: Random

    def article(self, number: int, bits: int) -> Version:
        """Return an article that is near some of the others: 2 bits apart, or 4, or more."""
        corner = self.random.randrange(1 << bits)
        return make_article(
            number,
            sum(0b11 << 2 * bit for bit in range(bits) if corner >> bit & 1),
            # Two articles of one id are two versions of it.
            article_id=f"id {self.random.randrange(number + 1)}" if self.random.random() < 0.3 else f"id {number}",
            content=f"content {number}".encode(),
            source=NEVER if self.random.random() < 0.1 else "wire",
            blocks=self.random.choice((1, 1, 2)),
        )

    def batch(self, those: Sequence[Version | Tombstone]) -> tuple[Version | Tombstone, ...]:
        """Return some of these, with distinct ids."""
        drawn = self.random.sample(those, self.random.randint(1, 3))
        by_id = {(arrived.id if isinstance(arrived, Tombstone) else arrived.record.id): arrived for arrived in drawn}
        return tuple(by_id.values())

    def memory(self, those: Sequence[Version | Tombstone]) -> tuple[Record, ...]:
        """Return what a process remembers as originals; most are not kept, or not stored yet."""
        records = [version.record for version in those if isinstance(version, Version)]
        return tuple(self.random.sample(records, 2)) if self.random.random() < 0.3 else ()

    def processes(self, kind: type[Detector]) -> list[Process]:
        """Return three processes, which may share articles."""
        bits = self.random.choice((1, 2, 3))
        those: list[Version | Tombstone] = [self.article(number, bits) for number in range(self.random.choice((5, 6)))]
        if self.random.random() < 0.3:
            at = self.random.randrange(6)
            those.append(make_tombstone(f"id {self.random.randrange(4)}", TIME_MS + at, at))
        return [Process(self.batch(those), self.memory(those), self.random.random() < 0.3, kind) for _ in range(3)]

    def walk(self, world: World) -> list[str]:
        """Walk to an end, often with several steps of one process in a row; return what is wrong there."""
        state = world.start(CRASHES)
        process = 0
        while going := [process for process, result in enumerate(world.results_in(state)) if result is None]:
            if process not in going or self.random.random() < 0.35:
                process = self.random.choice(going)
            crash = world.crash(state, process) if self.random.random() < 0.02 else None
            move = crash or world.step(state, process)
            assert move is not None
            state = move.state
        return broken_promises(world.processes, world.content_in(state), world.results_in(state))


def walked(seed: int, kind: type[Detector]) -> Iterator[str]:
    """Yield what goes wrong on the walks of one seed, with what is needed to reproduce it."""
    dice = Dice(Random(seed))
    for number in range(WORLDS_A_LOT):
        world = World(dice.processes(kind), SETTINGS)
        for _ in range(WALKS_A_WORLD):
            for sentence in dice.walk(world):
                yield f"seed {seed}, world {number}: {sentence}"


@pytest.mark.parametrize("seed", drawn(LOTS, 16))
def test_no_promise_is_broken_on_a_walk(seed: int) -> None:
    """Every promise holds at the end of every random schedule."""
    assert [*walked(seed, Detector)] == []


@pytest.mark.parametrize("mutant", [LooksUpFirst, ClaimsNothing, GivesUpOnPendingOnes])
def test_walks_meet_what_is_missing(mutant: type[Detector]) -> None:
    """The walks are long and mixed enough to break a judge that lacks a protection."""
    assert any("both kept" in sentence for seed in LOTS[:4] for sentence in walked(seed, mutant))
