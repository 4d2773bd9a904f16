"""Loads the user's word files, the tables of jieba, and our tables of characters.

It does not import jieba, because the import is slow and emits warnings.
"""

import hashlib
import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from consumer.fingerprint import (
    CUT_WHOLE,
    NAME_TAGS,
    ChineseTables,
    DecorationLists,
    IdfTable,
    LetterTables,
    Lexicon,
    OwnWord,
    Step,
    normalise,
)

# The default of jieba.analyse.TFIDF, which exists only in its code.
STOP_WORDS: Final = frozenset(
    {
        *("the", "of", "is", "and", "to", "in", "that", "we", "for", "an", "are", "by", "be", "as", "on", "with"),
        *("can", "if", "from", "which", "you", "it", "this", "then", "at", "have", "all", "not", "one", "has", "or"),
    }
)
_IDF: Final = "analyse/idf.txt"
_CHINESE: Final = Path(__file__).with_name("traditional_chinese.tsv")
"""OpenCC's tables for tw2sp, version 1.4.2, normalised (NOTICE)."""
_LETTERS: Final = Path(__file__).with_name("letters.tsv")
_DECORATIONS: Final = Path(__file__).with_name("decorations.tsv")
_DICTIONARY: Final = "dict.txt"
# Everything by which jieba splits and weighs words: dictionary, HMM, IDF.
_FILES: Final = (
    _DICTIONARY,
    "finalseg/prob_start.py",
    "finalseg/prob_trans.py",
    "finalseg/prob_emit.py",
    _IDF,
)
_IDF_PIECE_BYTES: Final = 1 << 17
_IDF_MAX: Final = 1e6
_FREQUENCY_MAX: Final = 10**9


class WordFiles(NamedTuple):
    """The user's word files, each None if the user has none. Worker processes build their lexicon from them."""

    dictionary: Path | None = None
    stop_words: Path | None = None
    idf: Path | None = None


def load_lexicon(dictionary: Path | None = None, stop_words: Path | None = None, idf: Path | None = None) -> Lexicon:
    """Return the lexicon of jieba with the user's files. jieba's IDF table is read when the first word is weighed.

    ``dictionary`` adds words to jieba's: on each line a word, and optionally a frequency and a tag, which is ignored.
    ``stop_words`` (one per line) and ``idf`` (a word and a number per line) replace jieba's. Blank lines and the order
    of lines do not matter.

    Raises ``ModuleNotFoundError`` if jieba is not installed, ``OSError`` if a file cannot be read, and ``ValueError``
    if one of the user's files is invalid. Its message names the file, and the line unless an IDF table has no words.
    """
    folder = _jieba_folder()
    hasher = _jieba_hasher(folder).copy()
    stopped = STOP_WORDS if stop_words is None else _stop_words(stop_words)
    hasher.update("\n".join(sorted(stopped)).encode())
    own_words = () if dictionary is None else _own_words(dictionary)
    weights = None if idf is None else _idf(idf)
    # The user's files come last, so that without them the digest is the default one.
    if weights is not None:
        hasher.update(_section("idf", [f"{word} {weight!r}" for word, weight in sorted(weights.items())]))
    if dictionary is not None:
        hasher.update(_section("dictionary", [f"{word} {frequency}" for word, frequency in own_words]))
    return Lexicon(
        table=partial(_jieba_table, folder) if weights is None else partial(IdfTable, weights, _median(weights)),
        stop_words=stopped,
        digest=hasher.digest(),
        own_words=own_words,
        own_table=weights is not None,
        jieba_digest=_jieba_hasher(folder).digest(),
        chinese=_chinese_tables,
        letters=_letter_tables,
        decorations=_decoration_lists,
        names=partial(_names, folder),
    )


def _median(weights: Mapping[str, float]) -> float:
    """Return the median; of an even number of values, the greater of the middle two."""
    values = np.fromiter(weights.values(), np.float64, len(weights))
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def _section(name: str, lines: list[str]) -> bytes:
    return "\n".join(["", f"{name} {len(lines)}", *lines]).encode()


# The files of a package do not change while a process runs, so each is read once.
@cache
def _jieba_hasher(folder: Path) -> hashlib.blake2b:
    hasher = hashlib.blake2b(digest_size=16)
    for name in _FILES:
        content = (folder / name).read_bytes()
        hasher.update(f"{name} {len(content)}\n".encode())
        hasher.update(content)
    return hasher


@cache
def _jieba_table(folder: Path) -> IdfTable:
    weights: dict[str, float] = {}
    # Cached because the 270,132 lines have only 3,328 different numbers.
    number = cache(float)
    with (folder / _IDF).open("rb") as file:
        # In pieces, because splitting the whole file is slower and takes 40 MB more.
        while piece := file.read(_IDF_PIECE_BYTES) + file.readline():
            fields = iter(piece.decode().split())
            weights.update(zip(fields, map(number, fields), strict=True))
    return IdfTable(MappingProxyType(weights), _median(weights))


