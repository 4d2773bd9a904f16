"""Turns names of sources into labels: articles may contain anything, but labels must be short, readable and few."""

import unicodedata
from collections.abc import Iterable
from typing import Final

OTHER: Final = "other"
"""The label of every source beyond the limit."""
NONE: Final = "none"
"""The label of articles without a source."""
CHARS_MAX: Final = 64
_READ_CHARS_MAX: Final = 4 * CHARS_MAX


class SourceNames:
    """The labels of sources. The first ``names_max`` sources get their own labels, beginning with ``known``.

    Invisible characters are left out, runs of white space become one space, and long names are cut. Sources with the
    same name after that share a label.
    """

    def __init__(self, names_max: int, known: Iterable[str] = ()) -> None:
        self._names_max = names_max
        self._own: set[str] = set()
        self._labels: dict[str, str] = {}
        for source in known:
            self.label(source)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels so far."""
        return (*sorted(self._own), NONE, OTHER)

    def label(self, source: str) -> str:
        """Return the label of this source."""
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
            # Remember only one spelling of each, so that many spellings cannot fill the memory.
            self._labels[source] = name
        return name


def _cleaned(source: str) -> str:
    visible = source[:_READ_CHARS_MAX]
    if not visible.isprintable():
        visible = "".join(char for char in visible if char.isspace() or unicodedata.category(char)[0] != "C")
    return " ".join(visible.split())[:CHARS_MAX].rstrip()
