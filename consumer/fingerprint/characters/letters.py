"""Extracts the letters and figures of a text for its shingles; no other characters count."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.characters.decorations import DecorationLists, without_decorations
from consumer.fingerprint.characters.letter_tables import BARE, DROPPED, LETTER, MARK, SEPARATOR, LetterTables
from consumer.fingerprint.characters.look_alikes import in_one_script
from consumer.fingerprint.characters.normalise import code_points, text_of

LETTERS_DESCRIBED: Final = (
    "words as written that mix Latin, Greek and Cyrillic in the script that has most letters unlike those of others, "
    "then Latin, then Cyrillic; normalised; letters and numbers alone, without marks on Latin, Greek, Cyrillic, Arabic "
    "and Hebrew letters, ideographs and digits; each as the table says, then the longest words that the table has, "
    "from the left"
)


def letters_of(
    texts: Sequence[str],
    normalised: Sequence[str],
    letters: LetterTables,
    decorations: DecorationLists | None,
) -> list[str]:
    """Return the letters and figures of each text, given the texts as written and normalised.

    If ``decorations`` is None, the letters of links, names and other decorations count too.
    """
    forms = in_one_script(texts, normalised, letters)
    if decorations is not None:
        forms = without_decorations(forms, letters, decorations)
    return letters.words.fold_all(_letters(forms, letters))


def _letters(texts: Sequence[str], letters: LetterTables) -> list[str]:
    """Return the letters of each text, every letter in the form that counts."""
    codes = code_points("".join(f"{text}{SEPARATOR}" for text in texts))
    kinds = letters.kinds[codes]
    ends = codes == ord(SEPARATOR)
    is_mark = kinds == MARK
    keep = kinds != DROPPED
    if is_mark.any():
        # Ignored characters may stand between a mark and its letter.
        ends_or_letter = np.where(ends | (kinds == BARE) | (kinds == LETTER), np.arange(len(codes)), 0)
        keep &= ~is_mark | (kinds[np.maximum.accumulate(ends_or_letter)] == LETTER)
    stops = np.cumsum(keep)[ends]
    return _cut(text_of(letters.letter_forms[codes[keep]]), stops)


def _cut(joined: str, stops: npt.NDArray[np.int64]) -> list[str]:
    return [joined[start:stop] for start, stop in pairwise([0, *stops.tolist()])]
