"""The pauses between attempts."""

import time
from itertools import islice

import pytest

from storage.backoff import Backoff
from tests.unit.flickering import Flickering

AWAY = ConnectionError("away")


def test_pauses_double_up_to_the_longest() -> None:
    """Without chance they are exact."""
    assert list(islice(Backoff(0.1, 0.5).pauses(), 5)) == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_chance_only_shortens_a_pause() -> None:
    """By up to its share of it, and not always by the same."""
    pauses = list(islice(Backoff(1.0, 1.0, jitter=0.5).pauses(), 100))
    assert all(0.5 <= pause_s <= 1 for pause_s in pauses)
    assert len(set(pauses)) > 1


def test_a_call_is_repeated_while_its_error_passes() -> None:
    """Any other error is raised at once, and the one that passes once the time is over."""
    pauses = Backoff(0.001, 0.001)
    assert pauses.call(Flickering(3, AWAY).call, lambda error: error is AWAY, 60) == 4
    other = Flickering(3, AWAY)
    with pytest.raises(ConnectionError):
        pauses.call(other.call, lambda error: error is not AWAY, 60)
    assert other.calls == 1
    began_s = time.monotonic()
    with pytest.raises(ConnectionError):
        pauses.call(Flickering(10**9, AWAY).call, lambda error: error is AWAY, 0.05)
    assert time.monotonic() - began_s >= 0.05
