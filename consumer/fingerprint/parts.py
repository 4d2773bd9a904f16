"""Finds texts that share a long passage: anchors find them, and samples of shingles measure how much is shared.

**Anchors** are hashes of stretches of 36 characters (28 where only letters count), or of 20 if the stretch begins with
a CJK character. The length of a stretch depends on the stretch alone, so a paragraph has the same stretches wherever it
occurs, whatever the rest of the text and its declared language. The choice of anchors depends only on the text around
them:

1. A candidate is a stretch with a smaller hash than its eight neighbours on either side.
2. The reach of a candidate is the distance to the nearest candidate with a smaller hash. The ends of the text count as
   smaller, and so does an equal hash earlier in the text.
3. The candidates with the greatest reach are posted: one for each 62 stretches of the text, but at least 8 and at most
   16. The first 8 are looked up.

This is the local variant of winnowing (Schleimer, Wilkerson, Aiken, "Winnowing: Local Algorithms for Document
Fingerprinting", SIGMOD 2003). Its window is not fixed, but the one that leaves 16 anchors: the candidates that reach
farther than r are the minima of all windows of r stretches on either side. So the few anchors of a long text are among
the many of a short text with the same passage, and they are spread more evenly than the smallest hashes are.

**Samples** contain the shingles whose hash is divisible by 8 (mod sampling: Broder, "On the Resemblance and Containment
of Documents", SEQUENCES 1997). The share of a sample that occurs in another estimates the share of the text.
"""

from collections.abc import Sequence
from itertools import islice, pairwise
from struct import pack
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.hashing import mix_64
from consumer.fingerprint.shingles import WORDS, HashedChunk, Shingling, hashed_chunks

ANCHORS_POSTED: Final = 16
"""Maximum per text. Texts of up to 930 stretches post fewer: one per ``ANCHOR_SPACING``, but at least 8."""
ANCHORS_LOOKED_UP: Final = 8
ANCHOR_SPACING: Final = 62
NEIGHBOURS: Final = 8
"""The number of stretches on either side that a candidate is compared with.

The number is below the length of a stretch, so no neighbour is from another text of the batch.
"""
SAMPLED_ONE_IN: Final = 8
SAMPLE_MAX: Final = 1_024
"""The maximum number of hashes in a sample, which takes 4 KiB. Texts of about 8,000 characters reach it.

Of more hashes, the smallest are kept.
"""
_SAMPLE_BYTES: Final = 4
_NO_STRETCH: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_HASH_MAX: Final = 0xFFFFFFFF


class Parts(NamedTuple):
    """The anchors and the sample of each text; a text without a shingle has neither.

    Anchors have 8 bytes each, big-endian; the anchors to look up come first. The hashes of a sample have 4 bytes each,
    big-endian and ascending.
    """

    anchors: tuple[bytes, ...]
    samples: tuple[bytes, ...]


class Shares(NamedTuple):
    """The shares that a text has in common with each of n others.

    ``of_this`` float64[n]: the share of this text that each other text contains, from 0 to 1. ``of_that`` float64[n]:
    the share of each other text that this one contains. ``shared`` int64[n]: the number of common hashes behind these
    shares; each represents about 8 characters, more if a sample is cut.
    """

    of_this: npt.NDArray[np.float64]
    of_that: npt.NDArray[np.float64]
    shared: npt.NDArray[np.int64]


