"""Computes code points of texts, and the hashes of their character shingles, in numpy, for a batch of texts.

Sketches, samples and anchors are all computed from the chunks of ``hashed_chunks``, so that each text is read once. A
``Shingling`` says which characters count, how long a shingle is, and how it is hashed. ``WORDS`` is for schemes that
compare words, ``of_letters`` for those that compare letters, with a secret.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.hashing import mix_64, siphash_13
from consumer.fingerprint.secret import HashKey

SHINGLE_CJK: Final = 5
SHINGLE_OTHER: Final = 9
STRETCH_CJK: Final = 20
STRETCH_OTHER: Final = 36
LETTERS_SHINGLE_CJK: Final = 6
LETTERS_SHINGLE_OTHER: Final = 7
"""Seven letters correspond to nine characters of words with spaces.

For Chinese and Japanese, shingles of 6 letters found 159 reposts, those of 5 found 154 and those of 4 found 147, with
equally many wrong flags.
"""
LETTERS_STRETCH_CJK: Final = 20
LETTERS_STRETCH_OTHER: Final = 28
# Primary subtags (BCP 47) of the languages with shorter shingles.
EAST_ASIAN: Final = frozenset({"zh", "yue", "wuu", "nan", "hak", "lzh", "ja", "ko"})
# From the CJK radicals on: Han, kana, bopomofo, Hangul and their extensions, up to emoji.
CJK_FROM: Final = 0x2E80
POLYNOMIAL_BASE: Final = 0x9E3779B97F4A7C15
PIECES_OVERLAP: Final = 64
"""The overlap, in characters, of the pieces of a long text.

It is longer than a shingle, and than an anchor with its neighbours (``consumer.fingerprint.parts``), plus the space
that a piece may lose at either end.
"""
_SPACE: Final = 0x20
_SEPARATOR: Final = "\n"
# The number of code points processed together: few enough for arrays to stay in the processor's cache.
_CHUNK_CHARACTERS: Final = 1 << 16
_CHUNK_TEXTS: Final = 128
# The word characters of `re` are those of `_word_table`.
_NON_WORD: Final = re.compile(r"\W+")


class Shingling(NamedTuple):
    """The rule by which shingles, and the longer stretches of anchors, are cut from texts and hashed.

    Lengths are in characters: ``cjk`` and ``stretch_cjk`` where the first character is a CJK character, ``other`` and
    ``stretch_other`` for the rest. In ``spaced`` texts word characters count, and each run of other characters counts
    as a space. Other texts are sequences of letters, which all count, whatever their language. A hash is the polynomial
    of the characters with this ``base``, plus their number, passed to ``finish``.
    """

    cjk: int
    other: int
    stretch_cjk: int
    stretch_other: int
    spaced: bool
    base: int
    finish: Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.uint64]]


WORDS: Final = Shingling(
    SHINGLE_CJK, SHINGLE_OTHER, STRETCH_CJK, STRETCH_OTHER, spaced=True, base=POLYNOMIAL_BASE, finish=mix_64
)


def of_letters(key: HashKey) -> Shingling:
    """Return the shingling for schemes that compare letters, hashed with this key."""
    return Shingling(
        LETTERS_SHINGLE_CJK,
        LETTERS_SHINGLE_OTHER,
        LETTERS_STRETCH_CJK,
        LETTERS_STRETCH_OTHER,
        spaced=False,
        base=key.base,
        finish=partial(siphash_13, first=key.first, second=key.second),
    )


class Characters(NamedTuple):
    """Texts as concatenated code points, uint64; in spaced texts each run of non-word characters is one space.

    Text t is at ``starts[t]:ends[t]``. ``rows`` has the number of each code point's text. ``is_cjk`` says whether a
    shingle that begins there counts as Chinese, Japanese or Korean; a space counts as the character after it, so that
    punctuation in Chinese does not begin a long shingle.
    """

    codes: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    is_cjk: npt.NDArray[np.bool_]


class HashedChunk(NamedTuple):
    """Some texts of a batch, or a piece of a long text, with the hashes of their shingles.

    ``texts`` are the places of the texts in the batch. The rows of ``characters`` count from the first of these texts.
    The shingle at ``positions[i]`` has the hash ``hashes[i]``, by ``shingling``. A piece begins at the ``offset``-th
    character of its text; the next piece overlaps it by ``PIECES_OVERLAP``, unless it ``is_last``.
    """

    shingling: Shingling
    texts: slice
    characters: Characters
    positions: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    offset: int
    is_last: bool


class _Piece(NamedTuple):
    text: str
    offset: int
    is_last: bool


def hashed_chunks(
    texts: Sequence[str], languages: Sequence[str] | None = None, shingling: Shingling = WORDS
) -> Iterator[HashedChunk]:
    """Yield the hashed shingles of normalised texts, in chunks that fit in the cache; texts are independent.

    ``languages`` has the language that each text declares (BCP 47, or "" for none); None if no text declares one.
    Together, the pieces of a text have all its shingles. Shingles in overlaps occur twice.
    """
    relevant = languages if languages is not None and shingling.spaced else [""] * len(texts)
    declared = np.array([declared_shingle_length(language) for language in relevant], dtype=np.int64)
    start = 0
    while start < len(texts):
        chunk = slice(start, _chunk_end(texts, start))
        if len(texts[start]) > _CHUNK_CHARACTERS:
            for piece in _pieces(texts[start]) if shingling.spaced else _pieces_of_letters(texts[start]):
                yield _hashed_chunk([piece.text], declared[chunk], chunk, piece, shingling)
        else:
            yield _hashed_chunk(texts[chunk], declared[chunk], chunk, _Piece("", 0, is_last=True), shingling)
        start = chunk.stop


def declared_shingle_length(language: str) -> int:
    """Return the length of all shingles of a text that declares this language, or 0 if it declares none.

    Without a language, the script of a shingle's first character decides the shingle's length. Texts with shingles of
    different lengths share no shingle, so their similarity is 0.
    """
    if not language:
        return 0
    primary = language.replace("_", "-").partition("-")[0].casefold()
    return SHINGLE_CJK if primary in EAST_ASIAN else SHINGLE_OTHER


def _hashed_chunk(
    texts: Sequence[str], declared: npt.NDArray[np.int64], chunk: slice, piece: _Piece, shingling: Shingling
) -> HashedChunk:
    characters = _characters(texts) if shingling.spaced else _letters(texts)
    lengths = _shingle_lengths(characters, declared, shingling)
    positions, hashes = _shingle_hashes(characters.codes, lengths, shingling)
    return HashedChunk(shingling, chunk, characters, positions, hashes, piece.offset, piece.is_last)


def _chunk_end(texts: Sequence[str], start: int) -> int:
    """Return the end of the chunk that begins at ``start``; a text longer than a chunk gets its own."""
    end, characters = start + 1, len(texts[start])
    while end < min(len(texts), start + _CHUNK_TEXTS) and characters + len(texts[end]) <= _CHUNK_CHARACTERS:
        characters += len(texts[end])
        end += 1
    return end


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield pieces of a long text that together have the same shingles as the text."""
    piece, begins_at, is_first = "", 0, True
    for start in range(0, len(text), _CHUNK_CHARACTERS):
        stop = start + _CHUNK_CHARACTERS
        piece = _NON_WORD.sub(" ", piece + text[start:stop])
        is_last = stop >= len(text)
        # A shorter piece could count as a text shorter than a shingle.
        if len(piece) > PIECES_OVERLAP or is_last:
            # A leading space is dropped; the first word character of the first piece is at 0.
            dropped = int(piece.startswith(" "))
            begins_at -= dropped * is_first
            yield _Piece(piece, begins_at + dropped, is_last)
            begins_at += max(len(piece) - PIECES_OVERLAP, 0)
            piece, is_first = piece[-PIECES_OVERLAP:], False


