"""The production judge in every interleaving of its store calls, case by case."""

import pytest

from tests.protocol.cases import Case, all_cases

CASES = all_cases()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_promise_holds_at_every_end(case: Case) -> None:
    """Every promise holds at every end, in any order of steps and with crashes anywhere."""
    explored = case.explored()
    assert explored.wrong == (), explored.trace_text()
    assert explored.ends > 0