class PartsFinder:
    """A finder of anchors and samples for a batch of texts, chunk by chunk."""

    def __init__(self) -> None:
        self._anchors: list[bytes] = []
        self._samples: list[bytes] = []
        # The candidates and samples of a long text, until its last piece has been added.
        self._candidates: list[_Candidates] = []
        self._sampled: list[npt.NDArray[np.uint64]] = []
        self._decided = 0

    def add(self, chunk: HashedChunk) -> None:
        """Add a chunk. Chunks must be added in order."""
        self._sampled.append(_sampled(chunk))
        candidates, self._decided = _candidates(chunk, self._decided)
        self._candidates.append(candidates)
        if not chunk.is_last:
            return
        texts = chunk.texts.stop - chunk.texts.start
        self._samples += _samples(np.concatenate(self._sampled), texts)
        self._anchors += _anchors(self._candidates, texts)
        self._candidates, self._sampled, self._decided = [], [], 0

    def parts(self) -> Parts:
        """Return the anchors and samples, once all chunks have been added."""
        return Parts(tuple(self._anchors), tuple(self._samples))


def parts_batch(texts: Sequence[str], languages: Sequence[str] | None = None, shingling: Shingling = WORDS) -> Parts:
    """Return the anchors and samples of normalised texts; each is independent of the others in the batch.

    ``languages`` are declared by the texts (BCP 47, or "" for none). They affect samples, which have the shingles of
    sketches, but not anchors.
    """
    finder = PartsFinder()
    for chunk in hashed_chunks(texts, languages, shingling):
        finder.add(chunk)
    return finder.parts()


