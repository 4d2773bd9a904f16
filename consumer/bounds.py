"""Where a stretch of a topic begins or ends, as a person says it: an offset or a time."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from consumer.errors import ConfigError

_MS_PER_S = 1000


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


def parse_bound(text: str) -> Bound:
    """The bound that a whole number or an RFC 3339 time names; a time without a zone is UTC. ConfigError for others."""
    if text.isascii() and text.isdigit():
        return Bound(offset=int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text!r} is neither an offset nor a time: write 120000, 2026-03-02, or 2026-03-02T09:00:00Z"
        ) from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return Bound(time_ms=int(aware.timestamp() * _MS_PER_S))
