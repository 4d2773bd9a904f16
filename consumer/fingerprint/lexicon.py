"""The words a scheme knows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class OwnWord(NamedTuple):
    """A word of a user's dictionary; where `frequency` is None it gets the one that jieba suggests."""

    word: str
    frequency: int | None


class IdfTable(NamedTuple):
    """Inverse document frequencies by word, and the median of them, which stands in for an unknown word's."""

    weights: Mapping[str, float]
    median: float


@dataclass(frozen=True, slots=True)
class Lexicon:
    """
    The words a scheme knows: inverse document frequencies, what stands in for an unknown word's, stop words.

    `table` gives the frequencies, the same ones each time, and is asked when a word is weighed: who only has to name
    the scheme, or has workers that make fingerprints, need not wait for a table nor hold it. `own_words` come on top of
    jieba's dictionary. `digest` covers the files all that came from, the tokenizer's dictionary among them.
    """

    table: Callable[[], IdfTable] = field(repr=False, compare=False)
    stop_words: frozenset[str] = field(repr=False)
    digest: bytes
    own_words: tuple[OwnWord, ...] = field(default=(), repr=False)

    @property
    def idf(self) -> Mapping[str, float]:
        """The inverse document frequencies by word."""
        return self.table().weights

    @property
    def median_idf(self) -> float:
        """What stands in for an unknown word's."""
        return self.table().median
