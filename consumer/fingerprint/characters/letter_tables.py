"""Tables that say how comparisons by letters and by equality treat each character.

``consumer.workers.word_files`` loads the tables. Each line of their file has a name, then either ranges of code points,
which form a set, or a character or word and its form.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from string import digits as ascii_digits
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.characters.normalise import INVISIBLE
from consumer.fingerprint.characters.simplified import Step

CODE_POINTS: Final = 0x110000
SEPARATOR: Final = "\n"
"""Ends each text of a batch. Normalised texts do not contain it."""

# The values of ``LetterTables.kinds``.
DROPPED: Final = 0
BARE: Final = 1
LETTER: Final = 2
MARK: Final = 3

# The bits of ``LetterTables.roles``.
EAST: Final = 1
JOINS_EAST: Final = 1 << 1
SEPARATING: Final = 1 << 2
BEFORE_SEPARATOR: Final = 1 << 3
AFTER_SEPARATOR: Final = 1 << 4
POINT: Final = 1 << 5
STRESS: Final = 1 << 6
VOWEL: Final = 1 << 7

Script = Literal["latin", "cyrillic", "greek"]
SCRIPTS: Final[tuple[Script, ...]] = ("latin", "cyrillic", "greek")
"""The scripts, in the order that decides ties."""
IN_WORD: Final = 1
"""The class of marks and invisible characters, which neither end a word nor count as letters."""


@dataclass(frozen=True, eq=False)
class LetterTables:
    """The tables in a file with this content, each built when it is first used.

    ``sets`` are sets of characters, ``forms`` the forms of characters and words, both by name. ``kinds`` says whether
    each code point counts as a letter: no (``DROPPED``), as a letter whose marks do not count (``BARE``), as one whose
    marks are letters (``LETTER``), or as such a mark (``MARK``).
    """

    content: bytes = field(repr=False)

    @cached_property
    def digest(self) -> bytes:
        """The digest of the file, BLAKE2b of 16 bytes, which is part of the scheme's digest."""
        return hashlib.blake2b(self.content, digest_size=16).digest()

    @cached_property
    def sets(self) -> Mapping[str, frozenset[int]]:
        """The sets of code points, by name."""
        entries = (line.split("\t") for line in self._lines if line.count("\t") == 1)
        return {name: frozenset(_codes(ranges)) for name, ranges in entries if name != "unicode"}

    @cached_property
    def forms(self) -> Mapping[str, Mapping[str, str]]:
        """The forms of characters and words, by name."""
        forms: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for line in self._lines:
            if line.count("\t") > 1:
                name, written, form = line.split("\t")
                forms[name][written] = form
        return forms

    @cached_property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """The kind of every code point."""
        kinds = np.zeros(CODE_POINTS, np.uint8)
        for name, kind in (("bare", BARE), ("letter", LETTER), ("mark", MARK)):
            kinds[list(self._set(name))] = kind
        return kinds

    @cached_property
    def letter_forms(self) -> npt.NDArray[np.uint32]:
        """The letter that each code point counts as, or the code point itself."""
        return self._forms("fold")

    @cached_property
    def words(self) -> Step:
        """The words of several letters that count as another word."""
        return Step(self.forms.get("word", {}), {})

    @cached_property
    def unstressed_forms(self) -> npt.NDArray[np.uint32]:
        """Each code point without the stress that is composed with it."""
        return self._forms("unstress")

    @cached_property
    def roles(self) -> npt.NDArray[np.uint8]:
        """The roles of each code point in comparisons by equality, as bits."""
        roles = np.zeros(CODE_POINTS, np.uint8)
        letters = (self._set("bare") | self._set("letter")) - self._set("number")
        for codes, role in (
            (self._set("east"), EAST),
            (self._set("latin") | set(map(ord, ascii_digits)) | self._set("beside_east"), JOINS_EAST),
            (self._set("separator"), SEPARATING),
            (letters | self._set("mark") | self._set("accent"), BEFORE_SEPARATOR),
            (letters | self._set("mark"), AFTER_SEPARATOR),
            (self._set("point") | self._set("blank"), POINT),
            (self._set("stress"), STRESS),
            (self._set("vowel"), VOWEL),
        ):
            roles[list(codes)] |= role
        return roles

    @cached_property
    def raised(self) -> str:
        """The characters, such as superscripts, that are not digits but normalise to a text that begins with one."""
        return "".join(map(chr, sorted(self._set("raised"))))

    @cached_property
    def digits(self) -> str:
        """The decimal digits of all scripts."""
        return "".join(map(chr, sorted(self._set("digit"))))

    @cached_property
    def points(self) -> str:
        """The characters that equality drops: points, overlays and characters that look like a space."""
        return "".join(map(chr, sorted(self._set("point") | self._set("blank"))))

    @cached_property
    def scripts(self) -> npt.NDArray[np.uint8]:
        """The class of each code point as written: 2 + its script's place in ``SCRIPTS``, ``IN_WORD``, or 0."""
        scripts = np.zeros(CODE_POINTS, np.uint8)
        invisible = re.compile(f"[{INVISIBLE}]")
        scripts[[code for code in range(CODE_POINTS) if invisible.match(chr(code))]] = IN_WORD
        scripts[list(self._set("mark") | self._set("accent"))] = IN_WORD
        for place, script in enumerate(SCRIPTS):
            scripts[list(self._set(script))] = 2 + place
        return scripts

    @cached_property
    def ambiguous(self) -> frozenset[str]:
        """The letters that look exactly like a letter of another script."""
        return frozenset(map(chr, self._set("same")))

    @cached_property
    def look_alikes(self) -> tuple[dict[int, str], ...]:
        """For each of ``SCRIPTS``, its letters by the characters that look like them."""
        to_latin = self.forms.get("latin_like", {})
        translations = [dict(to_latin)]
        for script in SCRIPTS[1:]:
            own = self.forms.get(f"{script}_like", {})
            through = {other: own[latin] for other, latin in to_latin.items() if latin in own}
            letters = self._set(script)
            translations.append(
                {other: form for other, form in {**through, **own}.items() if ord(other) not in letters}
            )
        return tuple({ord(other): form for other, form in translation.items()} for translation in translations)

    @property
    def _lines(self) -> list[str]:
        return self.content.decode().splitlines()

    def _set(self, name: str) -> frozenset[int]:
        return self.sets.get(name, frozenset())

    def _forms(self, name: str) -> npt.NDArray[np.uint32]:
        table = np.arange(CODE_POINTS, dtype=np.uint32)
        for character, form in self.forms.get(name, {}).items():
            table[ord(character)] = ord(form)
        return table


def _codes(ranges: str) -> Iterator[int]:
    for first, last in (limits.split("-") for limits in ranges.split()):
        yield from range(int(first, 16), int(last, 16) + 1)


NO_LETTERS: Final = LetterTables(b"")
"""Tables without letters."""
