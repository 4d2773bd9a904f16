"""How much a payload may become: both formats have payloads of a few bytes that stand for any number of values."""

from typing import Final

from consumer.article import Reason
from consumer.errors import BadRecord

_SPARE: Final = 10_000
"""Values that any payload may have: fields can be there without a byte of their own."""


class Room:
    """How many values there may be, and how deep; ``depth`` counts objects and lists within each other, from 1."""

    __slots__ = ("_depth_max", "_left")

    def __init__(self, payload_bytes: int, depth_max: int) -> None:
        self._left = payload_bytes + _SPARE
        self._depth_max = depth_max

    def enter(self, depth: int) -> None:
        """Begin an object or a list. Raises ``BadRecord`` where that is too deep."""
        if depth > self._depth_max:
            raise BadRecord(
                Reason.NESTED_TOO_DEEP, f"objects or lists are nested deeper than depth_max = {self._depth_max}"
            )

    def take(self, values: int) -> None:
        """Take room for so many values. Raises ``BadRecord`` where there is none."""
        self._left -= values
        if self._left < 0:
            raise BadRecord(Reason.SCHEMA_MISMATCH, "the payload stands for far more values than it has bytes")
