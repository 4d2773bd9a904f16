"""Reads the headers of a message, whatever their bytes are.

Kafka allows any bytes as a header's name. The Python client decodes names as UTF-8 in its C code and does not check
the result (``c_headers_to_py``, unchanged up to confluent-kafka 2.16.1): ``Message.headers()`` then returns its list
with an exception set, frees the original bytes, and keeps the list, in which the tuples of such headers have no first
item at all, not even None. Three things follow:

- Reading that item crashes the process. ``gc.get_referents`` lists what tuples contain and skips what is missing, so
  that values and readable names can still be read.
- CPython turns a result with an exception set into a ``SystemError``, but not where it has specialised the bytecode of
  a call: there the exception stays pending, and some later call raises it. ``methodcaller`` makes the call
  from C, where it is always checked.
- A second call returns the same list and raises nothing. So the tuples are checked, not the exception.
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import methodcaller
from typing import Any, Final, NamedTuple, cast

from confluent_kafka import Message

from consumer.model.record import Header

UNREADABLE_NAME: Final = "dupwatch-unreadable-name"
"""Replaces a name that the client cannot return."""
HEADERS_LOST: Final = "dupwatch-headers-lost"
"""The last header of a record that lost some; its value is their number."""
_PAIR: Final = 2
_HEADERS: Final = methodcaller("headers")


class ClientHeaders(NamedTuple):
    """A message's headers; ``lost`` of them have ``UNREADABLE_NAME`` as name, or are missing."""

    pairs: tuple[Header, ...]
    lost: int


def read_client_headers(message: Message) -> ClientHeaders:
    """Return all headers in order; where some were lost, ``HEADERS_LOST`` is the last one and has their number."""
    kept = _kept(message)
    if kept is not None and len(gc.get_referents(*kept)) == _PAIR * len(kept):
        # The client's types cover what a producer accepts; a consumer gets pairs with bytes.
        return ClientHeaders(tuple(cast("list[Header]", kept)), 0)
    pairs = tuple(_pairs(kept or ()))
    # Without a list the number is unknown, but it is at least one.
    lost = sum(name == UNREADABLE_NAME for name, _ in pairs) or 1
    return ClientHeaders((*pairs, (HEADERS_LOST, b"%d" % lost)), lost)


def _kept(message: Message) -> Sequence[Any] | None:
    """Return the client's list, in which pairs may lack their names; None where the client returns none."""
    for _ in range(2):
        with suppress(SystemError, UnicodeError):
            return _HEADERS(message) or ()
    return None


def _pairs(kept: Iterable[Any]) -> Iterator[Header]:
    for pair in kept:
        items = gc.get_referents(pair)
        if len(items) == _PAIR:
            yield pair
        else:
            yield UNREADABLE_NAME, items[0] if items else None