@cache
def _names(folder: Path) -> frozenset[str]:
    """Return the names of places, persons and institutions in jieba's dictionary, known by their tags."""
    lines = (line.split() for line in (folder / _DICTIONARY).read_text(encoding="utf-8").splitlines())
    tags = {word: tag for word, _, tag in lines}
    return frozenset(word for word, tag in tags.items() if tag.startswith(NAME_TAGS) and CUT_WHOLE.fullmatch(word))


@cache
def _chinese_tables() -> ChineseTables:
    """Return the tables for folding traditional Chinese; each line has a step, a phrase or character, and its form."""
    content = _CHINESE.read_bytes()
    steps: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for line in content.decode().splitlines():
        step, written, folded = line.split("\t")
        steps[int(step) - 1][written] = folded
    return ChineseTables(
        tuple(
            Step(
                phrases={written: folded for written, folded in forms.items() if len(written) > 1},
                characters={written: folded for written, folded in forms.items() if len(written) == 1},
            )
            for forms in steps
        ),
        hashlib.blake2b(content, digest_size=16).digest(),
    )


@cache
def _letter_tables() -> LetterTables:
    return LetterTables(_LETTERS.read_bytes())


@cache
def _decoration_lists() -> DecorationLists:
    return DecorationLists.of_file(_DECORATIONS.read_bytes())


def _stop_words(path: Path) -> frozenset[str]:
    """Return stop words both in lower case and normalised, so that every scheme finds them. Raises ``ValueError``."""
    stop_words: set[str] = set()
    for number, line in _lines(path):
        if len(line.split()) != 1:
            raise ValueError(f"{path}, line {number}: expected one stop word, not {line!r}")
        stop_words |= {line.lower(), normalise(line)}
    return frozenset(stop_words - {""})


def _idf(path: Path) -> dict[str, float]:
    weights: dict[str, float] = {}
    for number, line in _lines(path):
        fields = line.split()
        if len(fields) != 2:  # noqa: PLR2004 -- a word and a number
            raise ValueError(f"{path}, line {number}: expected a word and its IDF, not {line!r}")
        word, text = fields
        weight = _number(text)
        if not 0 < weight <= _IDF_MAX:
            raise ValueError(f"{path}, line {number}: an IDF is a number above 0 and up to 1000000, not {text!r}")
        if word in weights:
            raise ValueError(f"{path}, line {number}: {word!r} is already on an earlier line")
        weights[word] = weight
    if not weights:
        raise ValueError(f"{path} has no words; an IDF table needs at least one")
    return weights


def _number(text: str) -> float:
    try:
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan


def _own_words(path: Path) -> tuple[OwnWord, ...]:
    """Return the user's words, sorted, both as written and normalised, so that every scheme finds them."""
    own_words: dict[str, OwnWord] = {}
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        word, *rest = line.split()
        if not all(CUT_WHOLE.fullmatch(form) for form in (word, normalise(word))):
            raise ValueError(
                f"{where}: jieba never keeps {word!r} as one word; a word can only have ideographs from U+4E00 to "
                "U+9FD5, ASCII letters and digits, and + # & . _ % -"
            )
        own = OwnWord(word, _frequency(rest, where))
        for form in {word, normalise(word)}:
            if form in own_words:
                raise ValueError(f"{where}: {form!r} is already on an earlier line")
            own_words[form] = own._replace(word=form)
    return tuple(own_words[form] for form in sorted(own_words))


def _frequency(rest: list[str], where: str) -> int | None:
    """Return the frequency after a word, or None without one; an optional tag may follow."""
    is_number = bool(rest) and re.fullmatch("[0-9]+", rest[0]) is not None
    tags = rest[1:] if is_number else rest
    if len(tags) > 1 or any(re.fullmatch("[a-zA-Z]+", tag) is None for tag in tags):
        raise ValueError(f"{where}: expected a frequency and a tag after the word, not {' '.join(rest)!r}")
    if not is_number:
        return None
    frequency = int(rest[0][:20])
    if not 1 <= frequency <= _FREQUENCY_MAX:
        raise ValueError(f"{where}: a frequency is a number from 1 to 1000000000, not {rest[0]}")
    return frequency


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and stripped text of each line that is not blank. Raises ``ValueError`` if one is not UTF-8.

    A byte order mark is ignored.
    """
    for number, raw in enumerate(path.read_bytes().removeprefix(BOM_UTF8).split(b"\n"), 1):
        try:
            line = raw.decode().strip()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8") from error
        if line:
            yield number, line


def _jieba_folder() -> Path:
    spec = find_spec("jieba")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("jieba is not installed, but its dictionary and IDF table are needed", name="jieba")
    return Path(spec.submodule_search_locations[0])
