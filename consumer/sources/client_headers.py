"""The headers of a message, whatever their bytes are.

Kafka allows any bytes as a header's name; the Python client decodes names as UTF-8 inside its C code and does not check
the result (``c_headers_to_py``, unchanged up to confluent-kafka 2.16.1). ``Message.headers()`` then raises
``SystemError``, frees the original bytes, and keeps a list in which the tuples of such headers have no first item at
all, not even None. Reading that item ends the process. ``gc.get_referents`` lists what a tuple holds and skips what is
not there, so values and readable names can still be had.
"""

import gc
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

from confluent_kafka import Message

Pairs = tuple[tuple[str, bytes | None], ...]

UNREADABLE_NAME: Final = "dupwatch-unreadable-name"
"""Stands for a name that the client cannot hand out."""
HEADERS_LOST: Final = "dupwatch-headers-lost"
"""How many headers of a record are not as they came; it comes after them."""
_PAIR: Final = 2


class Headers(NamedTuple):
    """A message's headers; ``lost`` of them have ``UNREADABLE_NAME`` for a name, or are missing."""

    pairs: Pairs
    lost: int


def read_client_headers(message: Message) -> Headers:
    """All headers in their order; where any was lost, ``HEADERS_LOST`` comes last and says how many."""
    try:
        # The client's types allow what a producer may be given; a consumer gets pairs, with bytes.
        return Headers(tuple(cast("list[tuple[str, bytes | None]]", message.headers() or [])), 0)
    except (SystemError, UnicodeError):
        return _rest(message)


def _rest(message: Message) -> Headers:
    """What the client kept after its first answer failed."""
    try:
        kept = message.headers() or []
    except (SystemError, UnicodeError):
        kept = []
    pairs = tuple(_pairs(kept))
    # Without a list nobody can say how many there were, but one was.
    lost = sum(name == UNREADABLE_NAME for name, _ in pairs) or 1
    return Headers((*pairs, (HEADERS_LOST, b"%d" % lost)), lost)


def _pairs(kept: Iterable[Any]) -> Iterable[tuple[str, bytes | None]]:
    for pair in kept:
        held = gc.get_referents(pair)
        if len(held) == _PAIR:
            yield pair
        else:
            yield UNREADABLE_NAME, held[0] if held else None
