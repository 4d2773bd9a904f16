"""Texts as code points, and the hashes of their character shingles, in numpy, for a batch of texts.

What is computed from shingles (sketches, samples) or from the same characters (anchors) takes the chunks of
``hashed_chunks``, so that a text is read once for all of them.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.hashing import mix_64

SHINGLE_CJK: Final = 5
SHINGLE_OTHER: Final = 9
# Primary subtags (BCP 47) of the languages whose texts have the shorter shingles.
EAST_ASIAN: Final = frozenset({"zh", "yue", "wuu", "nan", "hak", "lzh", "ja", "ko"})
# From the CJK radicals on: Han, kana, bopomofo, Hangul and their extensions, up to emoji.
CJK_FROM: Final = 0x2E80
POLYNOMIAL_BASE: Final = 0x9E3779B97F4A7C15
PIECES_OVERLAP: Final = 64
"""By how many characters the pieces of a long text overlap: more than a shingle has, and than an anchor and its
neighbours have (``consumer.fingerprint.parts``), with the space that a piece may lose at either end."""
_SPACE: Final = 0x20
_SEPARATOR: Final = "\n"
# Code points processed at a time: arrays of this length stay in the processor's cache.
_CHUNK_CHARACTERS: Final = 1 << 16
_CHUNK_TEXTS: Final = 128
# For `re` a word character is the same as in `_word_table`.
_OTHER_THAN_WORD: Final = re.compile(r"\W+")


class Characters(NamedTuple):
    """Texts as code points, uint64, one after the other; runs of other than word characters are one space.

    Text t is at ``starts[t]:ends[t]``; ``rows`` has the number of the text of every code point, and ``is_cjk`` whether
    what begins there counts as Chinese, Japanese or Korean: a space counts as what follows it, so that punctuation in
    Chinese begins nothing that is long.
    """

    codes: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    is_cjk: npt.NDArray[np.bool_]


class HashedChunk(NamedTuple):
    """Some texts of a batch, or a piece of one that is long, with the hashes of their shingles.

    ``texts`` says which of the batch; the rows of ``characters`` count from the first of them. The shingle at
    ``positions[i]`` has the hash ``hashes[i]``. A piece begins at the ``offset``-th character of its text; the next one
    overlaps with it by ``PIECES_OVERLAP``, and ``is_last`` if there is none.
    """

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


def hashed_chunks(texts: Sequence[str], languages: Sequence[str] | None = None) -> Iterator[HashedChunk]:
    """Hash the shingles of normalised texts in chunks that stay in the cache; those of a text do not depend on others.

    ``languages`` are those that the texts declare (BCP 47, "" for none); None if no text declares one. Pieces of a text
    have all its shingles, those in which they overlap twice.
    """
    declared = np.array([declared_shingle(language) for language in languages or [""] * len(texts)], dtype=np.int64)
    start = 0
    while start < len(texts):
        chunk = slice(start, _chunk_end(texts, start))
        if len(texts[start]) > _CHUNK_CHARACTERS:
            for piece in _pieces(texts[start]):
                yield _hashed([piece.text], declared[chunk], chunk, piece)
        else:
            yield _hashed(texts[chunk], declared[chunk], chunk, _Piece("", 0, is_last=True))
        start = chunk.stop


def declared_shingle(language: str) -> int:
    """Return the length of all shingles of a text that declares this language, 0 if it declares none.

    Without a language the script of a shingle's first character decides on its length. Texts with shingles of different
    lengths share none, so that their similarity is 0.
    """
    if not language:
        return 0
    primary = language.replace("_", "-").partition("-")[0].casefold()
    return SHINGLE_CJK if primary in EAST_ASIAN else SHINGLE_OTHER


def _hashed(texts: Sequence[str], declared: npt.NDArray[np.int64], chunk: slice, piece: _Piece) -> HashedChunk:
    characters = _characters(texts)
    positions, hashes = _shingle_hashes(characters.codes, _shingle_lengths(characters, declared))
    return HashedChunk(chunk, characters, positions, hashes, piece.offset, piece.is_last)


def _chunk_end(texts: Sequence[str], start: int) -> int:
    """Return the end of the chunk that begins at ``start``; a text longer than a chunk is alone."""
    end, characters = start + 1, len(texts[start])
    while end < min(len(texts), start + _CHUNK_TEXTS) and characters + len(texts[end]) <= _CHUNK_CHARACTERS:
        characters += len(texts[end])
        end += 1
    return end


def _pieces(text: str) -> Iterator[_Piece]:
    """Cut a long text into texts that together have the same shingles."""
    piece, begins_at, is_first = "", 0, True
    for start in range(0, len(text), _CHUNK_CHARACTERS):
        stop = start + _CHUNK_CHARACTERS
        piece = _OTHER_THAN_WORD.sub(" ", piece + text[start:stop])
        is_last = stop >= len(text)
        # A piece that is too short would count as a text shorter than a shingle.
        if len(piece) > PIECES_OVERLAP or is_last:
            # A space at its beginning is dropped; the first piece has its first word character at 0.
            dropped = int(piece.startswith(" "))
            begins_at -= dropped * is_first
            yield _Piece(piece, begins_at + dropped, is_last)
            begins_at += max(len(piece) - PIECES_OVERLAP, 0)
            piece, is_first = piece[-PIECES_OVERLAP:], False


def _characters(texts: Sequence[str]) -> Characters:
    # The first character of a text follows a separator, which is not a word character, so that other than word
    # characters at its beginning are dropped. Of those at its end one space stays, outside `ends`.
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
    """Return for every code point whether it is a word character: a letter or digit to ``str.isalnum``, or ``_``."""
    characters = np.arange(0x110000, dtype=np.uint32).view("<U1")
    table = np.strings.isalnum(characters)
    table[ord("_")] = True
    return table


def _shingle_lengths(characters: Characters, declared: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the length of the shingle that begins at each code point, 0 for none."""
    codes, rows, starts, ends, is_cjk = characters
    by_script = np.where(is_cjk, SHINGLE_CJK, SHINGLE_OTHER)
    by_language = declared[rows]
    lengths = np.where(by_language > 0, by_language, by_script)
    lengths[np.arange(len(codes)) + lengths > ends[rows]] = 0
    shingles = np.bincount(rows, weights=lengths > 0, minlength=len(starts))
    whole = (shingles == 0) & (ends > starts)
    lengths[starts[whole]] = (ends - starts)[whole]
    return lengths


def _shingle_hashes(
    codes: npt.NDArray[np.uint64], lengths: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Hash all shingles; return their positions, in no particular order, and the hashes."""
    padded = np.concatenate((codes, np.zeros(SHINGLE_OTHER, dtype=np.uint64)))
    base = np.uint64(POLYNOMIAL_BASE)
    rolling = np.zeros(len(codes), dtype=np.uint64)
    positions, hashes = [], []
    for length in range(1, SHINGLE_OTHER + 1):
        rolling *= base
        rolling += padded[length - 1 : length - 1 + len(codes)]
        chosen = np.flatnonzero(lengths == length)
        if len(chosen):
            positions.append(chosen)
            hashes.append(rolling[chosen] + np.uint64(length))
    if not positions:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    return np.concatenate(positions), mix_64(np.concatenate(hashes))
