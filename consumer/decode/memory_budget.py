"""How much a payload may become: both formats have payloads of a few bytes that stand for any number of values."""

from typing import Final

from consumer.model.article import Reason, too_many_values
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits

_SPARE: Final = 10_000
"""Values that any payload may have: fields can be there without a byte of their own."""


class Room:
    """How many values there may be, and how deep; ``depth`` counts objects and lists within each other, from 1.

    There may be about as many values as the payload has bytes, and never more than ``values_max``.
    """

    __slots__ = ("_depth_max", "_left", "_values_max")

    def __init__(self, payload_bytes: int, depth_max: int, values_max: int = DecodeLimits().values_max) -> None:
        self._values_max = min(payload_bytes + _SPARE, values_max)
        self._left = self._values_max
        self._depth_max = depth_max

    def enter(self, depth: int) -> None:
        """Begin an object or a list. Raises ``BadRecord`` where that is too deep."""
        if depth > self._depth_max:
            raise BadRecord(
                Reason.NESTED_TOO_DEEP, f"objects or lists are nested deeper than depth_max = {self._depth_max}"
            )

    @property
    def left(self) -> int:
        """How many values more there may be."""
        return self._left

    def check(self, values: int) -> None:
        """Raise ``BadRecord`` where there is no room for so many values."""
        if values > self._left:
            raise too_many_values(self._values_max)

    def take(self, values: int) -> None:
        """Take room for so many values. Raises ``BadRecord`` where there is none."""
        self.check(values)
        self._left -= values
