"""The headers of a message, whatever their bytes are.

Kafka allows any bytes as a header's name. The Python client decodes names as UTF-8 in its C code and does not check
the result (``c_headers_to_py``, unchanged up to confluent-kafka 2.16.1): ``Message.headers()`` then returns its list
with an exception set, frees the original bytes, and keeps the list, in which the tuples of such headers have no first
item at all, not even None. Three things follow:

- To read that item ends the process. ``gc.get_referents`` lists what tuples hold and skips what is not there, so values
  and readable names can still be had.
- CPython turns a result with an exception set into a ``SystemError``, but not where it has specialised the bytecode of
  a call: there the exception stays pending, and some innocent call raises it later. ``methodcaller`` makes the call
  from C, where it is always checked.
- The second call returns the same list and raises nothing. So it is the tuples that are looked at, not the exception.
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import methodcaller
from typing import Any, Final, NamedTuple, cast

from confluent_kafka import Message

from consumer.model.record import Header

UNREADABLE_NAME: Final = "dupwatch-unreadable-name"
"""Stands for a name that the client cannot hand out."""
HEADERS_LOST: Final = "dupwatch-headers-lost"
"""How many headers of a record are not as they came; it comes after them."""
_PAIR: Final = 2
_HEADERS: Final = methodcaller("headers")


class ClientHeaders(NamedTuple):
    """A message's headers; ``lost`` of them have ``UNREADABLE_NAME`` for a name, or are missing."""

    pairs: tuple[Header, ...]
    lost: int


def read_client_headers(message: Message) -> ClientHeaders:
    """All headers in their order; where any was lost, ``HEADERS_LOST`` comes last and says how many."""
    kept = _kept(message)
    if kept is not None and len(gc.get_referents(*kept)) == _PAIR * len(kept):
        # The client's types allow what a producer may be given; a consumer gets pairs, with bytes.
        return ClientHeaders(tuple(cast("list[Header]", kept)), 0)
    pairs = tuple(_pairs(kept or ()))
    # Without a list nobody can say how many there were, but one was.
    lost = sum(name == UNREADABLE_NAME for name, _ in pairs) or 1
    return ClientHeaders((*pairs, (HEADERS_LOST, b"%d" % lost)), lost)


def _kept(message: Message) -> Sequence[Any] | None:
    """The client's list, in which pairs may lack their names; None where there is none to be had."""
    for _ in range(2):
        with suppress(SystemError, UnicodeError):
            return _HEADERS(message) or ()
    return None


def _pairs(kept: Iterable[Any]) -> Iterator[Header]:
    for pair in kept:
        held = gc.get_referents(pair)
        if len(held) == _PAIR:
            yield pair
        else:
            yield UNREADABLE_NAME, held[0] if held else None
