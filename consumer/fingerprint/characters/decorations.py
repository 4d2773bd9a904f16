"""Removes the decorations that people add to a text when they repost it: links, names, repost marks and [emoji].

A text that would lose too much is compared whole, so that nobody can hide a text in decorations.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import ascii_lowercase, digits
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.characters.letter_tables import DROPPED, LetterTables
from consumer.fingerprint.characters.normalise import code_points

LINK_CHARS_MAX: Final = 1024
NAME_CHARS_MAX: Final = 30
EMOJI_CHARS_MAX: Final = 4
EMOJI_LISTED_CHARS_MAX: Final = 8
LETTERS_LEFT_MIN: Final = 24
"""A text is compared whole if fewer letters than this would be left."""
LETTERS_FREE_MAX: Final = 60
SHARE_LEFT_MIN: Final = 4
"""If names, marks and emoji have more than ``LETTERS_FREE_MAX`` letters, this many must be left for each letter."""
PLACES_FREE_MAX: Final = 4
LETTERS_A_PLACE: Final = 100
"""If decorations are in more than ``PLACES_FREE_MAX`` places, this many letters must be left for each further place."""
DECORATIONS_DESCRIBED: Final = (
    f"links of at most {LINK_CHARS_MAX} characters; names of at most {NAME_CHARS_MAX} letters, digits, _ and - behind "
    f"@, and what leads to them; repost marks; [emoji] of at most {EMOJI_CHARS_MAX} characters, or listed; the text "
    f"whole if these have more than half of its letters or leave fewer than {LETTERS_LEFT_MIN}, if those except links "
    f"have more than {LETTERS_FREE_MAX} letters and than 1 for {SHARE_LEFT_MIN} that are left, or if they are in more "
    f"than {PLACES_FREE_MAX} places and 1 for {LETTERS_A_PLACE} letters that are left"
)
_ASCII: Final = ascii_lowercase + digits
_LINK: Final = re.compile(f"[{_ASCII}./?=&_%#~:+@-]{{1,{LINK_CHARS_MAX}}}")
_CLOSING: Final = {"[": "]", "(": ")", "【": "】"}


@dataclass(frozen=True, eq=False)
class DecorationLists:
    """The words of decorations by kind, and a digest of their file.

    ``link``: beginnings of links. ``lead``: words that introduce a name. ``mark``: repost marks. ``boxed``: repost
    marks inside brackets. ``emoji``: names of emoji inside square brackets.
    """

    words: dict[str, frozenset[str]] = field(repr=False)
    digest: bytes

    @classmethod
    def of_file(cls, content: bytes) -> "DecorationLists":
        """Return the lists in a file's content. Each line has the kind of a word, a tab and the word."""
        words: defaultdict[str, set[str]] = defaultdict(set)
        for line in content.decode().splitlines():
            name, word = line.split("\t")
            words[name].add(word)
        digest = hashlib.blake2b(content, digest_size=16).digest()
        return cls({name: frozenset(entries) for name, entries in words.items()}, digest)

    @cached_property
    def beginnings(self) -> re.Pattern[str]:
        """A pattern for the first character of a possible decoration, including the @ of a name."""
        words = sorted(self.words["link"] | self.words["mark"])
        return re.compile(
            "|".join(["[@\\[(【]", *(f"{re.escape(word[0])}(?={re.escape(word[1:])})" for word in words)])
        )

    @cached_property
    def leads_by_end(self) -> dict[str, tuple[str, ...]]:
        """The words that introduce a name, by last character, the longest first."""
        leads: defaultdict[str, list[str]] = defaultdict(list)
        for lead in sorted(self.words["lead"], key=lambda word: (-len(word), word)):
            leads[lead[-1]].append(lead)
        return {end: tuple(words) for end, words in leads.items()}

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """The repost marks, the longest first."""
        return tuple(sorted(self.words["mark"], key=lambda word: (-len(word), word)))


class _Span(NamedTuple):
    """The place of a decoration in a text."""

    start: int
    stop: int
    is_link: bool = False


def without_decorations(texts: Sequence[str], letters: LetterTables, lists: DecorationLists) -> list[str]:
    """Return normalised texts without decorations; texts with too many of them are returned whole."""
    return [
        _text_without_decorations(text, letters, lists) if lists.beginnings.search(text) else text for text in texts
    ]