def anchors_max(stretches: int) -> int:
    """Return the limit on the anchors of a text with this many stretches."""
    return min(max(-(-stretches // ANCHOR_SPACING), ANCHORS_LOOKED_UP), ANCHORS_POSTED)


def unpacked_anchors(packed: bytes) -> npt.NDArray[np.uint64]:
    """Return the anchors of a text as numbers, uint64[at most 16], the anchors to look up first."""
    return np.frombuffer(packed, dtype=">u8").astype(np.uint64)


def unpacked_sample(packed: bytes) -> npt.NDArray[np.uint32]:
    """Return the hashes of a sample, uint32[at most 1,024], ascending."""
    return np.frombuffer(packed, dtype=">u4").astype(np.uint32)


def shares(
    this: npt.NDArray[np.uint32], that: npt.NDArray[np.uint32], common: npt.NDArray[np.uint32]
) -> tuple[float, float]:
    """Return the estimated share of this text in that one, and of that text in this one; see ``shares_of_many``."""
    of_this, of_that, _ = shares_of_many(this, [that], common)
    return float(of_this[0]), float(of_that[0])


def shares_of_many(
    this: npt.NDArray[np.uint32], those: Sequence[npt.NDArray[np.uint32]], common: npt.NDArray[np.uint32]
) -> Shares:
    """Return the shares that a text has in common with each of ``those``, estimated from their samples.

    Hashes in ``common``, which must be ascending, are ignored in all texts; shares are 0 if no hash is left. A cut
    sample has no hashes beyond its last one, so two texts are compared up to there. With n hashes of a text, the
    standard error of its share p is about √(p (1 − p) / n): for example 0.05 for one half of 800 characters.
    """
    lasts = np.array([min(_last_complete_hash(this), _last_complete_hash(that)) for that in those], dtype=np.uint32)
    own = this[~_is_in(this, common)]
    theirs = np.concatenate((*those, np.zeros(0, dtype=np.uint32)))
    owners = np.repeat(np.arange(len(those)), np.array([len(that) for that in those], dtype=np.int64))
    counts = (theirs <= lasts[owners]) & ~_is_in(theirs, common)
    shared = np.bincount(owners[counts & _is_in(theirs, own)], minlength=len(those))
    of_this = shared / np.maximum(np.searchsorted(own, lasts, side="right"), 1)
    of_that = shared / np.maximum(np.bincount(owners[counts], minlength=len(those)), 1)
    return Shares(of_this, of_that, shared)


def _last_complete_hash(sample: npt.NDArray[np.uint32]) -> int:
    """Return the hash up to which a sample is complete."""
    return int(sample[-1]) if len(sample) >= SAMPLE_MAX else _HASH_MAX


def _is_in(values: npt.NDArray[np.uint32], ascending: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.searchsorted(ascending, values)
    is_in: npt.NDArray[np.bool_] = ascending[np.minimum(places, len(ascending) - 1)] == values
    return is_in


class _Candidates(NamedTuple):
    """Candidates, ascending by text and place. Those of text t have the row t, and places before ``ends[t]``."""

    rows: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.int64]


def _sampled(chunk: HashedChunk) -> npt.NDArray[np.uint64]:
    """Return the sampled hashes of a chunk, mixed to 32 bits, with the rows of their texts in the bits above."""
    chosen = np.flatnonzero(chunk.hashes & np.uint64(SAMPLED_ONE_IN - 1) == 0)
    rows = chunk.characters.rows[chunk.positions[chosen]].astype(np.uint64)
    return rows << np.uint64(32) | mix_64(chunk.hashes[chosen]) >> np.uint64(32)


def _samples(sampled: npt.NDArray[np.uint64], texts: int) -> list[bytes]:
    # Sorting and comparing neighbours is faster than np.unique, which hashes.
    ascending = np.sort(sampled)
    distinct = ascending[np.concatenate(([True], ascending[1:] != ascending[:-1]))[: len(ascending)]]
    starts = np.searchsorted(distinct, np.arange(texts + 1, dtype=np.uint64) << np.uint64(32)).tolist()
    packed = (distinct & np.uint64(_HASH_MAX)).astype(">u4").tobytes()
    return [
        packed[_SAMPLE_BYTES * start : _SAMPLE_BYTES * min(stop, start + SAMPLE_MAX)]
        for start, stop in pairwise(starts)
    ]


def _stretch_hashes(chunk: HashedChunk) -> npt.NDArray[np.uint64]:
    """Return the hash of the stretch that begins at each code point, ``_NO_STRETCH`` where none fits."""
    codes, rows, _, ends, is_cjk = chunk.characters
    shingling = chunk.shingling
    lengths = np.where(is_cjk, shingling.stretch_cjk, shingling.stretch_other)
    short, long = _polynomials(codes, shingling.base, (shingling.stretch_cjk, shingling.stretch_other))
    hashes = shingling.finish(np.where(is_cjk, short, long) + lengths.astype(np.uint64))
    hashes[np.arange(len(codes)) + lengths > ends[rows]] = _NO_STRETCH
    return hashes


def _polynomials(codes: npt.NDArray[np.uint64], base: int, lengths: tuple[int, int]) -> list[npt.NDArray[np.uint64]]:
    """Return, for each length, the polynomials of that many characters from each position.

    Polynomials that reach beyond the last code are wrong. A length is composed of powers of two, the greatest first.
    """
    powers = [codes]
    while 2 << len(powers) - 1 <= max(lengths):
        size = 1 << len(powers) - 1
        powers.append(_concatenate(powers[-1], powers[-1], size, size, base))
    polynomials = []
    for length in lengths:
        joined, done = powers[length.bit_length() - 1], 1 << length.bit_length() - 1
        for power in reversed(range(length.bit_length() - 1)):
            if length >> power & 1:
                joined = _concatenate(joined, powers[power], done, 1 << power, base)
                done += 1 << power
        polynomials.append(joined)
    return polynomials


def _concatenate(
    heads: npt.NDArray[np.uint64], tails: npt.NDArray[np.uint64], head: int, tail: int, base: int
) -> npt.NDArray[np.uint64]:
    """Return the polynomials of ``head`` characters and the ``tail`` characters after them.

    Polynomials that reach beyond the last code are wrong.
    """
    joined = heads * np.uint64(pow(base, tail, 1 << 64))
    joined[:-head] += tails[head:]
    return joined


def _candidates(chunk: HashedChunk, decided: int) -> tuple[_Candidates, int]:
    """Return the candidates of a chunk, and the place in its text up to which candidates are decided.

    Earlier pieces of a long text have decided up to the place ``decided``. A piece leaves a stretch to the next piece
    if it does not contain all neighbours of the stretch.
    """
    hashes = _stretch_hashes(chunk)
    length = len(hashes)
    padded = np.full(length + 2 * NEIGHBOURS, _NO_STRETCH)
    padded[NEIGHBOURS : NEIGHBOURS + length] = hashes
    two = np.minimum(padded[:-1], padded[1:])
    four = np.minimum(two[:-2], two[2:])
    eight = np.minimum(four[:-4], four[4:])
    # Of equal hashes the first is a candidate. Where no stretch fits, the hash is never smaller than its neighbours.
    chosen = np.flatnonzero((hashes < eight[:length]) & (hashes <= eight[NEIGHBOURS + 1 : NEIGHBOURS + 1 + length]))
    _, rows, starts, ends, _ = chunk.characters
    fitting = np.flatnonzero(hashes != _NO_STRETCH)
    stops = fitting[np.searchsorted(fitting, ends) - 1] + 1 if len(fitting) else ends
    begins, stop = chunk.offset - starts, int(ends[-1]) + chunk.offset
    places = chosen + begins[rows[chosen]]
    if not chunk.is_last:
        stop -= NEIGHBOURS + chunk.shingling.stretch_other - 1
    is_due = (places >= decided) & ((places < stop) | chunk.is_last)
    return _Candidates(rows[chosen][is_due], places[is_due], hashes[chosen][is_due], stops + begins), stop


def _anchors(pieces: Sequence[_Candidates], texts: int) -> list[bytes]:
    """Return the anchors of each text, given the candidates of a chunk, or of all pieces of a text."""
    rows = np.concatenate([piece.rows for piece in pieces])
    places = np.concatenate([piece.places for piece in pieces])
    hashes = np.concatenate([piece.hashes for piece in pieces])
    cuts = np.searchsorted(rows, np.arange(texts + 1)).tolist()
    reaches: list[int] = []
    reaching: list[int] = []
    ends = pieces[-1].ends.tolist()
    for (start, stop), end in zip(pairwise(cuts), ends, strict=True):
        text_reaches, text_hashes = _reaches(places[start:stop].tolist(), hashes[start:stop].tolist(), end)
        reaches += text_reaches
        reaching += text_hashes
    hashes = np.array(reaching, dtype=np.uint64)
    ranked = hashes[np.lexsort((hashes, -np.array(reaches, dtype=np.int64), rows))].tolist()
    return [
        _packed_anchors(ranked[start:stop], anchors_max(end))
        for (start, stop), end in zip(pairwise(cuts), ends, strict=True)
    ]


def _reaches(places: Sequence[int], hashes: Sequence[int], end: int) -> tuple[list[int], list[int]]:
    """Return the distance from each candidate of a text to the nearest one with a smaller hash, or to an end.

    Also returns the hashes of the candidates, which are not in the order of the text: a candidate comes once a smaller
    one follows.
    """
    reaches, reaching = [], []
    # Candidates not yet followed by a smaller one, ascending by hash: hash, place, distance to the previous entry. The
    # first entry stands just before the text, and its hash is below all others.
    open_candidates = [(-1, -1, 0)]
    for place, value in zip(places, hashes, strict=True):
        last, at, back = open_candidates[-1]
        while last > value:
            open_candidates.pop()
            ahead = place - at
            reaches.append(back if back < ahead else ahead)  # noqa: FURB136  # min() would take half of the total time
            reaching.append(last)
            last, at, back = open_candidates[-1]
        open_candidates.append((value, place, place - at))
    reaches += [min(back, end - at) for _, at, back in open_candidates[1:]]
    reaching += [last for last, _, _ in open_candidates[1:]]
    return reaches, reaching


def _packed_anchors(ranked: Sequence[int], count_max: int) -> bytes:
    """Return the first ``count_max`` distinct hashes, packed."""
    kept = list(islice(dict.fromkeys(ranked), count_max))
    return pack(f">{len(kept)}Q", *kept)
