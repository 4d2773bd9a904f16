"""The limit on poison: a bad record now and then is a dead letter, too many stop the run."""

import pytest

from consumer.errors import SourceError
from consumer.poison import PoisonLimit


def test_a_few_records_say_nothing_yet() -> None:
    """Below the least number nothing stops, however bad."""
    limit = PoisonLimit(0.5, 100)
    for _ in range(9):
        limit.see(10, 10)
    with pytest.raises(SourceError, match="95 of the last 100 records cannot be judged"):
        limit.see(10, 5)


def test_the_share_itself_is_allowed() -> None:
    """Half is not more than half."""
    limit = PoisonLimit(0.5, 100)
    for _ in range(1000):
        limit.see(10, 5)
    limit.see(10, 5)
    with pytest.raises(SourceError, match=r"poison_share_max"):
        limit.see(10, 6)


def test_what_was_good_long_ago_does_not_count() -> None:
    """A feed that turned bad stops soon, after any number of good records."""
    limit = PoisonLimit(0.5, 100)
    for _ in range(10_000):
        limit.see(10, 0)
    for _ in range(50):
        limit.see(1, 1)
    with pytest.raises(SourceError):
        limit.see(15, 15)


def test_what_was_bad_long_ago_does_not_count_either() -> None:
    """A feed that was mended goes on."""
    limit = PoisonLimit(0.5, 10)
    limit.see(9, 9)
    with pytest.raises(SourceError):
        limit.see(1, 1)
    limit = PoisonLimit(0.9, 10)
    limit.see(10, 9)
    for _ in range(20):
        limit.see(10, 1)


def test_a_share_of_one_never_stops() -> None:
    """Who wants everything answered, whatever it is, can have that."""
    limit = PoisonLimit(1.0, 1)
    for _ in range(100):
        limit.see(10, 10)
