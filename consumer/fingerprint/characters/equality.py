"""Computes the forms in which texts are compared for equality.

``EQUALITY_DESCRIBED`` says which differences do not count.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.characters.letter_tables import (
    AFTER_SEPARATOR,
    BEFORE_SEPARATOR,
    EAST,
    JOINS_EAST,
    POINT,
    SEPARATING,
    SEPARATOR,
    STRESS,
    VOWEL,
    LetterTables,
)
from consumer.fingerprint.characters.normalise import INVISIBLE, code_points, normalise, text_of, without_surrogates
from consumer.fingerprint.characters.simplified import ChineseTables

EQUALITY_DESCRIBED: Final = (
    "normalised, with ^ between a digit and what NFKC makes a digit of; Arabic and Hebrew points, stress on Cyrillic "
    "vowels, overlays and blanks out; no white space between ideographs and kana, nor between these and Latin letters, "
    "ASCII digits and punctuation; simplified characters unless the text is Japanese; for the digest no white space, "
    "hyphens, dots and _ between letters"
)
_SPACE: Final = ord(" ")
_RAISED_BY: Final = "^"


class EqualityForms(NamedTuple):
    """Two forms of each text of a batch.

    ``read`` is split into words and searched for facts. ``compared``, which is digested, also has no separators between
    letters.
    """

    read: list[str]
    compared: list[str]


def equality_forms(
    texts: Sequence[str], normalised: Sequence[str], letters: LetterTables, chinese: ChineseTables
) -> EqualityForms:
    """Return the forms in which texts are compared for equality, given the texts as written and normalised."""
    marked = [_with_raised_marked(text, form, letters) for text, form in zip(texts, normalised, strict=True)]
    plain = _plain_texts(marked, letters)
    compact = _compact_texts(plain, letters)
    read = chinese.fold(plain)
    # Drop separators before folding, so that a phrase is folded as a phrase even if the text has separators in it.
    changed = [place for place, form in enumerate(plain) if form != compact[place]]
    compared = list(read)
    for place, form in zip(changed, chinese.fold([compact[place] for place in changed]), strict=True):
        compared[place] = form
    return EqualityForms(read, compared)


def _with_raised_marked(text: str, normalised: str, letters: LetterTables) -> str:
    """Return the normalised text with ^ between a digit and a raised character after it, to keep the numbers apart."""
    if text.isascii() or not letters.raised:
        return normalised
    raised, digit_before_raised = _raised_patterns(letters)
    if not raised.search(text):
        return normalised
    marked = digit_before_raised.sub(rf"\1{_RAISED_BY}", without_surrogates(text))
    return normalise(marked)


@cache
def _raised_patterns(letters: LetterTables) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a pattern for a raised character, and one for a digit and ignored characters before a raised character."""
    return (
        re.compile(f"[{letters.raised}]"),
        re.compile(f"([{letters.digits}][{letters.points}{INVISIBLE}]*+)(?=[{letters.raised}])"),
    )


def _plain_texts(texts: Sequence[str], letters: LetterTables) -> list[str]:
    """Return texts without points, overlays, stress, blanks, and needless white space next to ideographs and kana."""
    joined = "".join(f"{text}{SEPARATOR}" for text in texts)
    if joined.isascii():
        return list(texts)
    codes = letters.unstressed_forms[code_points(joined)]
    codes = _select(codes, letters.roles[codes] & POINT == 0)
    roles = letters.roles[codes]
    stress = roles & STRESS != 0
    if stress.any():
        codes = _select(codes, ~(stress & (roles[_last_flagged(~stress)] & VOWEL != 0)))
    space = codes == _SPACE
    # Dropped characters may leave several spaces in a row: keep the first one, and none at the ends of a text.
    codes = _select(codes, ~(space & _after(space | (codes == ord(SEPARATOR)), first=True)))
    codes = _select(codes, ~((codes == _SPACE) & _before(codes == ord(SEPARATOR))))
    roles = letters.roles[codes]
    is_east, joins_east = roles & EAST != 0, roles & (EAST | JOINS_EAST) != 0
    needless = (_after(is_east) & _before(joins_east)) | (_after(joins_east) & _before(is_east))
    return text_of(_select(codes, ~((codes == _SPACE) & needless))).split(SEPARATOR)[:-1]


def _compact_texts(texts: Sequence[str], letters: LetterTables) -> list[str]:
    """Return texts without white space, hyphens, dots and low lines between two letters."""
    codes = code_points("".join(f"{text}{SEPARATOR}" for text in texts))
    roles = letters.roles[codes]
    separating = roles & SEPARATING != 0
    before = roles[_last_flagged(~separating)] & BEFORE_SEPARATOR != 0
    after = roles[::-1][_last_flagged(~separating[::-1])][::-1] & AFTER_SEPARATOR != 0
    return text_of(_select(codes, ~(separating & before & after))).split(SEPARATOR)[:-1]


def _last_flagged(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the last flagged place up to each place, or 0 if there is none."""
    return np.maximum.accumulate(np.where(flags, np.arange(len(flags)), 0))


def _after(flags: npt.NDArray[np.bool_], *, first: bool = False) -> npt.NDArray[np.bool_]:
    """Return whether each place comes directly after a flagged place; ``first`` is the result for the first place."""
    return np.concatenate(([first], flags[:-1]))


def _before(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether each place comes directly before a flagged place."""
    return np.concatenate((flags[1:], [False]))


def _select(codes: npt.NDArray[np.uint32], keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    return codes if keep.all() else codes[keep]
