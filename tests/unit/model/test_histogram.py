"""Histograms of values."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.model.histogram import COUNT_BOUNDS, SHARE_BOUNDS, Histogram


@given(values=some.lists(some.integers(0, 20_000)))
def test_each_bound_has_what_is_at_most_as_large(values: list[int]) -> None:
    """Values are added one by one or at once; the last number counts all, also those above every bound."""
    at_once, one_by_one = Histogram(COUNT_BOUNDS), Histogram(COUNT_BOUNDS)
    at_once.add(values)
    for value in values:
        one_by_one.add((value,))
    ordered = sorted(values)
    expected = [bisect_right(ordered, bound) for bound in COUNT_BOUNDS]
    assert at_once.cumulative() == one_by_one.cumulative() == [*expected, len(values)]
    assert at_once.count == len(values)
    assert at_once.total == one_by_one.total == sum(values)


@given(values=some.lists(some.integers(0, 20_000)), more=some.lists(some.integers(0, 20_000)))
def test_a_merged_one_has_counted_the_values_of_both(values: list[int], more: list[int]) -> None:
    """The other one stays as it is."""
    together, own, other = (Histogram(COUNT_BOUNDS) for _ in range(3))
    together.add(values + more)
    own.add(values)
    other.add(more)
    own.merge(other)
    assert (own.cumulative(), own.total) == (together.cumulative(), together.total)
    assert (other.count, other.total) == (len(more), sum(more))


@pytest.mark.parametrize("bounds", [COUNT_BOUNDS, SHARE_BOUNDS])
def test_bounds_rise(bounds: tuple[float, ...]) -> None:
    """Each bound is greater than the one before."""
    assert list(bounds) == sorted(set(bounds))
