"""The words a scheme knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class OwnWord(NamedTuple):
    """A word of a user's dictionary; where `frequency` is None it gets the one that jieba suggests."""

    word: str
    frequency: int | None


@dataclass(frozen=True, slots=True)
class Lexicon:
    """
    The words a scheme knows: inverse document frequencies, what stands in for an unknown word's, stop words.

    `own_words` come on top of jieba's dictionary. `digest` covers the files all that came from, the tokenizer's
    dictionary among them.
    """

    idf: Mapping[str, float] = field(repr=False)
    median_idf: float
    stop_words: frozenset[str] = field(repr=False)
    digest: bytes
    own_words: tuple[OwnWord, ...] = field(default=(), repr=False)
