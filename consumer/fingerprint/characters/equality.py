"""The form by which texts are equal: what readers do not see and how words are spaced does not count, all else does."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.characters.letter_tables import (
    BEFORE_SEPARATOR,
    BEHIND_SEPARATOR,
    BESIDE_EAST,
    EAST,
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

    ``read`` is what is split into words and searched for facts. ``compared``, of which the text digest is, also has no
    separators between letters.
    """

    read: list[str]
    compared: list[str]


def equality_forms(
    texts: Sequence[str], normalised: Sequence[str], letters: LetterTables, chinese: ChineseTables
) -> EqualityForms:
    """Return the forms by which texts are equal, given the texts as written and normalised."""
    set_off = [_set_off(text, form, letters) for text, form in zip(texts, normalised, strict=True)]
    plain = _plain(set_off, letters)
    compact = _compact(plain, letters)
    read = chinese.fold(plain)
    # A phrase that separators stand in is folded as one, so separators go before folding.
    changed = [place for place, form in enumerate(plain) if form != compact[place]]
    compared = list(read)
    for place, form in zip(changed, chinese.fold([compact[place] for place in changed]), strict=True):
        compared[place] = form
    return EqualityForms(read, compared)


def _set_off(text: str, normalised: str, letters: LetterTables) -> str:
    """Return the normalised text, in which a raised digit behind a digit does not become part of the same number."""
    if text.isascii() or not letters.raised:
        return normalised
    raised, behind_digit = _raised(letters)
    if not raised.search(text):
        return normalised
    marked = behind_digit.sub(rf"\1{_RAISED_BY}", without_surrogates(text))
    return normalise(marked)


@cache
def _raised(letters: LetterTables) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for a raised character, and for a digit before one with what does not count between them."""
    return (
        re.compile(f"[{letters.raised}]"),
        re.compile(f"([{letters.digits}][{letters.points}{INVISIBLE}]*+)(?=[{letters.raised}])"),
    )


def _plain(texts: Sequence[str], letters: LetterTables) -> list[str]:
    """Drop points, overlays, stress, blanks, and the white space beside ideographs and kana."""
    joined = "".join(f"{text}{SEPARATOR}" for text in texts)
    if joined.isascii():
        return list(texts)
    codes = letters.unstressed_forms[code_points(joined)]
    codes = _kept(codes, letters.roles[codes] & POINT == 0)
    roles = letters.roles[codes]
    stress = roles & STRESS != 0
    if stress.any():
        codes = _kept(codes, ~(stress & (roles[_last(~stress)] & VOWEL != 0)))
    space = codes == _SPACE
    # Of spaces in a row, which stand where something was dropped, the last one stays.
    codes = _kept(codes, ~(space & _behind(space | (codes == ord(SEPARATOR)), first=True)))
    codes = _kept(codes, ~((codes == _SPACE) & _before(codes == ord(SEPARATOR))))
    roles = letters.roles[codes]
    east, beside = roles & EAST != 0, roles & (EAST | BESIDE_EAST) != 0
    needless = (_behind(east) & _before(beside)) | (_behind(beside) & _before(east))
    return text_of(_kept(codes, ~((codes == _SPACE) & needless))).split(SEPARATOR)[:-1]


def _compact(texts: Sequence[str], letters: LetterTables) -> list[str]:
    """Drop white space, hyphens, dots and low lines that stand between two letters."""
    codes = code_points("".join(f"{text}{SEPARATOR}" for text in texts))
    roles = letters.roles[codes]
    separating = roles & SEPARATING != 0
    before = roles[_last(~separating)] & BEFORE_SEPARATOR != 0
    behind = roles[::-1][_last(~separating[::-1])][::-1] & BEHIND_SEPARATOR != 0
    return text_of(_kept(codes, ~(separating & before & behind))).split(SEPARATOR)[:-1]


def _last(is_one: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return for each place the last one up to it that is one, 0 if there is none."""
    return np.maximum.accumulate(np.where(is_one, np.arange(len(is_one)), 0))


def _behind(is_one: npt.NDArray[np.bool_], *, first: bool = False) -> npt.NDArray[np.bool_]:
    """Return for each place whether the one before it is one; ``first`` of the first place."""
    return np.concatenate(([first], is_one[:-1]))


def _before(is_one: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return for each place whether the one behind it is one."""
    return np.concatenate((is_one[1:], [False]))


def _kept(codes: npt.NDArray[np.uint32], keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    return codes if keep.all() else codes[keep]
