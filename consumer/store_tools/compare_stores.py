"""What would change: the verdicts of one store beside those of another, version by version."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal, NamedTuple

from consumer.model.verdict import Verdict, decode_verdict
from consumer.store_tools.inspection import reference_in
from storage.interface import Store
from storage.records import Stored

Change = Literal["same", "flagged_now", "not_flagged_now", "other_partner", "partner_came_before", "not_in_force"]

CHANGES: Final[dict[Change, str]] = {
    "same": "the same",
    "flagged_now": "flagged now, and were not",
    "not_flagged_now": "not flagged now, and were",
    "other_partner": "flagged against another article",
    "partner_came_before": "were flagged against an article that came before the stretch",
    "not_in_force": "have no verdict in the store in force",
}
"""Each kind and what it says of so many versions."""

_READ: Final = 256


class Changed(NamedTuple):
    """A version, the kind of its change, and what both stores say."""

    change: Change
    now: Verdict
    before: Verdict | None


class Report(NamedTuple):
    """How many versions there are of each kind, and some of each that changed."""

    counts: Counter[Change]
    examples: list[Changed]


def compare_stores(now: Store, before: Store, examples_max: int) -> Report:
    """Compare every version that ``now`` has a verdict of with what ``before`` says, with so many examples of a kind.

    A flag whose original came before the stretch cannot be found by who never saw it: it is no change, and counted by
    itself.
    """
    counts: Counter[Change] = Counter()
    examples: list[Changed] = []
    for one in _compared(now, before):
        counts[one.change] += 1
        if one.change not in {"same", "not_in_force"} and counts[one.change] <= examples_max:
            examples.append(one)
    order = list(CHANGES)
    return Report(counts, sorted(examples, key=lambda one: (order.index(one.change), one.now.id)))


def _compared(now: Store, before: Store) -> Iterator[Changed]:
    judged = (one for one in now.scan() if isinstance(one, Stored) and one.verdict is not None)
    while batch := list(islice(judged, _READ)):
        verdicts = [decode_verdict(one.verdict or b"") for one in batch]
        stored = before.read([one.record.reference for one in batch])
        earlier = [None if one is None or one.verdict is None else decode_verdict(one.verdict) for one in stored]
        pairs = list(zip(verdicts, earlier, strict=True))
        partners = [
            reference_in(old.duplicate_of or "", old.duplicate_of_version)
            for new, old in pairs
            if old is not None and old.outcome == "duplicate" and new.outcome != "duplicate"
        ]
        wanted = sorted(set(partners))
        there = {ref for ref, one in zip(wanted, now.read(wanted), strict=True) if one is not None}
        for new, old in pairs:
            yield Changed(_change(new, old, there), new, old)


def _change(new: Verdict, old: Verdict | None, there: set[bytes]) -> Change:
    if old is None:
        return "not_in_force"
    if new.outcome == old.outcome:
        return "same" if new.duplicate_of == old.duplicate_of else "other_partner"
    if new.outcome == "duplicate":
        return "flagged_now"
    partner = reference_in(old.duplicate_of or "", old.duplicate_of_version)
    return "not_flagged_now" if partner in there else "partner_came_before"
