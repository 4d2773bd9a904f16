"""The tally of what judging costs."""

from dataclasses import fields

from consumer.judge.tally import Tally
from consumer.model.histogram import Histogram


def tally_of(number: int) -> Tally:
    """Return a tally in which every field is another multiple of this number."""
    tally = Tally()
    for place, each in enumerate(fields(tally), 1):
        value = getattr(tally, each.name)
        if isinstance(value, Histogram):
            value.add([place * number])
        else:
            setattr(tally, each.name, type(value)(place * number))
    return tally


def test_adding_adds_every_field() -> None:
    """Counts, times and distributions."""
    tally = tally_of(2)
    tally.add(tally_of(3))
    for place, each in enumerate(fields(tally), 1):
        value = getattr(tally, each.name)
        if isinstance(value, Histogram):
            assert (value.count, value.total) == (2, place * 5)
        else:
            assert value == place * 5
