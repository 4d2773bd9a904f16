"""Decides by keywords and shingles how a text is matched, and finds evidence for texts without keywords."""

import re
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, Literal, cast

import numpy as np
import numpy.typing as npt

SHINGLED_BINS_MIN: Final = 96
"""A text whose shingles fill at least this many of the 256 bins is matched by its sketch.

That takes about 120 different shingles. Replacing a word of six characters changes at most one in eight of them, so an
edited copy stays similar.
"""
LETTERS_BINS_MIN: Final = 64
"""The same minimum in schemes that compare letters, about 74 shingles.

It is lower because the marked sketches of these schemes are more exact for short texts.
"""
_MARKS: Final = "\u0300-\u036f\u0591-\u05bd\u064b-\u0652\u0900-\u0dff\u0e31-\u0e4e\u1780-\u17d3"
_RUN: Final = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}])*")
_RUN_CHARS_MAX: Final = 64

TextKindName = Literal["empty", "short", "long", "shingled"]


class TextKind(IntEnum):
    """The way in which a text is matched."""

    EMPTY = 0
    """No keyword; in schemes for every script, no character. Such a text has no postings, and nothing matches it."""
    SHORT = 1
    """Too few keywords, and too few shingles for ``SHINGLED``: only an equal text is a duplicate."""
    LONG = 2
    """Enough keywords: matched by fingerprint and sketch."""
    SHINGLED = 3
    """Too few keywords, but enough shingles (schemes for every script): matched by sketch, against long texts too."""

    @property
    def label(self) -> TextKindName:
        """The name of the kind in answers, events and exports."""
        return cast("TextKindName", self.name.lower())


def kinds_by_keywords(distinct: npt.NDArray[np.int64], short_keywords_max: int) -> npt.NDArray[np.uint8]:
    """Return the kind of each text by its number of distinct keywords."""
    kinds = np.full(len(distinct), TextKind.LONG, dtype=np.uint8)
    kinds[distinct <= short_keywords_max] = TextKind.SHORT
    kinds[distinct == 0] = TextKind.EMPTY
    return kinds


def kinds_in_every_script(
    distinct: npt.NDArray[np.int64],
    short_keywords_max: int,
    filled_bins: npt.NDArray[np.int64],
    texts: Sequence[str],
    bins_min: int = SHINGLED_BINS_MIN,
) -> npt.NDArray[np.uint8]:
    """Return the kind of each text by its number of distinct keywords, its filled bins, and whether it is empty."""
    kinds = kinds_by_keywords(distinct, short_keywords_max)
    few = kinds != TextKind.LONG
    kinds[few] = TextKind.SHORT
    kinds[few & (filled_bins >= bins_min)] = TextKind.SHINGLED
    kinds[[not text for text in texts]] = TextKind.EMPTY
    return kinds


def runs(text: str, runs_max: int | None) -> tuple[tuple[str, float], ...]:
    """Return the most frequent runs of letters and marks in a text, with their counts, as evidence for people.

    Runs of more than 64 characters are left out.
    """
    counted = Counter(run for run in _RUN.findall(text) if len(run) <= _RUN_CHARS_MAX)
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return tuple((run, float(count)) for run, count in ranked[:runs_max])
