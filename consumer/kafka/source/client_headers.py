"""Reads the headers of a message, even if their names are not UTF-8.

Kafka allows any bytes as a header's name. The Python client decodes names as UTF-8 in its C code and does not check
the result (``c_headers_to_py``, unchanged up to confluent-kafka 2.16.1): ``Message.headers()`` then returns its list
with an exception set, frees the original bytes, and keeps the list. In that list, the tuple of such a header has no
first item, not even None. Three things follow:

- Reading that item crashes the process. ``gc.get_referents`` skips missing items of a tuple, so that values and
  readable names can still be read.
- CPython turns a result with an exception set into a ``SystemError``, except where it has specialised the bytecode of a
  call: there the exception stays pending, and a later call raises it. ``methodcaller`` makes the call from C, where the
  result is always checked.
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
"""The replacement for a name that the client cannot return."""
HEADERS_LOST: Final = "dupwatch-headers-lost"
"""The name of the last header of a record that lost headers; its value is their number."""
_PAIR_ITEMS: Final = 2
_GET_HEADERS: Final = methodcaller("headers")


class ClientHeaders(NamedTuple):
    """A message's headers; ``lost`` counts headers that are missing or named ``UNREADABLE_NAME``."""

    pairs: tuple[Header, ...]
    lost: int


def read_client_headers(message: Message) -> ClientHeaders:
    """Return all headers in order; if some were lost, ``HEADERS_LOST`` is the last one and gives their number."""
    raw_pairs = _raw_pairs(message)
    if raw_pairs is not None and len(gc.get_referents(*raw_pairs)) == _PAIR_ITEMS * len(raw_pairs):
        # The client's type hints are for producers; a consumer always gets pairs with bytes.
        return ClientHeaders(tuple(cast("list[Header]", raw_pairs)), 0)
    pairs = tuple(_pairs(raw_pairs or ()))
    # Without a list the number is unknown, but it is at least one.
    lost = sum(name == UNREADABLE_NAME for name, _ in pairs) or 1
    return ClientHeaders((*pairs, (HEADERS_LOST, b"%d" % lost)), lost)


def _raw_pairs(message: Message) -> Sequence[Any] | None:
    """Return the client's list, in which pairs may lack their names; None if the client returns no list."""
    for _ in range(2):
        with suppress(SystemError, UnicodeError):
            return _GET_HEADERS(message) or ()
    return None


def _pairs(raw_pairs: Iterable[Any]) -> Iterator[Header]:
    for pair in raw_pairs:
        items = gc.get_referents(pair)
        if len(items) == _PAIR_ITEMS:
            yield pair
        else:
            yield UNREADABLE_NAME, items[0] if items else None
