"""How many examples and cases a test draws: few in ``make test``, all of them in ``make test-load``."""

import os
import random
from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import settings

DEFAULT: Final = 100
"""What Hypothesis draws by default."""
_ALL: Final = "TEST_ALL_EXAMPLES" in os.environ
_SHARE: Final = 1.0 if _ALL else 0.05
_FEW: Final = 15
"""A test that asks for no more draws them all."""
# Workers of xdist have to collect the same tests. Without xdist every run draws the same.
_RUN: Final = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")

_Case = TypeVar("_Case")


def share_of(count: int) -> int:
    """Return how many of ``count`` examples this run draws; every run draws others."""
    return max(min(count, _FEW), round(count * _SHARE))


def examples(count: int) -> settings:
    """Return Hypothesis' settings for a test that draws ``count`` examples in ``make test-load``."""
    return settings(max_examples=share_of(count))


def drawn(cases: Sequence[_Case], one_in: int, apart: str = "") -> list[_Case]:
    """Return one in ``one_in`` of the cases, at least one, in their order; each run under xdist draws others.

    Draws of equally many cases are alike, unless ``apart`` names what they are for. ``make test-load`` has all cases.
    """
    if _ALL:
        return list(cases)
    places = random.Random(f"{_RUN} {len(cases)}{apart}").sample(range(len(cases)), -(-len(cases) // one_in))
    return [cases[place] for place in sorted(places)]
