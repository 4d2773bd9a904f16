"""Adds near misses to the verdicts of a batch, once it is settled."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from consumer.judge.decision import Neighbour, State, preference
from consumer.judge.near_misses import NearMisses
from consumer.judge.search import Neighbourhood, Search
from consumer.model.verdict import VerdictEvent
from storage.records import Record, Stored


def near_miss_events(
    near_misses: NearMisses,
    search: Search,
    stored: Sequence[Stored],
    verdicts: Mapping[bytes, VerdictEvent],
    near: Neighbourhood,
) -> dict[bytes, VerdictEvent]:
    """Return the verdicts that have a near miss, with it, by reference.

    ``stored`` is the batch as it was before, ``near`` what was found for those of it that were pending. Raises the
    store's errors.
    """
    # Whoever settled a version may have ended before its near miss was sent.
    before = [version.record for version in stored if version.verdict is not None and near_misses.draws(version.record)]
    found = search.look_up_unstored(before).missed if before else {}
    if not found and not near.missed:
        return {}
    kept = {version.record.reference: version.record for version in stored if _is_kept(verdicts, version.record)}
    repeats = verdicts.keys() - kept.keys()
    best = {
        reference: _best_earlier(kept[reference], missed) for reference, missed in found.items() if reference in kept
    } | {
        reference: _best(kept[reference], (other for other in missed if other.record.reference not in repeats), near)
        for reference, missed in near.missed.items()
        if reference in kept
    }
    return {
        reference: msgspec.structs.replace(
            verdicts[reference], near_miss=near_misses.event(kept[reference], verdicts[reference].verdict, other)
        )
        for reference, other in best.items()
        if other is not None
    }


def _is_kept(verdicts: Mapping[bytes, VerdictEvent], record: Record) -> bool:
    """Return whether a version repeats nothing by its judge: what a person released was flagged before."""
    verdict = verdicts[record.reference].verdict
    return verdict.outcome == "unique" and verdict.released is msgspec.UNSET


def _best(record: Record, missed: Iterable[Neighbour], near: Neighbourhood) -> Neighbour | None:
    """Return what would have been named, as in ``decide``: a kept version, or an earlier one that was pending."""
    return _preferred(
        other for other in missed if near.state(other) is State.KEPT or other.record.arrival < record.arrival
    )


def _best_earlier(record: Record, missed: Iterable[Neighbour]) -> Neighbour | None:
    """Return what would have been named, as far as that can still be known: a later version may have come since."""
    return _preferred(other for other in missed if other.record.arrival < record.arrival)


def _preferred(missed: Iterable[Neighbour]) -> Neighbour | None:
    return min(missed, key=preference, default=None)
