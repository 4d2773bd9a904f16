"""Normalises texts, so that invisible differences do not affect fingerprints."""

import re
import unicodedata
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

# Written out, not taken from unicodedata: the set must not change with the version of Python.
# It is Unicode's Default_Ignorable_Code_Point (soft hyphen, zero-width characters, bidirectional
# controls, Hangul fillers, variation selectors, tags) and the interlinear annotation marks. Visible
# format characters, such as the Arabic number signs, are not in it.
INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]+")
# Nearly every Chinese page has full-width punctuation, and NFKC is slow if it has anything to change. NFKC makes these
# replacements too, so making them first saves time and changes no result.
_FULL_WIDTH: Final = tuple(zip("，：；？！（）…", (",", ":", ";", "?", "!", "(", ")", "..."), strict=True))
# The limit of the Stream-Safe Text Format (UAX #15). Without it, NFKC takes quadratic time in the length of a row.
MARKS_IN_A_ROW_MAX: Final = 30
# Characters of combining class 0 that NFKC turns into marks of other classes.
_BECOME_MARKS: Final = "\u0f73\u0f75\u0f81\uff9e\uff9f"
_CODE_POINT_MAX: Final = 0x10FFFF


def normalise(text: str) -> str:
    """Return a text without invisible characters, in NFKC, casefolded, with single spaces, stripped.

    Only the first 30 combining marks in a row remain, before and after folding. Surrogate pairs become the character
    that they encode, and lone surrogates become U+FFFD, so the result can always be encoded as UTF-8. Idempotent.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    # Folding produces no invisible characters, and folding twice changes nothing: tests check every code point.
    visible = _first_marks(_INVISIBLE.sub("", without_surrogates(text)))
    for full_width, plain in _FULL_WIDTH:
        visible = visible.replace(full_width, plain)
    folded = caseless(visible)
    # Folding decomposes some marks and letters, which may lengthen a row.
    if folded != visible:
        folded = _first_marks(folded)
    return " ".join(folded.split())


def caseless(text: str) -> str:
    """Return a text without differences of case, and of compatibility forms such as width: NFKC, casefold, NFKC."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def without_surrogates(text: str) -> str:
    """Replace surrogate pairs by the character that they encode, and lone surrogates by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _first_marks(text: str) -> str:
    """Return a text with only the first 30 combining marks of each row."""
    # A row that is too long covers at least one of these places.
    sample = text[MARKS_IN_A_ROW_MAX :: MARKS_IN_A_ROW_MAX + 1]
    if sample.isascii():
        return text
    marks, rows = _marks()
    if marks.isdisjoint(sample):
        return text
    return rows.sub(r"\1", text)


@cache
def _marks() -> tuple[frozenset[str], re.Pattern[str]]:
    """Return all combining marks, and a pattern for a row of them whose group is the part to keep."""
    marks = "".join(filter(unicodedata.combining, map(chr, range(_CODE_POINT_MAX + 1)))) + _BECOME_MARKS
    return frozenset(marks), re.compile(f"([{marks}]{{1,{MARKS_IN_A_ROW_MAX}}})[{marks}]*")


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text without surrogates."""
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")


def text_of(codes: npt.NDArray[np.uint32]) -> str:
    """Return the text with these code points."""
    return codes.astype("<u4").tobytes().decode("utf-32-le")
