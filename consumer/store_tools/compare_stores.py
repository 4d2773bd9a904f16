"""Compares the verdicts of two stores, version by version."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal, NamedTuple

from consumer.judge.events import original_of
from consumer.model.verdict import Verdict, decode_verdict
from storage.interface import Store
from storage.records import StoredVersion

VerdictChangeKind = Literal[
    "same", "flagged_now", "not_flagged_now", "other_partner", "partner_came_before", "not_in_force"
]

CHANGES: Final[dict[VerdictChangeKind, str]] = {
    "same": "the same",
    "flagged_now": "flagged now, but not before",
    "not_flagged_now": "flagged before, but not now",
    "other_partner": "flagged against another article",
    "partner_came_before": "flagged before, against an article older than the replayed range",
    "not_in_force": "without a verdict in the current store",
}
"""The kinds of changes, and their descriptions in a report, which calls the store ``before`` the current one."""

_BATCH: Final = 256
"""The number of versions to compare at once."""


class VerdictChange(NamedTuple):
    """The change of a version's verdict: its kind, and the verdicts in both stores.

    ``before`` is None if there is none.
    """

    change: VerdictChangeKind
    now: Verdict
    before: Verdict | None


class StoreComparison(NamedTuple):
    """The number of versions of each kind, and examples of versions whose verdict changed."""

    counts: Counter[VerdictChangeKind]
    examples: list[VerdictChange]


def compare_stores(now: Store, before: Store, examples_max: int) -> StoreComparison:
    """Return the changes of verdicts from ``before`` to ``now``, with at most ``examples_max`` examples of each kind.

    There are no examples of the kinds ``same`` and ``not_in_force``.

    A flag in ``before`` whose original is not in ``now`` cannot be found again, so it counts as
    ``partner_came_before``, not as ``not_flagged_now``. Raises the stores' errors.
    """
    counts: Counter[VerdictChangeKind] = Counter()
    examples: list[VerdictChange] = []
    for change in _changes(now, before):
        counts[change.change] += 1
        if change.change not in {"same", "not_in_force"} and counts[change.change] <= examples_max:
            examples.append(change)
    order = list(CHANGES)
    return StoreComparison(counts, sorted(examples, key=lambda example: (order.index(example.change), example.now.id)))


def _changes(now: Store, before: Store) -> Iterator[VerdictChange]:
    judged = (stored for stored in now.scan() if isinstance(stored, StoredVersion) and stored.verdict is not None)
    while batch := list(islice(judged, _BATCH)):
        verdicts = [decode_verdict(stored.verdict or b"") for stored in batch]
        counterparts = before.read([stored.record.reference for stored in batch])
        earlier = [None if old is None or old.verdict is None else decode_verdict(old.verdict) for old in counterparts]
        pairs = list(zip(verdicts, earlier, strict=True))
        partners = [
            original_of(old)
            for new, old in pairs
            if old is not None and old.outcome == "duplicate" and new.outcome != "duplicate"
        ]
        references = sorted(set(partners))
        pairs_read = zip(references, now.read(references), strict=True)
        present = {reference for reference, stored in pairs_read if stored is not None}
        for new, old in pairs:
            yield VerdictChange(_change(new, old, present), new, old)


def _change(new: Verdict, old: Verdict | None, present: set[bytes]) -> VerdictChangeKind:
    if old is None:
        return "not_in_force"
    if new.outcome == old.outcome:
        return "same" if new.duplicate_of == old.duplicate_of else "other_partner"
    if new.outcome == "duplicate":
        return "flagged_now"
    partner = original_of(old)
    return "not_flagged_now" if partner in present else "partner_came_before"
