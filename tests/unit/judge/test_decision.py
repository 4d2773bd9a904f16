"""Properties of the decisions on a batch, for any graph of nearness and any state of the store."""

import random
from dataclasses import dataclass
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as some

from consumer.judge.decision import Decisions, Neighbour, VersionState, decide
from storage.records import Record
from tests.builders import make_record
from tests.examples import examples

ARTICLES_MAX = 7


@dataclass(frozen=True)
class World:
    """Records in order of arrival, which are near, the states in the store, the batch, and those never flagged."""

    records: list[Record]
    near: dict[frozenset[bytes], tuple[int, float | None]]
    states: dict[bytes, VersionState]
    batch: list[Record]
    never: frozenset[bytes]

    def neighbours(self, record: Record) -> list[Neighbour]:
        """Return the neighbours of a record."""
        return [
            Neighbour(other, *self.near[pair])
            for other in self.records
            if (pair := frozenset((record.reference, other.reference))) in self.near
        ]

    def decide(self) -> Decisions:
        """Decide the batch."""
        return decide(
            self.batch, {record.reference: self.neighbours(record) for record in self.batch}, self.states, self.never
        )


@some.composite
def worlds(draw: some.DrawFn) -> World:
    """Draw any graph over a few articles, some of which are in the batch."""
    count = draw(some.integers(1, ARTICLES_MAX))
    records = [make_record(f"article {number}", sequence=number) for number in range(count)]
    alike = some.tuples(some.integers(0, 2), some.none() | some.sampled_from((0.8, 0.9)))
    near = {
        frozenset((a.reference, b.reference)): draw(alike) for a, b in combinations(records, 2) if draw(some.booleans())
    }
    states = {
        record.reference: draw(some.sampled_from([VersionState.PENDING] * 3 + list(VersionState))) for record in records
    }
    batch = draw(some.lists(some.sampled_from(records), unique_by=lambda record: record.reference))
    never = frozenset(record.reference for record in records if draw(some.integers(0, 5)) == 0)
    return World(records, near, states, batch, never)


@examples(100)
@given(world=worlds())
def test_every_pending_version_of_the_batch_gets_one_decision(world: World) -> None:
    """A pending version becomes a duplicate or is kept, never both; versions with a verdict are left alone."""
    decisions = world.decide()
    decided = [duplicate.record.reference for duplicate in decisions.duplicates]
    decided += [record.reference for record in decisions.kept]
    pending = [record.reference for record in world.batch if world.states[record.reference] is VersionState.PENDING]
    assert sorted(decided) == sorted(pending)


@examples(100)
@given(world=worlds())
def test_a_duplicate_points_to_a_near_one_that_is_kept_or_earlier(world: World) -> None:
    """So following ``duplicate_of`` can never run in a circle."""
    decisions = world.decide()
    kept = {record.reference for record in decisions.kept}
    kept |= {reference for reference, state in world.states.items() if state is VersionState.KEPT}
    for duplicate in (*decisions.duplicates, *decisions.claims):
        assert duplicate.of == duplicate.matches[0]
        for match in duplicate.matches:
            assert frozenset((duplicate.record.reference, match.record.reference)) in world.near
            assert match.record.reference in kept or match.record.arrival < duplicate.record.arrival
            assert match.record.reference in kept or world.states[match.record.reference] is VersionState.PENDING
    named = {
        duplicate.record.reference: duplicate.of.record.reference
        for duplicate in (*decisions.duplicates, *decisions.claims)
    }
    for start in named:
        here, steps = start, 0
        while here in named:
            here, steps = named[here], steps + 1
            assert steps <= len(named)


@examples(100)
@given(world=worlds())
def test_no_two_near_ones_are_kept(world: World) -> None:
    """A kept version has no near kept version, in the store or in the batch, unless it is never flagged."""
    decisions = world.decide()
    kept = {record.reference for record in decisions.kept}
    kept |= {reference for reference, state in world.states.items() if state is VersionState.KEPT}
    for record in decisions.kept:
        if record.reference not in world.never:
            others = {other.record.reference for other in world.neighbours(record)} & kept
            later_never = {other for other in others if other in world.never}
            assert others == later_never


@examples(100)
@given(world=worlds())
def test_kept_ones_claim_every_later_pending_near_one(world: World) -> None:
    """Each is claimed once; none is claimed that is never flagged, has a verdict, or becomes a duplicate anyway."""
    decisions = world.decide()
    duplicates = {duplicate.record.reference for duplicate in decisions.duplicates}
    expected = {
        other.record.reference
        for record in decisions.kept
        for other in world.neighbours(record)
        if other.record.arrival > record.arrival
        and world.states[other.record.reference] is VersionState.PENDING
        and other.record.reference not in duplicates | world.never
    }
    claimed = [claim.record.reference for claim in decisions.claims]
    assert sorted(claimed) == sorted(expected)
    assert {claim.of.record.reference for claim in decisions.claims} <= {record.reference for record in decisions.kept}


@examples(100)
@given(world=worlds())
def test_what_is_never_flagged_is_kept_and_not_claimed(world: World) -> None:
    """Whatever is near it, and whatever its state."""
    decisions = world.decide()
    assert not world.never & {duplicate.record.reference for duplicate in (*decisions.duplicates, *decisions.claims)}


@examples(100)
@given(world=worlds())
def test_matches_are_in_order_of_preference_and_of_one_kind(world: World) -> None:
    """All kept, or all pending where none is kept; the most similar first, then the nearest, then the earliest."""
    for duplicate in world.decide().duplicates:
        ranks = [(-(match.similarity or 0.0), match.distance, match.record.arrival) for match in duplicate.matches]
        assert ranks == sorted(ranks)


@examples(200)
@given(world=worlds(), order=some.randoms(use_true_random=False))
def test_the_order_of_the_batch_decides_nothing(world: World, order: random.Random) -> None:
    """Versions are decided in order of arrival, whatever their order in the batch."""
    mixed = World(world.records, world.near, world.states, order.sample(world.batch, len(world.batch)), world.never)
    assert mixed.decide() == world.decide()


def test_a_kept_neighbour_goes_before_an_earlier_pending_one() -> None:
    """Even where it is less similar, because a kept version stays kept."""
    earlier, kept, new = (make_record(f"article {number}", sequence=number) for number in range(3))
    neighbours = {new.reference: [Neighbour(earlier, 0, 0.9), Neighbour(kept, 2, 0.8)]}
    states = {
        earlier.reference: VersionState.PENDING,
        kept.reference: VersionState.KEPT,
        new.reference: VersionState.PENDING,
    }
    (duplicate,) = decide([new], neighbours, states).duplicates
    assert [match.record.id for match in duplicate.matches] == ["article 1"]
