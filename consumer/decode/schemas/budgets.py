"""Limits the number of values in a payload, and counts the values of a Protobuf payload before it is parsed.

An empty Protobuf message in a list takes two bytes. In memory it takes 8 bytes for each field of its type, so a payload
of 8 MiB can take gigabytes. Payloads that are too short to take much memory are not counted.
"""

from typing import Any, Final, NamedTuple

from consumer.model.article import Reason, too_many_values
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits

_SPARE_VALUES: Final = 10_000
"""The number of values allowed in addition to one per byte, since some fields take no bytes."""
_FREE_BYTES: Final = 32 << 20
"""Payloads that cannot take more memory than this are not counted."""
_MESSAGE_BYTES: Final = 48
_FIELD_BYTES: Final = 8
_MESSAGE_BYTES_MIN: Final = 2
_FIELDS_A_VALUE: Final = 16
"""A message counts as one value, and as one more for each full group of this many fields of its type."""
_FIXED_BYTES: Final = {1: 8, 5: 4}
_CONTINUATION_BIT: Final = 0x80
_VARINT_BITS_MAX: Final = 63


class ValueBudget:
    """The limits of one payload: about one value per byte, at most ``values_max`` values, and a depth.

    Depth counts nested objects and lists, from 1.
    """

    __slots__ = ("_depth_max", "_left", "_values_max")

    def __init__(self, payload_bytes: int, depth_max: int, values_max: int = DecodeLimits().values_max) -> None:
        self._values_max = min(payload_bytes + _SPARE_VALUES, values_max)
        self._left = self._values_max
        self._depth_max = depth_max

    def check_depth(self, depth: int) -> None:
        """Raise ``BadRecord`` if an object or a list at this depth is nested too deep."""
        if depth > self._depth_max:
            raise BadRecord(
                Reason.NESTED_TOO_DEEP,
                f"objects or lists are nested deeper than depth_max = {self._depth_max}",
                "depth_max",
            )

    @property
    def left(self) -> int:
        """The number of values left in the budget."""
        return self._left

    def check(self, values: int) -> None:
        """Raise ``BadRecord`` if the budget has fewer values left than this."""
        if values > self._left:
            raise too_many_values(self._values_max)

    def take(self, values: int) -> None:
        """Take this number of values from the budget. Raises ``BadRecord`` if fewer are left."""
        self.check(values)
        self._left -= values


class MessageShape:
    """A message type: one message counts as ``values`` values; ``inner`` has the message types of fields by number."""

    __slots__ = ("inner", "values")

    def __init__(self, fields: int) -> None:
        self.values = 1 + fields // _FIELDS_A_VALUE
        self.inner: dict[int, MessageShape] = {}


_SCALAR: Final = MessageShape(0)


class Layout(NamedTuple):
    """A message type, and the number of fields of the widest type: this one or any type within it."""

    shape: MessageShape
    fields_max: int


def layout_of(descriptor: Any, shapes: dict[str, MessageShape]) -> Layout:  # noqa: ANN401  # a descriptor
    """Return the layout of a type, for ``check_budget``.

    ``shapes`` is a cache of the schema's types by name. This function adds missing types.
    """
    types: dict[str, Any] = {}
    waiting = [descriptor]
    while waiting:
        message_type = waiting.pop()
        if message_type.full_name not in types:
            types[message_type.full_name] = message_type
            waiting += [field.message_type for field in message_type.fields if field.message_type is not None]
    new = types.keys() - shapes.keys()
    shapes.update((name, MessageShape(len(types[name].fields))) for name in new)
    for name in new:
        for field in types[name].fields:
            if field.message_type is not None:
                shapes[name].inner[field.number] = shapes[field.message_type.full_name]
    return Layout(shapes[descriptor.full_name], max(len(message_type.fields) for message_type in types.values()))


def check_budget(payload: bytes, layout: Layout, budget: ValueBudget) -> None:
    """Raise ``BadRecord`` if a message has more values than the budget has left. Takes nothing from the budget.

    Malformed payloads are left to the parser.
    """
    widest = _MESSAGE_BYTES + _FIELD_BYTES * layout.fields_max
    if len(payload) // _MESSAGE_BYTES_MIN * widest > _FREE_BYTES:
        budget.check(count_values(payload, layout.shape, budget.left))


def count_values(payload: bytes, shape: MessageShape, values_max: int) -> int:
    """Return the number of values in a payload. Stops counting beyond ``values_max`` or at a fault."""
    values, at, end = 0, 0, len(payload)
    outer: list[tuple[int, MessageShape]] = []
    try:
        while values <= values_max and (at < end or outer):
            if at >= end:
                end, shape = outer.pop()
                continue
            key, at = _varint(payload, at)
            inner = shape.inner.get(key >> 3)
            values += 1 if inner is None else inner.values
            match key & 7:
                case 0:
                    _, at = _varint(payload, at)
                case 2:
                    size, at = _varint(payload, at)
                    if inner is None:
                        at += size
                    else:
                        outer.append((end, shape))
                        end, shape = min(at + size, end), inner
                case 3:
                    outer.append((end, shape))
                    shape = inner or _SCALAR
                case 4:
                    end, shape = outer.pop()
                case wire:
                    at += _FIXED_BYTES[wire]
    except (IndexError, KeyError):
        # The payload is truncated, ends a group that never began, or has a field of an unknown wire type.
        return values
    return values


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := payload[at]) & _CONTINUATION_BIT and shift < _VARINT_BITS_MAX:
        value |= (byte & ~_CONTINUATION_BIT) << shift
        at, shift = at + 1, shift + 7
    return value | byte << shift, at + 1
