"""Whether the banks that verdicts name can be explained by the changes of the banks, as pure functions.

A client knows of a change when it asked for it first, and when it was answered. The change took place in between.
Consumers follow it later: ``FOLLOWED_MS`` after the answer at most, in which the brokers have to be there. So three
things can be said of an item and a verdict: that it must be named, that it must not be, or that either is right.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from consumer.banks.bank import ItemKey

FOLLOWED_MS: Final = 10_000
"""The promise: this long after a change was answered, all consumers follow it, if the brokers answer."""


class Change(NamedTuple):
    """A change of an item: the first request, and the answer to the last one. In between it took place."""

    requested_ms: int
    answered_ms: int


class Life(NamedTuple):
    """How an item was added to its bank and removed or disabled; ``removed`` is None while it is there."""

    added: Change
    removed: Change | None = None


class Outage(NamedTuple):
    """A time in which brokers were away."""

    began_ms: int
    ended_ms: int


class Judged(NamedTuple):
    """A verdict: on an article that is a copy of ``copy_of`` or of no item, and names these items."""

    article: str
    arrived_ms: int
    decided_ms: int
    copy_of: ItemKey | None
    named: frozenset[ItemKey]


class Claim(StrEnum):
    """What can be said of the item that an article repeats."""

    NAMED = "must be named"
    NOT_NAMED = "must not be named"
    EITHER = "may be named"


class Checked(NamedTuple):
    """How many verdicts there were with each claim, and one sentence about each that is wrong."""

    claims: Counter[Claim]
    wrong: Sequence[str]


def followed_ms(change_ms: int, outages: Iterable[Outage]) -> int:
    """Return by when all consumers follow a change: after ``FOLLOWED_MS`` in a row without an outage."""
    since_ms = change_ms
    for outage in sorted(outages):
        if outage.began_ms < since_ms + FOLLOWED_MS:
            since_ms = max(since_ms, outage.ended_ms)
    return since_ms + FOLLOWED_MS


def claim_of(judged: Judged, life: Life | None, outages: Sequence[Outage]) -> Claim:
    """Return whether an item with this life must be named in a verdict on its copy; None for one that never was."""
    if life is None or life.added.requested_ms > judged.decided_ms:
        return Claim.NOT_NAMED
    if life.removed is not None and followed_ms(life.removed.answered_ms, outages) < judged.arrived_ms:
        return Claim.NOT_NAMED
    is_followed = followed_ms(life.added.answered_ms, outages) <= judged.arrived_ms
    is_there = life.removed is None or judged.decided_ms < life.removed.requested_ms
    return Claim.NAMED if is_followed and is_there else Claim.EITHER


def check_banks(verdicts: Iterable[Judged], lives: Mapping[ItemKey, Life], outages: Sequence[Outage]) -> Checked:
    """Compare what verdicts name with the lives of the items."""
    claims: Counter[Claim] = Counter()
    wrong = []
    for judged in verdicts:
        strange = judged.named - {judged.copy_of}
        if strange:
            wrong.append(f"{judged.article} names {sorted(strange)}, of which it is no copy")
        if judged.copy_of is None:
            continue
        life = lives.get(judged.copy_of)
        claim = claim_of(judged, life, outages)
        claims[claim] += 1
        if claim is (Claim.NOT_NAMED if judged.copy_of in judged.named else Claim.NAMED):
            wrong.append(f"{judged.article}: {judged.copy_of} {claim}; {judged}, {life}, {[*outages]}")
    return Checked(claims, wrong)
