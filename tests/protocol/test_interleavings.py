"""The production judge through every interleaving of its store calls, case by case."""

import pytest

from tests.protocol.cases import Case, all_cases

CASES = all_cases()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_promise_holds_at_every_end(case: Case) -> None:
    """Whatever the order of the steps and wherever a process crashes, every promise holds in the end."""
    explored = case.explored()
    assert explored.wrong == (), explored.told()
    assert explored.ends > 0
