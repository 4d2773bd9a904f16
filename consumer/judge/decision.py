"""Decides the verdicts of a batch, in memory.

Pure functions; ``docs/contributing/protocol.md`` describes them. A duplicate names a kept version or an earlier one, so
following ``duplicate_of`` never leads in a circle.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from consumer.model.verdict import outcome_of
from storage.records import Arrival, Record, StoredVersion


class VersionState(Enum):
    """The state of a version, by its verdict cell."""

    PENDING = "pending"
    KEPT = "kept"
    DUPLICATE = "duplicate"


def state_of(stored: StoredVersion) -> VersionState:
    """Return the state of a version as read. Raises ``UnreadableEvent`` for a damaged verdict."""
    if stored.verdict is None:
        return VersionState.PENDING
    return VersionState.KEPT if outcome_of(stored.verdict) == "unique" else VersionState.DUPLICATE


class Neighbour(NamedTuple):
    """A version near the one being judged. The distance is in bits; the similarity is None with plain SimHash."""

    record: Record
    distance: int
    similarity: float | None


class EndedNeighbour(NamedTuple):
    """A version that would be near had it not ended, and the retraction or next version that ended it."""

    neighbour: Neighbour
    ends_at: Arrival


class Neighbourhood(NamedTuple):
    """The stored versions near the records of a batch, all by reference.

    ``stored`` has the versions read, ``neighbours`` the near ones of each record, ``truncated`` the records whose
    search hit a limit, ``missed`` the near misses of sampled records, and ``ended`` the versions that would be near had
    they not ended before the record arrived.
    """

    stored: Mapping[bytes, StoredVersion]
    neighbours: Mapping[bytes, list[Neighbour]]
    truncated: frozenset[bytes]
    missed: Mapping[bytes, list[Neighbour]] = MappingProxyType({})
    ended: Mapping[bytes, list[EndedNeighbour]] = MappingProxyType({})

    def references(self) -> dict[bytes, frozenset[bytes]]:
        """Return the references of the versions near each record."""
        return {
            reference: frozenset(other.record.reference for other in others)
            for reference, others in self.neighbours.items()
        }

    def state(self, neighbour: Neighbour) -> VersionState:
        """Return the state of a neighbour as read."""
        return state_of(self.stored[neighbour.record.reference])


class Duplicate(NamedTuple):
    """A record that repeats ``of``; ``matches`` are all versions that it could name, best first."""

    record: Record
    of: Neighbour
    matches: tuple[Neighbour, ...]


class Decisions(NamedTuple):
    """The verdicts to write, in this order: duplicates, claims, kept versions."""

    duplicates: tuple[Duplicate, ...]
    claims: tuple[Duplicate, ...]
    kept: tuple[Record, ...]


def decide(
    batch: Sequence[Record],
    neighbours: Mapping[bytes, Sequence[Neighbour]],
    states: Mapping[bytes, VersionState],
    never_flagged: frozenset[bytes] = frozenset(),
) -> Decisions:
    """Return the decisions on all pending versions of the batch.

    They are decided in order of arrival, and each decision sees the earlier ones. ``neighbours`` and ``states`` are by
    reference; ``states`` has the batch and all its neighbours, as read. Versions in ``never_flagged`` are kept and
    never claimed.
    """
    known = dict(states)
    duplicates: list[Duplicate] = []
    kept: list[Record] = []
    for record in sorted(batch, key=attrgetter("arrival")):
        if known[record.reference] is not VersionState.PENDING:
            continue
        near = neighbours[record.reference]
        matches = _matches(record, near, known) if near and record.reference not in never_flagged else ()
        if matches:
            known[record.reference] = VersionState.DUPLICATE
            duplicates.append(Duplicate(record, matches[0], matches))
        else:
            known[record.reference] = VersionState.KEPT
            kept.append(record)
    return Decisions(tuple(duplicates), _claims(kept, neighbours, states, known, never_flagged), tuple(kept))


def _matches(record: Record, near: Sequence[Neighbour], known: Mapping[bytes, VersionState]) -> tuple[Neighbour, ...]:
    """Return the kept neighbours, best first, or the earlier pending ones if none is kept."""
    kept = [other for other in near if known[other.record.reference] is VersionState.KEPT]
    pending = [
        other
        for other in near
        if known[other.record.reference] is VersionState.PENDING and other.record.arrival < record.arrival
    ]
    return tuple(sorted(kept or pending, key=preference))


def preference(neighbour: Neighbour) -> tuple[float, int, tuple[int, int, bytes]]:
    """Return a sort key: most similar first, then nearest, then earliest."""
    return (-(neighbour.similarity or 0.0), neighbour.distance, neighbour.record.arrival)


def _claims(
    kept: Sequence[Record],
    neighbours: Mapping[bytes, Sequence[Neighbour]],
    states: Mapping[bytes, VersionState],
    known: Mapping[bytes, VersionState],
    never_flagged: frozenset[bytes],
) -> tuple[Duplicate, ...]:
    """Return the claims of kept versions: later near versions that are pending in the store and not duplicates here.

    Without claims, a later version whose judge read too early would be kept too.
    """
    claimed: dict[bytes, Duplicate] = {}
    for record in kept:
        for other in neighbours[record.reference]:
            reference = other.record.reference
            if (
                other.record.arrival > record.arrival
                and states[reference] is VersionState.PENDING
                and known[reference] is not VersionState.DUPLICATE
                and reference not in never_flagged
                and reference not in claimed
            ):
                of = Neighbour(record, other.distance, other.similarity)
                claimed[reference] = Duplicate(other.record, of, (of,))
    return tuple(claimed.values())
