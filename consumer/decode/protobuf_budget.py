"""Protobuf: how much of its room a payload takes, known before it is parsed.

An empty message takes two bytes in a list, and in memory as much as its type has fields: 8 bytes for each. So 8 MiB can
become gigabytes. Payloads whose types and length leave no room for that are not looked through.
"""

from typing import Any, Final, NamedTuple

from consumer.decode.memory_budget import Room

_FREE_BYTES: Final = 32 << 20
"""What any payload may take in memory."""
_MESSAGE_BYTES: Final = 48
_FIELD_BYTES: Final = 8
_MESSAGE_BYTES_MIN: Final = 2
_FIELDS_A_VALUE: Final = 16
"""A message counts as a value, and as one more for each so many fields of its type."""
_FIXED_BYTES: Final = {1: 8, 5: 4}
_MORE: Final = 0x80
_VARINT_BITS_MAX: Final = 63


class Kind:
    """A type of message: how many values one counts as, and the types that stand in it, by their fields' numbers."""

    __slots__ = ("inner", "values")

    def __init__(self, fields: int) -> None:
        self.values = 1 + fields // _FIELDS_A_VALUE
        self.inner: dict[int, Kind] = {}


_SCALAR: Final = Kind(0)


class Layout(NamedTuple):
    """A type of message, and the most fields that it or any type within it has."""

    kind: Kind
    fields_max: int


def layout_of(descriptor: Any) -> Layout:  # noqa: ANN401  # a descriptor
    """What ``check_room`` needs to know of a type."""
    types: dict[str, Any] = {}
    waiting = [descriptor]
    while waiting:
        one = waiting.pop()
        if one.full_name not in types:
            types[one.full_name] = one
            waiting += [field.message_type for field in one.fields if field.message_type is not None]
    kinds = {name: Kind(len(one.fields)) for name, one in types.items()}
    for name, one in types.items():
        for field in one.fields:
            if field.message_type is not None:
                kinds[name].inner[field.number] = kinds[field.message_type.full_name]
    return Layout(kinds[descriptor.full_name], max(len(one.fields) for one in types.values()))


def check_room(payload: bytes, layout: Layout, room: Room) -> None:
    """Raise ``BadRecord`` where a message has more values than there is room for; takes none of it.

    What is wrong with the payload is left to the parser.
    """
    widest = _MESSAGE_BYTES + _FIELD_BYTES * layout.fields_max
    if len(payload) // _MESSAGE_BYTES_MIN * widest > _FREE_BYTES:
        room.check(count_values(payload, layout.kind, room.left))


def count_values(payload: bytes, kind: Kind, values_max: int) -> int:
    """Count the fields, each message by its type, until there are more than ``values_max`` or no more can be read."""
    values, at, end = 0, 0, len(payload)
    outer: list[tuple[int, Kind]] = []
    try:
        while values <= values_max and (at < end or outer):
            if at >= end:
                end, kind = outer.pop()
                continue
            key, at = _varint(payload, at)
            inner = kind.inner.get(key >> 3)
            values += 1 if inner is None else inner.values
            match key & 7:
                case 0:
                    _, at = _varint(payload, at)
                case 2:
                    size, at = _varint(payload, at)
                    if inner is None:
                        at += size
                    else:
                        outer.append((end, kind))
                        end, kind = min(at + size, end), inner
                case 3:
                    outer.append((end, kind))
                    kind = inner or _SCALAR
                case 4:
                    end, kind = outer.pop()
                case wire:
                    at += _FIXED_BYTES[wire]
    except (IndexError, KeyError):
        # It ends in the middle of something, a group ends that never began, or a field is of no kind that there is.
        return values
    return values


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := payload[at]) & _MORE and shift < _VARINT_BITS_MAX:
        value |= (byte & ~_MORE) << shift
        at, shift = at + 1, shift + 7
    return value | byte << shift, at + 1
