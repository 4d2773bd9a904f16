"""The layouts of stores: what a program has to know before it may use one. Each layout includes those before it."""

from collections.abc import Sequence
from typing import Final

LAYOUTS: Final[Sequence[bytes]] = (b"1", b"2", b"3")
"""Those that this program knows; stores with another one are refused.

1: every store. 2: parts were looked for at least once; programs that do not know lane 2 would leave its postings
behind. 3: there were banks at least once; programs that do not read what a record says of them would flag what a bank
allows.
"""


def layout_needed(*, parts: bool, banks: bool) -> bytes:
    """Return the layout of a store that is used like this."""
    return LAYOUTS[2 if banks else int(parts)]


def raised(layout: bytes, needed: bytes) -> bytes:
    """Return the layout of a store that has a known one and needs another: the greater of the two."""
    return max(layout, needed, key=LAYOUTS.index)
