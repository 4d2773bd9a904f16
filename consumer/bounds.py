"""Where a stretch of a topic begins or ends, as a person says it: an offset or a time."""

from collections.abc import Mapping
from typing import NamedTuple

from consumer.moments import option_time_ms


class Bound(NamedTuple):
    """The same offset in every partition, or the first message that came at a time or later: one of the two is None."""

    offset: int | None = None
    time_ms: int | None = None


class Stretch(NamedTuple):
    """From one bound to, not including, the other; where that is None, to where the topic ends at the moment.

    Where ``offsets_max`` is set, only the first so many offsets of each partition.
    """

    since: Bound
    until: Bound | None = None
    offsets_max: int | None = None


Ranges = Mapping[tuple[str, int], tuple[int, int]]
"""Of each (topic, partition) the first offset, and the one behind the last."""


def parse_bound(option: str, text: str) -> Bound:
    """The bound that an option gives: a whole number is an offset, the rest a time as in ``consumer.moments``.

    Raises ``ConfigError`` for anything else.
    """
    if text.isascii() and text.isdigit():
        return Bound(offset=int(text))
    return Bound(time_ms=option_time_ms(option, text, "an offset or a time"))