def _pieces_of_letters(text: str) -> Iterator[_Piece]:
    for start in range(0, len(text), _CHUNK_CHARACTERS):
        stop = start + _CHUNK_CHARACTERS
        begin = max(start - PIECES_OVERLAP, 0)
        yield _Piece(text[begin:stop], begin, is_last=stop >= len(text))


def _letters(texts: Sequence[str]) -> Characters:
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    ends = np.cumsum(lengths)
    rows = np.repeat(np.arange(len(texts)), lengths)
    return Characters(codes, rows, ends - lengths, ends, codes >= np.uint64(CJK_FROM))


def _characters(texts: Sequence[str]) -> Characters:
    # The first character of a text follows a separator, which is not a word character, so leading non-word characters
    # are dropped. Trailing ones leave one space, outside `ends`.
    joined = "".join(f"{text}{_SEPARATOR}" for text in texts)
    codes = np.frombuffer(joined.encode("utf-32-le"), dtype="<u4")
    is_word = _word_table()[codes]
    keep = is_word.copy()
    keep[1:] |= is_word[:-1]
    separators = np.cumsum([len(text) + 1 for text in texts]) - 1
    stops = np.cumsum(keep)[separators]
    starts = np.concatenate(([0], stops[:-1]))
    kept = np.where(is_word, codes, np.uint32(_SPACE))[keep].astype(np.uint64)
    rows = np.repeat(np.arange(len(texts)), stops - starts)
    is_cjk = kept >= np.uint64(CJK_FROM)
    is_cjk[:-1] |= (kept[:-1] == np.uint64(_SPACE)) & is_cjk[1:]
    return Characters(kept, rows, starts, np.maximum(stops - 1, starts), is_cjk)


@cache
def _word_table() -> npt.NDArray[np.bool_]:
    """Return whether each code point is a word character: ``str.isalnum``, or ``_``."""
    characters = np.arange(0x110000, dtype=np.uint32).view("<U1")
    table = np.strings.isalnum(characters)
    table[ord("_")] = True
    return table


def _shingle_lengths(
    characters: Characters, declared: npt.NDArray[np.int64], shingling: Shingling
) -> npt.NDArray[np.int64]:
    """Return the length of the shingle that begins at each code point, 0 where none begins.

    A text that is too short for a shingle is one shingle as a whole.
    """
    codes, rows, starts, ends, is_cjk = characters
    by_script = np.where(is_cjk, shingling.cjk, shingling.other)
    by_language = declared[rows]
    lengths = np.where(by_language > 0, by_language, by_script)
    lengths[np.arange(len(codes)) + lengths > ends[rows]] = 0
    shingles = np.bincount(rows, weights=lengths > 0, minlength=len(starts))
    whole = (shingles == 0) & (ends > starts)
    lengths[starts[whole]] = (ends - starts)[whole]
    return lengths


def _shingle_hashes(
    codes: npt.NDArray[np.uint64], lengths: npt.NDArray[np.int64], shingling: Shingling
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return the positions of all shingles, in no particular order, and their hashes."""
    padded = np.concatenate((codes, np.zeros(shingling.other, dtype=np.uint64)))
    base = np.uint64(shingling.base)
    rolling = np.zeros(len(codes), dtype=np.uint64)
    positions, hashes = [], []
    for length in range(1, shingling.other + 1):
        rolling *= base
        rolling += padded[length - 1 : length - 1 + len(codes)]
        chosen = np.flatnonzero(lengths == length)
        if len(chosen):
            positions.append(chosen)
            hashes.append(rolling[chosen] + np.uint64(length))
    if not positions:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    return np.concatenate(positions), shingling.finish(np.concatenate(hashes))
