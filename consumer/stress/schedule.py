"""When each article of a run is due: a fixed schedule, computed before the first one is sent.

Articles are sent when they are due, whether or not earlier ones have their verdicts, and each wait is measured from the
moment at which the article was due. A sender that waited for answers would send less while the system is slow, and
measure nothing of what others wait for then: coordinated omission (Gil Tene, "How NOT to Measure Latency", 2015; wrk2
measures in the same way as here). An article that is sent late has a longer wait for that, and is counted.
"""

import re
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.model.errors import ConfigError
from consumer.stress import BURST_HELP

ARTICLES_MAX: Final = 1_000_000
"""All articles of a run are generated before it, into a file of some gigabytes at this number."""
_NUMBER: Final = r"([0-9]{1,6}(?:\.[0-9]{1,3})?)"
_BURST: Final = re.compile(f"{_NUMBER}x{_NUMBER}s/{_NUMBER}s")


class Burst(NamedTuple):
    """Bursts: ``factor`` times the rate for ``seconds`` in the middle of every ``every_s`` seconds."""

    factor: float
    seconds: float
    every_s: float


def parse_burst(text: str) -> Burst:
    """Return the bursts that ``BURST_HELP`` describes. Raises ``ConfigError`` for any other text."""
    found = _BURST.fullmatch(text)
    burst = None if found is None else Burst(*map(float, found.groups()))
    if burst is None or burst.factor <= 0 or not 0 < burst.seconds < burst.every_s:
        raise ConfigError(f"--burst {text}: the burst must be shorter than its period; {BURST_HELP}")
    return burst


def due_times(rate: float, seconds: float, burst: Burst | None = None) -> npt.NDArray[np.float64]:
    """Return the time at which each article is due, in seconds from the start: float64[articles].

    Articles are evenly spaced, at ``rate`` a second outside of bursts. Raises ``ConfigError`` if there would be none,
    or more than ``ARTICLES_MAX``.
    """
    times, rates = _rates(rate, seconds, burst)
    before = np.concatenate([[0.0], np.cumsum(rates * np.diff(times))])
    # Rounded because 0.1 x 30 is a little more than 3.
    articles = int(np.floor(round(float(before[-1]), 6)))
    if not 0 < articles <= ARTICLES_MAX:
        raise ConfigError(
            f"{articles:,} articles would be sent; choose --rate and --seconds for at least 1 and at most "
            f"{ARTICLES_MAX:,}"
        )
    return np.interp(np.arange(articles), before, times)


def _rates(rate: float, seconds: float, burst: Burst | None) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the times at which the rate changes, with both ends, float64[n + 1], and the rates, float64[n]."""
    if burst is None:
        return np.array([0.0, seconds]), np.array([rate])
    starts = np.arange(0.0, seconds, burst.every_s) + (burst.every_s - burst.seconds) / 2
    changes = np.stack([starts, starts + burst.seconds], axis=1).ravel()
    times = np.concatenate([[0.0], np.minimum(changes, seconds), [seconds]])
    rates = np.full(len(times) - 1, rate)
    rates[1::2] *= burst.factor
    return times, rates
