"""Folds traditional Chinese to simplified, so that a copy in the other script has the same words and shingles.

The tables are OpenCC's (``consumer.workers.word_files`` loads them). There are two steps: Taiwanese words and variants
become those of the mainland, in traditional characters; then these become simplified. Each step replaces the longest
phrases, from the left, and the characters outside phrases one by one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.characters.normalise import code_points, text_of

_CODE_POINTS: Final = 0x110000
_NO_PAIR: Final = (1 << 64) - 1
_EAST_ASIAN_FROM: Final = "\u2e80"
_KANA: Final = ((0x3041, 0x3100), (0x31F0, 0x3200))
_HAN: Final = ((0x3400, 0xA000), (0x20000, 0x34000))
JAPANESE_SHARE: Final = 8
"""A text is Japanese if at least one in this many of its kana and Han characters is kana; prose has one in two."""
JAPANESE_DESCRIBED: Final = f"not folded where at least 1 of {JAPANESE_SHARE} kana and Han characters is kana"


@dataclass(frozen=True)
class Step:
    """A folding step: phrases of several characters, and single characters, each with its replacement.

    Numpy finds the places where the first two characters of a phrase stand. Phrases are looked up only there, once for
    each possible length. So a text costs at most a few dictionary look-ups per character, however many phrases there
    are.
    """

    phrases: Mapping[str, str]
    characters: Mapping[str, str]

    def fold(self, text: str) -> str:
        """Return the text after this step."""
        codes = code_points(text)
        folded = self._fold_characters(codes)
        parts: list[str] = []
        end = 0
        for start in self._starts(codes):
            if start < end:
                continue
            for length in (*self._lengths.get(text[start : start + 2], ()), 1):
                form = self._forms.get(text[start : start + length])
                if form is not None:
                    parts += (folded[end:start], form)
                    end = start + length
                    break
        return "".join((*parts, folded[end:]))

    def fold_all(self, texts: Sequence[str]) -> list[str]:
        """Return texts after this step.

        All phrases and characters of the step must contain a character from U+2E80 on. Texts without such a character
        are not searched.
        """
        if "".join(texts).isascii():
            return list(texts)
        return [text if max(text, default="") < _EAST_ASIAN_FROM else self.fold(text) for text in texts]

    def _fold_characters(self, codes: npt.NDArray[np.uint32]) -> str:
        """Return the text with single characters replaced, except characters that become several."""
        known = codes < len(self._table)
        folded = np.where(known, self._table[np.where(known, codes, 0)], codes)
        return text_of(folded.astype(np.uint32))

    def _starts(self, codes: npt.NDArray[np.uint32]) -> list[int]:
        """Return the places where an entry of ``_forms`` may begin, by its first two characters."""
        may_begin = np.isin(codes, self._growing)
        pairs = _pair_numbers(codes)
        places = np.searchsorted(self._pairs, pairs)
        may_begin[:-1] |= self._pairs[np.minimum(places, len(self._pairs) - 1)] == pairs
        starts: list[int] = may_begin.nonzero()[0].tolist()
        return starts

    @cached_property
    def _forms(self) -> dict[str, str]:
        """The replacements of phrases, and of characters that become several."""
        return {char: form for char, form in self.characters.items() if len(form) != 1} | dict(self.phrases)

    @cached_property
    def _lengths(self) -> dict[str, tuple[int, ...]]:
        """The lengths of phrases by their first two characters, the longest first."""
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for phrase in self.phrases:
            lengths[phrase[:2]].add(len(phrase))
        return {pair: tuple(sorted(sizes, reverse=True)) for pair, sizes in lengths.items()}

    @cached_property
    def _pairs(self) -> npt.NDArray[np.uint64]:
        # The last number is not a pair of code points; it keeps the array from being empty.
        return np.array(
            [*sorted(int(_pair_numbers(code_points(pair))[0]) for pair in self._lengths), _NO_PAIR], np.uint64
        )

    @cached_property
    def _growing(self) -> npt.NDArray[np.uint32]:
        return np.array([ord(entry) for entry in self._forms if len(entry) == 1], np.uint32)

    @cached_property
    def _table(self) -> npt.NDArray[np.uint32]:
        """The replacement of each code point, up to the last one that is replaced."""
        table = np.arange(max(map(ord, self.characters), default=0) + 1, dtype=np.uint32)
        for character, form in self.characters.items():
            if len(form) == 1:
                table[ord(character)] = ord(form)
        return table


def _pair_numbers(codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    """Return a number for each pair of adjacent code points."""
    return codes[:-1].astype(np.uint64) << np.uint64(32) | codes[1:]


@dataclass(frozen=True)
class ChineseTables:
    """The folding steps, in order, and a digest of their tables."""

    steps: tuple[Step, ...]
    digest: bytes

    def fold(self, texts: Sequence[str]) -> list[str]:
        """Return normalised texts with traditional characters simplified; Japanese texts are unchanged.

        Texts without a traditional character are unchanged too.
        """
        return [
            self._fold_text(text) if has_traditional and not is_japanese(text) else text
            for text, has_traditional in zip(texts, self._has_traditional(texts), strict=True)
        ]

    def _fold_text(self, text: str) -> str:
        for step in self.steps:
            text = step.fold(text)
        return text

    def _has_traditional(self, texts: Sequence[str]) -> list[bool]:
        """Return whether each text has a character that the last step replaces."""
        # "clip" skips numpy's bounds check, which the table does not need: it has every code point.
        places = np.flatnonzero(np.take(self._traditional, code_points("".join(texts)), mode="clip"))
        has = np.zeros(len(texts), np.bool_)
        if len(places):
            ends = np.cumsum([len(text) for text in texts])
            has[np.searchsorted(ends, places, side="right")] = True
        flags: list[bool] = has.tolist()
        return flags

    @cached_property
    def _traditional(self) -> npt.NDArray[np.bool_]:
        table = np.zeros(_CODE_POINTS, np.bool_)
        for step in self.steps[-1:]:
            table[[ord(character) for character in step.characters]] = True
        return table


NO_TABLES: Final = ChineseTables((), b"")
"""Tables that fold nothing."""


def is_japanese(text: str) -> bool:
    """Return whether a normalised text is Japanese, by its share of kana."""
    codes = code_points(text)
    kana, han = (
        sum(int(np.count_nonzero((codes >= first) & (codes < end))) for first, end in blocks)
        for blocks in (_KANA, _HAN)
    )
    return kana > 0 and kana * JAPANESE_SHARE >= kana + han
