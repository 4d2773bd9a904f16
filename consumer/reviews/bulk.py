"""Work on many rows at once: in portions that a statement can name."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

PORTION: Final = 500
"""Rows that one statement names; SQLite takes no more than 32,766 values."""

_Item = TypeVar("_Item")


def portions(items: Iterable[_Item], size: int = PORTION) -> Iterator[Sequence[_Item]]:
    """Yield the items in lists of at most ``size``."""
    left = iter(items)
    while portion := list(islice(left, size)):
        yield portion
