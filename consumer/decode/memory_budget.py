"""Limits what a payload may become in memory: in Avro and Protobuf a few bytes can stand for any number of values."""

from typing import Final

from consumer.model.article import Reason, too_many_values
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits

_SPARE: Final = 10_000
"""Values that any payload may have, since fields may take no bytes of their own."""


class ValueBudget:
    """The limits on the values of one payload: about as many as it has bytes, at most ``values_max``, and their depth.

    Depth counts nested objects and lists, from 1.
    """

    __slots__ = ("_depth_max", "_left", "_values_max")

    def __init__(self, payload_bytes: int, depth_max: int, values_max: int = DecodeLimits().values_max) -> None:
        self._values_max = min(payload_bytes + _SPARE, values_max)
        self._left = self._values_max
        self._depth_max = depth_max

    def enter(self, depth: int) -> None:
        """Begin an object or a list at this depth. Raises ``BadRecord`` if that is too deep."""
        if depth > self._depth_max:
            raise BadRecord(
                Reason.NESTED_TOO_DEEP, f"objects or lists are nested deeper than depth_max = {self._depth_max}"
            )

    @property
    def left(self) -> int:
        """How many more values there may be."""
        return self._left

    def check(self, values: int) -> None:
        """Raise ``BadRecord`` where there is no budget for so many values."""
        if values > self._left:
            raise too_many_values(self._values_max)

    def take(self, values: int) -> None:
        """Take budget for so many values. Raises ``BadRecord`` where there is none."""
        self.check(values)
        self._left -= values
