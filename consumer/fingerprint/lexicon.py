"""The type of the words that a scheme knows; ``consumer.workers.word_files`` loads them from files."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from consumer.fingerprint.characters.decorations import NO_DECORATIONS, DecorationLists
from consumer.fingerprint.characters.letter_tables import NO_LETTERS, LetterTables
from consumer.fingerprint.characters.simplified import NO_TABLES, ChineseTables

CUT_WHOLE: Final = re.compile("[\u4e00-\u9fd5a-zA-Z0-9+#&._%\\-]+")
"""Matches words that jieba can keep whole. jieba ends a word at any other character, whatever a dictionary says."""


class OwnWord(NamedTuple):
    """A word of the user's dictionary. If ``frequency`` is None, jieba suggests one."""

    word: str
    frequency: int | None


class IdfTable(NamedTuple):
    """Inverse document frequencies by word, and their median, which most schemes use for unknown words."""

    weights: Mapping[str, float]
    median: float


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words that a scheme knows: inverse document frequencies, stop words, and the user's own words.

    ``table`` always returns the same frequencies. Only engines call it, so a process that only names the scheme, or
    leaves fingerprints to workers, does not load the table. ``own_words`` are added to jieba's dictionary.
    ``own_table`` says whether the table is the user's. ``digest`` covers the files of all these words, including the
    tokenizer's dictionary, which contains the ``names``. It does not cover ``chinese``, ``letters`` and
    ``decorations``, which only some schemes use. ``jieba_digest`` covers the files of jieba alone.
    """

    table: Callable[[], IdfTable] = field(repr=False, compare=False)
    stop_words: frozenset[str] = field(repr=False)
    digest: bytes
    own_words: tuple[OwnWord, ...] = field(default=(), repr=False)
    own_table: bool = False
    jieba_digest: bytes = field(default=b"", repr=False)
    chinese: Callable[[], ChineseTables] = field(default=lambda: NO_TABLES, repr=False, compare=False)
    letters: Callable[[], LetterTables] = field(default=lambda: NO_LETTERS, repr=False, compare=False)
    decorations: Callable[[], DecorationLists] = field(default=lambda: NO_DECORATIONS, repr=False, compare=False)
    names: Callable[[], frozenset[str]] = field(default=frozenset, repr=False, compare=False)

    @property
    def idf(self) -> Mapping[str, float]:
        """The inverse document frequencies by word."""
        return self.table().weights

    @property
    def median_idf(self) -> float:
        """The median of the inverse document frequencies, which most schemes use for unknown words."""
        return self.table().median
