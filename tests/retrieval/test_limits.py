"""The limits of matching: the window, versions in force, and caps, which a verdict mentions."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import Verdict
from storage.interface import Store
from storage.records import Tombstone, Version
from tests.builders import TIME_MS, make_tombstone
from tests.contract.conftest import Kind, SetClock
from tests.retrieval.populations import fingerprint_version, plain

SETTINGS = plain(3)
WINDOW_MS = SETTINGS.window_ms
CODE, FAR_CODE = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210


def judged(store: Store, *arrived: Version | Tombstone, settings: JudgeSettings = SETTINGS) -> list[Verdict]:
    """Return the verdicts of these, each judged by a detector that remembers no earlier articles."""
    return [Detector(store, settings, lambda: TIME_MS).judge([version])[0].verdict for version in arrived]


def outcomes(verdicts: Sequence[Verdict]) -> list[str]:
    """Return outcomes and originals."""
    return [verdict.outcome for verdict in verdicts]


@pytest.mark.parametrize(("gap_ms", "outcome"), [(WINDOW_MS, "duplicate"), (WINDOW_MS + 1, "unique")])
@pytest.mark.parametrize("backwards", [False, True])
def test_the_window_ends_after_its_last_millisecond(
    store: Store, gap_ms: int, outcome: str, *, backwards: bool
) -> None:
    """Arrivals exactly one window apart match, and those a millisecond further apart do not; in either order."""
    pair = [fingerprint_version(CODE, 0), fingerprint_version(CODE, 1, time_ms=TIME_MS + gap_ms)]
    verdicts = judged(store, *(reversed(pair) if backwards else pair))
    assert outcomes(verdicts) == ["unique", outcome]


@pytest.mark.parametrize(("number", "outcome"), [(1, "duplicate"), (2, "duplicate"), (4, "unique")])
def test_a_replaced_version_matches_what_came_before_its_end_only(store: Store, number: int, outcome: str) -> None:
    """The second version of an id ends the first: articles that arrived between them repeat it, later ones do not."""
    first = fingerprint_version(CODE, 0, name="changing", content=b"first")
    second = fingerprint_version(FAR_CODE, 3, name="changing", content=b"second")
    verdicts = judged(store, first, second, fingerprint_version(CODE, number))
    assert outcomes(verdicts) == ["unique", "unique", outcome]


@pytest.mark.parametrize(("number", "outcome"), [(2, "duplicate"), (4, "unique")])
def test_a_retracted_version_matches_what_came_before_its_end_only(store: Store, number: int, outcome: str) -> None:
    """A tombstone ends a version as a newer version does."""
    gone = make_tombstone("retracted", sequence=3)
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    detector.judge([fingerprint_version(CODE, 0, name="retracted")])
    detector.judge([gone])
    assert outcomes(judged(store, fingerprint_version(CODE, number))) == [outcome]


@pytest.mark.parametrize("tied_before", [True, False])
def test_a_tie_in_time_and_sequence_ends_a_version_by_reference(store: Store, *, tied_before: bool) -> None:
    """For equal time and sequence in two feeds, the reference decides whether the first version had ended."""
    first = fingerprint_version(CODE, 0, name="changing", content=b"first")
    second = fingerprint_version(FAR_CODE, 3, name="changing", content=b"second")
    tied = (fingerprint_version(CODE, 3, name=f"tied {number}") for number in count())
    other = next(version for version in tied if (version.record.arrival < second.record.arrival) == tied_before)
    verdicts = judged(store, first, second, other)
    assert outcomes(verdicts) == ["unique", "unique", "duplicate" if tied_before else "unique"]


def test_a_row_over_the_cap_marks_the_verdict(kind: Kind, clock: SetClock) -> None:
    """Verdicts that read a row with more postings than the store's cap are marked as truncated."""
    flooded = [fingerprint_version(CODE ^ low, number) for number, low in enumerate((0xF, 0xFF0, 0xF0F0, 0xFFFF))]
    with kind.opened(clock, 3) as store:
        verdicts = judged(store, *flooded)
    assert outcomes(verdicts) == ["unique"] * 4
    assert [verdict.truncated for verdict in verdicts] == [False, False, False, True]


def test_more_candidates_than_the_limit_mark_the_verdict(store: Store) -> None:
    """Beyond ``verifications_max`` the farthest candidates are left out, and the verdict is marked as truncated."""
    around = [fingerprint_version(CODE ^ mask, number) for number, mask in enumerate((0b111 << 13, 0b11 << 3, 0b1))]
    assert outcomes(judged(store, *around, settings=plain(1))) == ["unique"] * 3
    new = fingerprint_version(CODE, 9)
    ((found, truncated, *_),) = Detector(store, SETTINGS, lambda: TIME_MS).query([new])
    assert ([match.distance for match in found], truncated) == ([1, 2, 3], False)
    limited = replace(SETTINGS, verifications_max=2)
    ((found, truncated, *_),) = Detector(store, limited, lambda: TIME_MS).query([new])
    assert ([match.distance for match in found], truncated) == ([1, 2], True)
    verdict = judged(store, new, settings=limited)[0]
    assert verdict.truncated
    assert [match.distance for match in verdict.matches] == [1, 2]
