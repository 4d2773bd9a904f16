"""Brings texts that look alike into one form, so that no invisible trick changes a fingerprint."""

import re
import unicodedata
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


def normalise(text: str) -> str:
    """
    Fold a text: invisible characters out, NFKC, casefold, runs of white space to one space, stripped.

    Idempotent. Surrogate pairs become the character they stand for, a lone surrogate becomes U+FFFD, so the
    result can always be encoded as UTF-8.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    # Folding brings no invisible character back, and a second folding changes nothing: tests ask every code point.
    visible = _INVISIBLE.sub("", without_surrogates(text))
    for full_width, plain in _FULL_WIDTH:
        visible = visible.replace(full_width, plain)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    return " ".join(folded.split())


def without_surrogates(text: str) -> str:
    """Make surrogate pairs the character they stand for, and a lone surrogate U+FFFD; no other text is changed."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
