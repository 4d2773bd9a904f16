"""Each rule about content that returns is needed: without it the explorer finds a wrong stretch or a wrong answer."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from consumer.judge import stretches
from consumer.judge.stretches import DeliveryPlacement, NewStretch, Replay, placement_of
from storage.records import Record, StoredVersion, Tombstone, Version
from tests.protocol import mutants
from tests.protocol.cases import all_cases

CASES = all_cases()
Last = StoredVersion | Tombstone | None


def _forgets_origins(delivery: Record, stored: Record) -> bool:
    """Take no delivery for one that was stored."""
    del delivery, stored
    return False


def _trusts_origins_alone(
    version: Version, latest: Last, stored: Sequence[StoredVersion], stretches_max: int
) -> DeliveryPlacement:
    """Take what came last for this delivery if it came from the same place, whatever it said."""
    if isinstance(latest, StoredVersion) and latest.record.origin == version.record.origin:
        return Replay(latest)
    return placement_of(version, latest, stored, stretches_max)


def _begins_though_in_force(
    version: Version, latest: Last, stored: Sequence[StoredVersion], stretches_max: int
) -> DeliveryPlacement:
    """Begin a stretch though the content is in force."""
    placement = placement_of(version, latest, stored, stretches_max)
    if isinstance(placement, NewStretch) or placement.stored.record.origin == version.record.origin:
        return placement
    return NewStretch((placement.stored.record.stretch or 0) + 1)


def _ignores_the_order(version: Version, entry: StoredVersion | Tombstone) -> bool:
    """Take every delivery for a later one."""
    del version, entry
    return True


def _ignores_places(version: Version, entry: StoredVersion | Tombstone) -> bool:
    """Order deliveries by the times that they arrive at, also where these are not their own."""
    other = entry.record if isinstance(entry, StoredVersion) else entry
    return version.record.arrival[:2] > other.arrival[:2]


def _numbers_nothing(first: Record, stretch: int) -> Record:
    """Give all later stretches one name."""
    return stretches_in(first, min(stretch, 1))


def _answers_by_the_first(
    version: Version, latest: Last, stored: Sequence[StoredVersion], stretches_max: int
) -> DeliveryPlacement:
    """Answer every replay with the first stretch."""
    placement = placement_of(version, latest, stored, stretches_max)
    return placement if isinstance(placement, NewStretch) else Replay(stored[0])


def _never_returns(
    version: Version, latest: Last, stored: Sequence[StoredVersion], stretches_max: int
) -> DeliveryPlacement:
    """Replay whatever was seen before, as stores without returns do."""
    del stretches_max
    return placement_of(version, latest, stored, 0)


def _names_no_stretch(first: Record, stretch: int) -> Record:
    """Store a later stretch under the reference of the first."""
    del stretch
    return first


stretches_in = stretches.in_stretch

BROKEN: list[tuple[str, Callable[..., Any], str]] = [
    ("is_delivery_of", _forgets_origins, "requests A, B, A, B, then A by the same key again, 2 crashes"),
    ("placement_of", _trusts_origins_alone, "request A, B, topic made anew, A|copy, 2 crashes"),
    ("placement_of", _begins_though_in_force, "A, far B, A, A|copy, 2 crashes"),
    ("_is_later", _ignores_the_order, "A, A, far B, then A unchanged again|copy, 2 crashes"),
    ("_is_later", _ignores_places, "A, A, far B, then A unchanged again|copy, 2 crashes"),
    ("in_stretch", _numbers_nothing, "A, far B, A, B, A|copy, 2 crashes"),
    ("in_stretch", _names_no_stretch, "A, far B, A|copy, 2 crashes"),
    ("placement_of", _answers_by_the_first, "A, null, copy kept, A|A again, 2 crashes"),
    ("placement_of", _never_returns, "A, null, A|copy, 2 crashes"),
]


@pytest.mark.parametrize(("name", "broken", "case"), BROKEN)
def test_a_rule_of_stretches_is_needed(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: Callable[..., Any], case: str
) -> None:
    """Without the rule something is wrong at some end; with it the same case is clean."""
    assert CASES[case].explored().wrong == ()
    monkeypatch.setattr(stretches, name, broken)
    assert CASES[case].explored().wrong


def test_a_stretch_is_written_once() -> None:
    """A store that overwrites a stretch lets two articles name each other."""
    case = CASES["A, null, A|A arriving later|copy from between, 1 crashes"]
    assert case.explored().wrong == ()
    assert case.explored(mutants.overwriting_store).wrong
