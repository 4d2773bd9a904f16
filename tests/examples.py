"""How many examples of Hypothesis a test draws: few in ``make test``, all of them in ``make test-load``."""

import os
from typing import Final

from hypothesis import settings

DEFAULT: Final = 100
"""What Hypothesis draws by default."""
_SHARE: Final = 1.0 if "TEST_ALL_EXAMPLES" in os.environ else 0.25
_FEW: Final = 25
"""A test that asks for no more draws them all."""


def share_of(count: int) -> int:
    """Return how many of ``count`` examples this run draws; every run draws others."""
    return max(min(count, _FEW), round(count * _SHARE))


def examples(count: int) -> settings:
    """Return Hypothesis' settings for a test that draws ``count`` examples in ``make test-load``."""
    return settings(max_examples=share_of(count))
