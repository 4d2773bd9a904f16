"""What people put around a text when they pass it on: links, names, repost marks, [emoji].

They are bounded, so that nobody hides a text in them: a text that would lose too much to them is compared as it is.
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
"""What is left of a text has at least so many letters, or the text is compared whole."""
LETTERS_FREE: Final = 60
SHARE_LEFT: Final = 4
"""Beyond the first letters of names, marks and emoji, there is at most one for so many of the letters that are left."""
PLACES_FREE: Final = 4
LETTERS_A_PLACE: Final = 100
"""Beyond the first places of decorations there is at most one for so many letters that are left."""
DECORATIONS_DESCRIBED: Final = (
    f"links of at most {LINK_CHARS_MAX} characters; names of at most {NAME_CHARS_MAX} letters, digits, _ and - behind "
    f"@, and what leads to them; repost marks; [emoji] of at most {EMOJI_CHARS_MAX} characters, or listed; the text "
    f"whole if these have more than half of its letters or leave fewer than {LETTERS_LEFT_MIN}, if those except links "
    f"have more than {LETTERS_FREE} letters and than 1 for {SHARE_LEFT} that are left, or if they are in more than "
    f"{PLACES_FREE} places and 1 for {LETTERS_A_PLACE} letters that are left"
)
_ASCII: Final = ascii_lowercase + digits
_LINK: Final = re.compile(f"[{_ASCII}./?=&_%#~:+@-]{{1,{LINK_CHARS_MAX}}}")
_CLOSING: Final = {"[": "]", "(": ")", "【": "】"}


@dataclass(frozen=True, eq=False)
class DecorationLists:
    """The words of decorations by what they are, and a digest of the file that they come from.

    ``link``: beginnings of links. ``lead``: what leads to a name. ``mark``: repost marks. ``boxed``: what is one in
    brackets. ``emoji``: what is one in square brackets.
    """

    words: dict[str, frozenset[str]] = field(repr=False)
    digest: bytes

    @classmethod
    def of_file(cls, content: bytes) -> "DecorationLists":
        """Read the lists from a file's content: on each line what a word is, and the word."""
        words: defaultdict[str, set[str]] = defaultdict(set)
        for line in content.decode().splitlines():
            name, word = line.split("\t")
            words[name].add(word)
        digest = hashlib.blake2b(content, digest_size=16).digest()
        return cls({name: frozenset(of_name) for name, of_name in words.items()}, digest)

    @cached_property
    def beginnings(self) -> re.Pattern[str]:
        """The characters at which a decoration may begin, and the @ of names."""
        words = sorted(self.words["link"] | self.words["mark"])
        return re.compile(
            "|".join(["[@\\[(【]", *(f"{re.escape(word[0])}(?={re.escape(word[1:])})" for word in words)])
        )

    @cached_property
    def leads_by_end(self) -> dict[str, tuple[str, ...]]:
        """What leads to a name by its last character, the longest first."""
        leads: defaultdict[str, list[str]] = defaultdict(list)
        for lead in sorted(self.words["lead"], key=lambda word: (-len(word), word)):
            leads[lead[-1]].append(lead)
        return {end: tuple(of_end) for end, of_end in leads.items()}

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """The repost marks, the longest first."""
        return tuple(sorted(self.words["mark"], key=lambda word: (-len(word), word)))


class _Span(NamedTuple):
    """Where a decoration is in a text."""

    start: int
    stop: int
    is_link: bool = False


def without_decorations(texts: Sequence[str], letters: LetterTables, lists: DecorationLists) -> list[str]:
    """Return these normalised texts without their decorations, or whole where these are too much of a text."""
    return [_without(text, letters, lists) if lists.beginnings.search(text) else text for text in texts]


def _without(text: str, letters: LetterTables, lists: DecorationLists) -> str:
    spans = list(_spans(text, letters, lists))
    if not spans or _too_much(spans, letters.kinds[code_points(text)] != DROPPED):
        return text
    parts, end = [], 0
    for span in spans:
        parts.append(text[end : span.start])
        end = span.stop
    return " ".join((*parts, text[end:]))


def _too_much(spans: Sequence[_Span], is_letter: npt.NDArray[np.bool_]) -> bool:
    """Return whether a text is to be compared whole."""
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
        or other > max(LETTERS_FREE, left // SHARE_LEFT)
        or places > PLACES_FREE + left // LETTERS_A_PLACE
    )


def _spans(text: str, letters: LetterTables, lists: DecorationLists) -> Iterator[_Span]:
    """Yield the decorations of a text from the left; each is looked for within a few characters."""
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
    """Return the name behind an @ with what leads to it."""
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
    """Return whether an ASCII letter or digit continues an ASCII word."""
    return place > 0 and text[place] in _ASCII and text[place - 1] in _ASCII


def _boxed(text: str, place: int, letters: LetterTables, lists: DecorationLists) -> _Span | None:
    """Return an [emoji], or a repost mark in any brackets."""
    stop = text.find(_CLOSING[text[place]], place + 1, place + EMOJI_LISTED_CHARS_MAX + 2)
    if stop < 0:
        return None
    inside = text[place + 1 : stop]
    is_mark = inside.strip() in lists.words["boxed"]
    if is_mark or (text[place] == "[" and (inside in lists.words["emoji"] or _is_emoji(inside, letters))):
        return _Span(place, stop + 1)
    return None


def _is_emoji(inside: str, letters: LetterTables) -> bool:
    """Return whether there are few characters, all of them letters or digits, and not digits alone."""
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
    # A host without a scheme begins a word.
    if link is None or (not text.startswith("http", place) and _continues(text, place)):
        return None
    return _Span(place, link.end(), is_link=True)


NO_DECORATIONS: Final = DecorationLists({}, b"")
"""Has no decorations."""