def _text_without_decorations(text: str, letters: LetterTables, lists: DecorationLists) -> str:
    spans = list(_spans(text, letters, lists))
    if not spans or _are_too_many(spans, letters.kinds[code_points(text)] != DROPPED):
        return text
    parts, end = [], 0
    for span in spans:
        parts.append(text[end : span.start])
        end = span.stop
    return " ".join((*parts, text[end:]))


def _are_too_many(spans: Sequence[_Span], is_letter: npt.NDArray[np.bool_]) -> bool:
    """Return whether decorations make up too much of a text, which is then compared whole."""
    counts = np.concatenate(([0], np.cumsum(is_letter))).tolist()
    linked = other = places = end = 0
    for span in spans:
        count = counts[span.stop] - counts[span.start]
        linked += count * span.is_link
        other += count * (not span.is_link)
        places += counts[span.start] > counts[end]
        end = span.stop
    left = counts[-1] - linked - other
    return bool(
        linked + other > left
        or left < LETTERS_LEFT_MIN
        or other > max(LETTERS_FREE_MAX, left // SHARE_LEFT_MIN)
        or places > PLACES_FREE_MAX + left // LETTERS_A_PLACE
    )


def _spans(text: str, letters: LetterTables, lists: DecorationLists) -> Iterator[_Span]:
    """Yield the decorations of a text from left to right. Each search reads a bounded number of characters."""
    end = 0
    for beginning in lists.beginnings.finditer(text):
        place = beginning.start()
        if place < end:
            continue
        if text[place] == "@":
            span = _name(text, place, end, letters, lists)
        elif text[place] in _CLOSING:
            span = _boxed(text, place, letters, lists)
        else:
            span = _link_or_mark(text, place, lists)
        if span:
            yield span
            end = span.stop


def _name(text: str, place: int, least: int, letters: LetterTables, lists: DecorationLists) -> _Span | None:
    """Return the place of the name after an @, or None.

    It includes words that introduce the name, if they begin at ``least`` or later.
    """
    stop = place + 1
    limit = min(len(text), stop + NAME_CHARS_MAX + 1)
    while stop < limit and (letters.kinds[ord(text[stop])] != DROPPED or text[stop] in "_-"):
        stop += 1
    is_address = text[place - 1 : place] in (*_ASCII, ".", "_", "-") if place else False
    if is_address or not place + 1 < stop <= place + 1 + NAME_CHARS_MAX:
        return None
    before = text[max(least, place - 3) : place]
    between = len(before) - len(before.rstrip(" :"))
    lead_stop = place - between
    for lead in lists.leads_by_end.get(text[lead_stop - 1 : lead_stop], ()):
        start = lead_stop - len(lead)
        if start >= least and text.startswith(lead, start) and not _continues(text, start):
            return _Span(start, stop)
    return _Span(place, stop)


def _continues(text: str, place: int) -> bool:
    """Return whether the ASCII letter or digit at a place continues a word."""
    return place > 0 and text[place] in _ASCII and text[place - 1] in _ASCII


def _boxed(text: str, place: int, letters: LetterTables, lists: DecorationLists) -> _Span | None:
    """Return the place of an [emoji] or of a repost mark in any brackets, or None."""
    stop = text.find(_CLOSING[text[place]], place + 1, place + EMOJI_LISTED_CHARS_MAX + 2)
    if stop < 0:
        return None
    inside = text[place + 1 : stop]
    is_mark = inside.strip() in lists.words["boxed"]
    if is_mark or (text[place] == "[" and (inside in lists.words["emoji"] or _is_emoji(inside, letters))):
        return _Span(place, stop + 1)
    return None


def _is_emoji(inside: str, letters: LetterTables) -> bool:
    """Return whether the text inside brackets is a few letters or digits, but not only digits."""
    return (
        0 < len(inside) <= EMOJI_CHARS_MAX
        and all(letters.kinds[ord(character)] != DROPPED for character in inside)
        and not all(character in digits for character in inside)
    )


def _link_or_mark(text: str, place: int, lists: DecorationLists) -> _Span | None:
    for mark in lists.marks:
        if text.startswith(mark, place):
            return _Span(place, place + len(mark))
    link = _LINK.match(text, place)
    # A host without a scheme must begin a word.
    if link is None or (not text.startswith("http", place) and _continues(text, place)):
        return None
    return _Span(place, link.end(), is_link=True)


NO_DECORATIONS: Final = DecorationLists({}, b"")
"""Lists without decorations."""
