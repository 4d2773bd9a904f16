"""The production judge in every interleaving of its store calls, case by case."""

import pytest

from tests.examples import drawn
from tests.protocol.cases import FAMILIES, Case, all_cases

CASES = all_cases()
NAMES = [name for family in FAMILIES.values() for name in drawn([case.full_name for case in family()], 12)]
"""Some of each family, others in each run; the cases of test_mutants.py are explored there, always."""


@pytest.mark.parametrize("case", [CASES[name] for name in NAMES], ids=NAMES)
def test_every_promise_holds_at_every_end(case: Case) -> None:
    """Every promise holds at every end, in any order of steps and with crashes anywhere."""
    explored = case.explored()
    assert explored.wrong == (), explored.trace_text()
    assert explored.ends > 0
