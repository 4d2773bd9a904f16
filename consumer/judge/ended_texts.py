"""Says which text an article repeats that was retracted or replaced before it arrived.

An ended version is near nothing that arrives later, so whoever retracts a text and sends it again under another id is
never flagged. What is said here shows it, and decides nothing. It is taken from the candidates that are read anyway,
before the verdict is settled, so all judges of a version answer the same bytes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from consumer.judge.decision import Neighbour
from consumer.judge.events import rounded, version_name
from consumer.model.verdict import EndedBefore
from consumer.text.timestamps import rfc3339
from storage.records import Arrival


class EndedNeighbour(NamedTuple):
    """A version that would be near, and the arrival that ended it: of a retraction, or of its id's next version."""

    neighbour: Neighbour
    ends_at: Arrival


def ended_before(ended: Sequence[EndedNeighbour]) -> EndedBefore | None:
    """Return what a verdict says of the most similar of these; among equals of the one that ended last."""
    if not ended:
        return None
    best = min(ended, key=_preference)
    record = best.neighbour.record
    return EndedBefore(
        id=record.id,
        version=version_name(record.reference),
        ended_at=rfc3339(best.ends_at.time_ms),
        similarity=rounded(best.neighbour.similarity),
    )


def _preference(ended: EndedNeighbour) -> tuple[float, int, int, bytes]:
    """Order by similarity, then by the latest end, then by reference."""
    neighbour, ends_at = ended
    return (-(neighbour.similarity or 0.0), -ends_at.time_ms, -ends_at.sequence, neighbour.record.reference)
