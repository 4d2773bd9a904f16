"""When articles are due."""

import numpy as np
import pytest

from consumer.model.errors import ConfigError
from consumer.stress.schedule import ARTICLES_MAX, Burst, due_times, parse_burst


def test_articles_are_due_at_the_rate() -> None:
    """Evenly, from the start; also where rate times seconds is not exactly a whole number in binary."""
    assert due_times(4, 2).tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]
    assert len(due_times(0.1, 30)) == 3
    assert len(due_times(100, 0.35)) == 35


def test_bursts_are_in_the_middle_of_each_period() -> None:
    """Three seconds at 10 a second, of which the second one has ten times as many, and again; a last one is cut."""
    due_s = due_times(10, 7.5, Burst(10, 1, 3))
    counts, _ = np.histogram(due_s, bins=[0, 1, 2, 3, 4, 5, 6, 7, 7.5])
    assert counts.tolist() == [10, 100, 10, 10, 100, 10, 10, 50]
    assert (np.diff(due_s) > 0).all()


@pytest.mark.parametrize(("rate", "seconds"), [(0.1, 5), (1e6, 60)])
def test_too_few_and_too_many_articles_are_refused(rate: float, seconds: float) -> None:
    """The message has both limits."""
    with pytest.raises(ConfigError, match=f"at least 1 and at most {ARTICLES_MAX:,}"):
        due_times(rate, seconds)


def test_bursts_are_read() -> None:
    """Fractions too."""
    assert parse_burst("10x5s/60s") == Burst(10, 5, 60)
    assert parse_burst("1.5x0.5s/2.25s") == Burst(1.5, 0.5, 2.25)


@pytest.mark.parametrize(
    "text", ["", "10", "10x5s", "10x5/60", "x5s/60s", "10x60s/60s", "0x1s/2s", "10x0s/2s", "1x-1s/2s"]
)
def test_other_bursts_are_refused(text: str) -> None:
    """A burst is shorter than its period, and has articles; the message shows how to write one."""
    with pytest.raises(ConfigError, match="10x5s/60s"):
        parse_burst(text)
