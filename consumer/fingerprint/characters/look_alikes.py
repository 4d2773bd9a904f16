"""Replaces letters that look like letters of the script around them, so that a word has one script."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from consumer.fingerprint.characters.letter_tables import SCRIPTS, LetterTables
from consumer.fingerprint.characters.normalise import code_points, normalise, without_surrogates

# The patterns apply to a text whose characters are replaced by their classes in `LetterTables.scripts`.
_LATIN, _CYRILLIC, _GREEK = "\2\3\4"
_MIXED: Final = re.compile(
    f"{_LATIN}\1*+[{_CYRILLIC}{_GREEK}]|{_CYRILLIC}\1*+[{_LATIN}{_GREEK}]|{_GREEK}\1*+[{_LATIN}{_CYRILLIC}]"
)
_WORD: Final = re.compile("[\1-\4]+")


def in_one_script(texts: Sequence[str], normalised: Sequence[str], letters: LetterTables) -> list[str]:
    """Return the normalised texts, with look-alike letters replaced so that no word mixes scripts because of them.

    A word is a run of Latin, Greek and Cyrillic letters, with their marks, as written. It gets the script that has
    the most unmistakable letters in it: letters without a look-alike in another script. So words in one script do not
    change, and a Russian word with a Latin letter stays Russian. Ties go to Latin, then to Cyrillic.
    """
    return [
        _in_one_script(text, form, letters) if other else form
        for text, form, other in zip(texts, normalised, _has_other_scripts(normalised, letters), strict=True)
    ]


def _has_other_scripts(normalised: Sequence[str], letters: LetterTables) -> list[bool]:
    """Return whether each text has a Greek or Cyrillic letter."""
    joined = "".join(normalised)
    has = np.zeros(len(normalised), np.bool_)
    if not joined.isascii():
        places = np.flatnonzero(letters.scripts[code_points(joined)] > ord(_LATIN))
        ends = np.cumsum([len(text) for text in normalised])
        has[np.searchsorted(ends, places, side="right")] = True
    flags: list[bool] = has.tolist()
    return flags


def _in_one_script(text: str, normalised: str, letters: LetterTables) -> str:
    written = without_surrogates(text)
    scripts = letters.scripts[code_points(written)].tobytes().decode("ascii")
    if not _MIXED.search(scripts):
        return normalised
    parts: list[str] = []
    end = 0
    for mixed in _MIXED.finditer(scripts):
        if mixed.start() < end:
            continue
        start = _start_of_word(scripts, mixed.start(), end)
        word = _WORD.match(scripts, start)
        stop = word.end() if word else start
        parts += (written[end:start], _word_in_one_script(written[start:stop], scripts[start:stop], letters))
        end = stop
    return normalise("".join((*parts, written[end:])))


def _start_of_word(scripts: str, place: int, least: int) -> int:
    return max(least, scripts.rfind("\0", least, place) + 1)


def _word_in_one_script(word: str, scripts: str, letters: LetterTables) -> str:
    counts = [0] * len(SCRIPTS)
    for character, script in zip(word, scripts, strict=True):
        if script >= _LATIN and character not in letters.ambiguous:
            counts[ord(script) - ord(_LATIN)] += 1
    # Of equal counts the first one wins, in the order of SCRIPTS.
    return word.translate(letters.look_alikes[counts.index(max(counts))])
