"""Names of sources as labels: articles say what they like, and a label has to be short, readable and one of few."""

import unicodedata
from collections.abc import Iterable
from typing import Final

OTHER: Final = "other"
"""Stands for every source that came after there were enough."""
NONE: Final = "none"
"""Stands for articles that name no source."""
CHARS_MAX: Final = 64
_READ_CHARS_MAX: Final = 4 * CHARS_MAX


class SourceNames:
    """Gives the first sources that come names of their own, ``names_max`` of them with those ``known`` from the start.

    Characters that cannot be seen are left out, white space is made one space, and what is too long is cut off: two
    sources that differ in nothing else share a name.
    """

    def __init__(self, names_max: int, known: Iterable[str] = ()) -> None:
        self._names_max = names_max
        self._own: set[str] = set()
        self._labels: dict[str, str] = {}
        for source in known:
            self.label(source)

    @property
    def labels(self) -> tuple[str, ...]:
        """All that there are by now."""
        return (*sorted(self._own), NONE, OTHER)

    def label(self, source: str) -> str:
        """What stands for this source."""
        known = self._labels.get(source)
        if known is not None:
            return known
        name = _cleaned(source) or NONE
        if name in {NONE, OTHER}:
            return name
        if name not in self._own:
            if len(self._own) >= self._names_max:
                return OTHER
            self._own.add(name)
            # One spelling of each is remembered, so that nobody fills the memory with spellings.
            self._labels[source] = name
        return name


def _cleaned(source: str) -> str:
    seen = source[:_READ_CHARS_MAX]
    if not seen.isprintable():
        seen = "".join(char for char in seen if char.isspace() or unicodedata.category(char)[0] != "C")
    return " ".join(seen.split())[:CHARS_MAX].rstrip()
