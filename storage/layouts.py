"""The layouts of stores: what a program must know to use a store. Each layout includes the earlier ones."""

from collections.abc import Sequence
from typing import Final

LAYOUTS: Final[Sequence[bytes]] = (b"1", b"2", b"3")
"""The layouts that this program knows; stores with another one are refused.

1: every store. 2: parts were searched at least once; a program that does not know lane 2, the anchors of parts,
would leave its postings behind. 3: there were banks at least once; a program that ignores the bank matches of records
would flag what a bank allows.
"""


def layout_needed(*, parts: bool, banks: bool) -> bytes:
    """Return the layout that a store needs for these features."""
    return LAYOUTS[2 if banks else int(parts)]


def raised(layout: bytes, needed: bytes) -> bytes:
    """Return the later of a store's layout and the one that it needs. Both must be in ``LAYOUTS``."""
    return max(layout, needed, key=LAYOUTS.index)
