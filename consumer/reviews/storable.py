"""Texts as both databases can hold them."""

import re
from typing import Final

from consumer.text.visible import MARK, cut

ID_BYTES_MAX: Final = 512
"""Ids of articles are no longer; what is longer is in no store."""
# PostgreSQL holds no NUL, and neither holds halves of surrogate pairs.
_IMPOSSIBLE: Final = re.compile("[\0\ud800-\udfff]")


def storable(text: str, chars_max: int | None = None) -> str:
    """Return a text with ``MARK`` for what cannot be held, cut to at most so many characters."""
    held = _IMPOSSIBLE.sub(MARK, text)
    return held if chars_max is None else cut(held, chars_max)


def is_storable(text: str) -> bool:
    """Tell whether a text can be held as it is."""
    return _IMPOSSIBLE.search(text) is None


def is_storable_id(text: str) -> bool:
    """Tell whether a text can be the id or the version of an article."""
    return 0 < len(text.encode("utf-8", "surrogatepass")) <= ID_BYTES_MAX and is_storable(text)
