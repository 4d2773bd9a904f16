"""Every protection is needed: a judge or a store without it breaks a promise, and the explorer finds where."""

from collections.abc import Callable
from functools import cache

import pytest

from consumer.judge import attempt
from consumer.judge.detector import Detector
from storage.interface import Store
from tests.protocol import mutants
from tests.protocol.cases import all_cases

CASES = all_cases()

BROKEN_JUDGES = [
    (mutants.LooksUpFirst, "pair 0|1, 2 crashes", "both kept"),
    (mutants.LooksUpFirst, "path 0-1-2, 01|12, 0 crashes", "both kept"),
    (mutants.ClaimsNothing, "pair 0|1, 2 crashes", "both kept"),
    (mutants.ClaimsNothing, "path 1-0-2, 01|2, 1 crashes", "both kept"),
    (mutants.KeepsBeforeItClaims, "pair 0|1, 2 crashes", "both kept"),
    (mutants.KeepsBeforeItClaims, "path 1-0-2, 01|2, 1 crashes", "both kept"),
    (mutants.ForgetsItsLosses, "pair 0|1, 2 crashes", "both kept"),
    (mutants.ForgetsItsLosses, "path 0-2-1, 01|2, 1 crashes", "both kept"),
    (mutants.NeverReadsAgain, "pair 0|1, 2 crashes", "lost a compare-and-set"),
    (mutants.NeverReadsAgain, "path 1-0-2, 12|0, 1 crashes", "lost a compare-and-set"),
    (mutants.GivesUpOnPendingOnes, "pair 0|1, 2 crashes", "both kept"),
    (mutants.GivesUpOnPendingOnes, "path 0-1-2, 12|0, 1 crashes", "both kept"),
    (mutants.TrustsItsMemory, "known, but pending and later, 0 crashes", "circle"),
    (mutants.RemovesWhatWasReplaced, "then far, v2|between|after, 0 crashes", "both kept"),
    (mutants.FlagsEverySource, "triangle, 01|2, 1 never flagged, 1 crashes", "its source never is"),
    (mutants.RemovesTooMuch, "pair 0|1, 2 crashes", "has lost a posting"),
    (mutants.AsksItsOwnBank, "one allows 1, 01|01, 1 crashes", "its source never is"),
    (mutants.AsksItsOwnBank, "one allows 0, one 1, 01|01, 1 crashes", "its source never is"),
]
BROKEN_STORES = [
    (mutants.overwriting_store, "0 delivered twice, 0|1|0 late, 1 crashes", "circle"),
    (mutants.overwriting_store, "first, far, first again|between, 0 crashes", "both kept"),
    (mutants.overwriting_store, "triangle, 0@1 1@2|0@2 1@1, 1 crashes", "circle"),
    (mutants.overwriting_store, "path 1-0-2, 0@1 1@2 2@3|0@3 1@2 2@1, 0 crashes", "circle"),
    (mutants.hoarding_store, "pair 0|1, 2 crashes", "still has a posting"),
    (mutants.putting_store, "pair 0|1, 2 crashes", "both kept"),
    (mutants.putting_store, "path 1-0-2, 12|0, 1 crashes", "both kept"),
]


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a judge that never finishes fail after a few rounds."""
    monkeypatch.setattr(attempt, "SETTLE_ROUNDS_MAX", 8)


@cache
def is_clean(name: str) -> bool:
    """Return whether the case keeps every promise; several protections are tested with the same case."""
    return not CASES[name].explored().wrong


@pytest.mark.parametrize(("broken", "name", "promise"), BROKEN_JUDGES)
def test_a_judge_without_a_protection_is_caught(broken: type[Detector], name: str, promise: str) -> None:
    """Without the protection the promise breaks; with it the same case is clean."""
    assert CASES[name].with_judge(broken).explored(looking_for=promise).wrong
    assert is_clean(name)


@pytest.mark.parametrize(("broken", "name", "promise"), BROKEN_STORES)
def test_a_store_without_a_protection_is_caught(broken: Callable[[], Store], name: str, promise: str) -> None:
    """Without the protection the promise breaks; with it the same case is clean."""
    assert CASES[name].explored(broken, looking_for=promise).wrong
    assert is_clean(name)


@pytest.mark.parametrize("shape", ["triangle", "path 0-1-2", "path 1-0-2", "path 0-2-1"])
def test_learning_only_what_was_lost_would_do(shape: str) -> None:
    """A stale belief that a version is pending leads to an allowed verdict, or to a claim that fails."""
    for batch in ("12|0", "02|1", "012|2"):
        case = CASES[f"{shape}, {batch}, 1 crashes"]
        assert not case.with_judge(mutants.ReadsAgainOnlyWhatItLost).explored().wrong
