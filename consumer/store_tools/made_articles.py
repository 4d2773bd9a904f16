"""Generates articles from the pieces of others, in any number and length, to measure a machine."""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Final

_PIECES: Final = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]{1,6}|[^\u2e80-\u9fff\uff00-\uffef\s]+\s*")
"""Up to six Chinese characters, or a word of other scripts with the space after it."""
_SOURCES: Final = 8
"""The number of articles whose pieces are mixed. With fewer, an article has one subject; with more, all are alike."""
_CHANGED: Final = 20
"""A copy replaces one in this many pieces, on average."""


class ArticleMaker:
    """A generator of articles of about ``chars`` characters.

    ``copies`` is the share of articles that repeat the latest new one, with some changed pieces.
    """

    def __init__(self, texts: Sequence[str], chars: int, copies: float, seed: int = 1) -> None:
        self._pieces = [pieces for text in texts if (pieces := _PIECES.findall(text))]
        self._chars = chars
        self._copies = copies
        self._chance = random.Random(seed)  # noqa: S311  # articles, not secrets
        self._latest: list[str] = []

    def bodies(self, count: int) -> Iterator[str]:
        """Yield the next ``count`` bodies."""
        for _ in range(count):
            if self._latest and self._chance.random() < self._copies:
                yield "".join(self._changed_pieces(self._latest))
            else:
                self._latest = list(self._new_pieces())
                yield "".join(self._latest)

    def _new_pieces(self) -> Iterator[str]:
        some = self._chance.choices(self._pieces, k=_SOURCES)
        pieces = [piece for of_one in some for piece in of_one]
        mean = sum(map(len, pieces)) / len(pieces)
        length = 0
        while length < self._chars:
            for piece in self._chance.choices(pieces, k=max(int((self._chars - length) / mean), 1)):
                length += len(piece)
                yield piece

    def _changed_pieces(self, pieces: Sequence[str]) -> Iterator[str]:
        others = self._chance.choice(self._pieces)
        for piece in pieces:
            yield self._chance.choice(others) if self._chance.randrange(_CHANGED) == 0 else piece
