"""Brings texts that look alike into one form, so that no invisible trick changes a fingerprint."""

import re
import unicodedata
from functools import cache
from typing import Final

# Written out instead of asked from unicodedata: the set must not change with the Python version.
# It is Unicode's Default_Ignorable_Code_Point (soft hyphen, zero-width characters, bidirectional
# controls, Hangul fillers, variation selectors, tags) and the interlinear annotation marks. Format
# characters that are drawn, such as the Arabic number signs, are not in it.
INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]+")
# Full-width punctuation is on nearly every Chinese page, and NFKC is slow as soon as it has anything to do. Each of
# these is one step of NFKC's own decomposition, so taking it first changes nothing but the time.
_FULL_WIDTH: Final = tuple(zip("，：；？！（）…", (",", ":", ";", "?", "!", "(", ")", "..."), strict=True))
# As in the Stream-Safe Text Format of UAX #15. Without a limit NFKC's time grows with the square of a row's length.
MARKS_IN_A_ROW_MAX: Final = 30
# Of combining class 0, but NFKC makes them marks of other classes.
_BECOME_MARKS: Final = "\u0f73\u0f75\u0f81\uff9e\uff9f"
_CODE_POINT_MAX: Final = 0x10FFFF


def normalise(text: str) -> str:
    """
    Fold a text: invisible characters out, NFKC, casefold, runs of white space to one space, stripped.

    Of more than 30 combining marks in a row the first 30 stay, before and after folding. Idempotent.
    Surrogate pairs become the character they stand for, a lone surrogate becomes U+FFFD, so the result can
    always be encoded as UTF-8.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    # Folding brings no invisible character back, and a second folding changes nothing: tests ask every code point.
    visible = _first_marks(_INVISIBLE.sub("", without_surrogates(text)))
    for full_width, plain in _FULL_WIDTH:
        visible = visible.replace(full_width, plain)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    # Folding takes some marks and letters apart, so a row can have grown.
    if folded != visible:
        folded = _first_marks(folded)
    return " ".join(folded.split())


def without_surrogates(text: str) -> str:
    """Make surrogate pairs the character they stand for, and a lone surrogate U+FFFD; no other text is changed."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _first_marks(text: str) -> str:
    """Keep the first 30 of more combining marks in a row; no other text is changed."""
    # A row that is too long covers one of these places.
    sample = text[MARKS_IN_A_ROW_MAX :: MARKS_IN_A_ROW_MAX + 1]
    if sample.isascii():
        return text
    marks, rows = _marks()
    if marks.isdisjoint(sample):
        return text
    return rows.sub(r"\1", text)


@cache
def _marks() -> tuple[frozenset[str], re.Pattern[str]]:
    """Tell all combining marks, and a pattern of a row of them whose group is what stays."""
    marks = "".join(filter(unicodedata.combining, map(chr, range(_CODE_POINT_MAX + 1)))) + _BECOME_MARKS
    return frozenset(marks), re.compile(f"([{marks}]{{1,{MARKS_IN_A_ROW_MAX}}})[{marks}]*")
