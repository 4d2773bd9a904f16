"""What is to be written for a batch, decided in memory from what was read.

Pure, and small enough to be read beside the model of the protocol. A duplicate only ever points to a version that is
kept, or to an earlier one: that is why following ``duplicate_of`` cannot run in a circle.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from consumer.model.verdict import outcome_of
from storage.records import Record, Stored


class State(Enum):
    """What a version's verdict cell says."""

    PENDING = "pending"
    KEPT = "kept"
    DUPLICATE = "duplicate"


def state_of(stored: Stored) -> State:
    """Return what the verdict cell of a version says, as it was read."""
    if stored.verdict is None:
        return State.PENDING
    return State.KEPT if outcome_of(stored.verdict) == "unique" else State.DUPLICATE


class Neighbour(NamedTuple):
    """A version that is near the one being judged: distance in bits, similarity None with plain SimHash."""

    record: Record
    distance: int
    similarity: float | None


class Duplicate(NamedTuple):
    """``record`` repeats what ``of`` names; ``matches`` are all it could have named, best first."""

    record: Record
    of: Neighbour
    matches: tuple[Neighbour, ...]


class Decisions(NamedTuple):
    """What to write, in this order: the duplicates, then the claims, and the kept ones last."""

    duplicates: tuple[Duplicate, ...]
    claims: tuple[Duplicate, ...]
    kept: tuple[Record, ...]


def decide(
    batch: Sequence[Record],
    neighbours: Mapping[bytes, Sequence[Neighbour]],
    states: Mapping[bytes, State],
    never_flagged: frozenset[bytes] = frozenset(),
) -> Decisions:
    """Decide every pending version of the batch, in order of arrival, each seeing the decisions before it.

    ``neighbours`` and ``states`` are by reference; the states are those read for the batch and all its neighbours.
    ``never_flagged`` are the references whose source is never flagged: always kept, and claimed by nobody.
    """
    known = dict(states)
    duplicates: list[Duplicate] = []
    kept: list[Record] = []
    for record in sorted(batch, key=lambda one: one.arrival):
        if known[record.reference] is not State.PENDING:
            continue
        matches = () if record.reference in never_flagged else _matches(record, neighbours[record.reference], known)
        if matches:
            known[record.reference] = State.DUPLICATE
            duplicates.append(Duplicate(record, matches[0], matches))
        else:
            known[record.reference] = State.KEPT
            kept.append(record)
    return Decisions(tuple(duplicates), _claims(kept, neighbours, states, known, never_flagged), tuple(kept))


def _matches(record: Record, near: Sequence[Neighbour], known: Mapping[bytes, State]) -> tuple[Neighbour, ...]:
    """The kept ones, best first; where none is kept, the earlier pending ones."""
    kept = [other for other in near if known[other.record.reference] is State.KEPT]
    pending = [
        other
        for other in near
        if known[other.record.reference] is State.PENDING and other.record.arrival < record.arrival
    ]
    return tuple(sorted(kept or pending, key=_preference))


def _preference(neighbour: Neighbour) -> tuple[float, int, tuple[int, int, bytes]]:
    """Most similar, then nearest, then earliest."""
    return (-(neighbour.similarity or 0.0), neighbour.distance, neighbour.record.arrival)


def _claims(
    kept: Sequence[Record],
    neighbours: Mapping[bytes, Sequence[Neighbour]],
    states: Mapping[bytes, State],
    known: Mapping[bytes, State],
    never_flagged: frozenset[bytes],
) -> tuple[Duplicate, ...]:
    """What the kept ones claim: later near versions that are pending in the store and not decided here as duplicates.

    Without it a later version that read too early would be kept beside the one that is about to be.
    """
    claimed: dict[bytes, Duplicate] = {}
    for record in kept:
        for other in neighbours[record.reference]:
            reference = other.record.reference
            if (
                other.record.arrival > record.arrival
                and states[reference] is State.PENDING
                and known[reference] is not State.DUPLICATE
                and reference not in never_flagged
                and reference not in claimed
            ):
                of = Neighbour(record, other.distance, other.similarity)
                claimed[reference] = Duplicate(other.record, of, (of,))
    return tuple(claimed.values())
