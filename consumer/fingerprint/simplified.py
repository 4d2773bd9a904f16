"""Folds traditional Chinese to simplified, so that a copy in the other script has the same words and shingles.

The tables are OpenCC's (``consumer.workers.word_files`` loads them). There are two steps: words and variants of Taiwan
become those of the mainland, in traditional characters; and then these become simplified ones. In each step the longest
phrase counts, from the left, and characters outside of phrases are replaced one by one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt

_CODE_POINTS: Final = 0x110000
_KANA: Final = ((0x3041, 0x3100), (0x31F0, 0x3200))
_HAN: Final = ((0x3400, 0xA000), (0x20000, 0x34000))
JAPANESE_SHARE: Final = 8
"""A text is Japanese where one of so many of its kana and Han characters is kana: in prose it is every second one."""
JAPANESE_DESCRIBED: Final = f"not folded where at least 1 of {JAPANESE_SHARE} kana and Han characters is kana"


@dataclass(frozen=True)
class Step:
    """One step: phrases of several characters, and single characters, each with what takes its place."""

    phrases: Mapping[str, str]
    characters: Mapping[str, str]

    def fold(self, text: str) -> str:
        """Return the text after this step."""
        parts: list[str] = []
        end = 0
        for found in self._pattern.finditer(text):
            parts.append(text[end : found.start()].translate(self._table))
            parts.append(self.phrases[found[0]])
            end = found.end()
        return "".join((*parts, text[end:].translate(self._table)))

    @cached_property
    def _table(self) -> dict[int, str]:
        return str.maketrans(dict(self.characters))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # By first character, so that a place in a text is compared with a few phrases; the longest comes first.
        branches: list[str] = []
        for first, phrases in groupby(sorted(self.phrases), key=lambda phrase: phrase[0]):
            rests = [re.escape(phrase[1:]) for phrase in sorted(phrases, key=len, reverse=True)]
            branches.append(f"{re.escape(first)}(?:{'|'.join(rests)})")
        return re.compile("|".join(branches))


@dataclass(frozen=True)
class ChineseTables:
    """The steps, in order, and a digest of the tables that they come from."""

    steps: tuple[Step, ...]
    digest: bytes

    def fold(self, texts: Sequence[str]) -> list[str]:
        """Fold each of these normalised texts that has a traditional character and is not Japanese.

        A text without one is returned as it is.
        """
        return [
            self._folded(text) if has else text for text, has in zip(texts, self._has_traditional(texts), strict=True)
        ]

    def _folded(self, text: str) -> str:
        if is_japanese(text):
            return text
        for step in self.steps:
            text = step.fold(text)
        return text

    def _has_traditional(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it has a character that the last step replaces."""
        lengths = np.array([len(text) for text in texts])
        if not lengths.sum():
            return [False] * len(texts)
        codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4")
        traditional = np.concatenate(([0], np.cumsum(self._traditional[codes], dtype=np.int64)))
        ends = np.cumsum(lengths)
        counts = traditional[ends] - traditional[ends - lengths]
        has: list[bool] = (counts > 0).tolist()
        return has

    @cached_property
    def _traditional(self) -> npt.NDArray[np.bool_]:
        table = np.zeros(_CODE_POINTS, np.bool_)
        for step in self.steps[-1:]:
            table[[ord(character) for character in step.characters]] = True
        return table


NO_TABLES: Final = ChineseTables((), b"")
"""Folds nothing."""


def is_japanese(text: str) -> bool:
    """Return whether a normalised text is Japanese, by its share of kana."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    kana, han = (
        sum(int(np.count_nonzero((codes >= first) & (codes < end))) for first, end in blocks)
        for blocks in (_KANA, _HAN)
    )
    return kana > 0 and kana * JAPANESE_SHARE >= kana + han
