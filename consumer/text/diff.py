"""The differences between two texts, in bounded time and memory.

The result always covers both texts from end to end. Equal text at both ends costs almost nothing. If little text is
left between the ends, the third of these methods alone aligns it. Longer text is aligned by the first method or, if
that fails, by the other two:

1. *few edits*: the greedy algorithm of Myers (1986), if the texts are at most ``EDITS_MAX`` tokens apart;
2. *anchors*: matching runs of tokens that occur once in each text, as in a patience diff;
3. *exact*: a longest common subsequence of each gap between anchors, bit-parallel (Hyyro 2004), smallest gaps first,
   until ``CELLS_MAX`` pairs of tokens have been compared. Gaps beyond that are reported as not compared.

Decision 0038 compares this with other algorithms.
"""

import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

EDITS_MAX: Final = 150
"""The maximum number of inserted and deleted tokens for the first method. The work grows with its square."""
CELLS_MAX: Final = 200_000_000
"""The maximum number of pairs of tokens compared in all gaps. A pair takes an eighth of a byte and a nanosecond."""
_ANCHOR_TOKENS: Final = (24, 6)
"""Lengths of the runs to match: long ones in the whole text, shorter ones in the gaps between them."""
_EXACT_CELLS_MAX: Final = 250_000
"""Gaps of up to this many pairs of tokens are aligned exactly without anchors, in a millisecond."""
_RUNS_SAMPLED_MAX: Final = 50_000
"""At most about this many runs of a text are looked up. Of a longer text, this is a sample."""
_TOKEN: Final = re.compile(r"[0-9A-Za-z_]+|\s+|.", re.DOTALL)
_TOKENS_MAX: Final = sys.maxunicode
_BASE: Final = np.uint64(0x9E3779B97F4A7C15)
_RUN_STEP: Final = 32
_BYTE_BITS: Final = 8
_SHORT_ROW: Final = 8192

Kind = Literal["equal", "changed", "moved", "not compared"]


class Stretch(NamedTuple):
    """A stretch of the texts A and B, with its text ``a`` in A and ``b`` in B.

    ``at_a`` and ``at_b`` are the offsets of these texts in characters. A stretch that was not compared may have equal
    text in A and B. Only ``moves`` produces moved stretches.
    """

    kind: Kind
    at_a: int
    a: str
    at_b: int
    b: str


class _Range(NamedTuple):
    """Tokens ``a0`` to ``a1`` of A, and tokens ``b0`` to ``b1`` of B."""

    a0: int
    a1: int
    b0: int
    b1: int

    @property
    def cells(self) -> int:
        return (self.a1 - self.a0) * (self.b1 - self.b0)


class _Block(NamedTuple):
    """A block of ``size`` equal tokens, from ``a`` on in A and from ``b`` on in B."""

    a: int
    b: int
    size: int


class TextPair(NamedTuple):
    """Two texts as strings with one character per token, so that runs are compared at memory speed."""

    a: str
    b: str

    def prefix(self, a: int, b: int, limit: int) -> int:
        """Return the number of equal tokens after these places, up to ``limit``."""
        return _run_length(limit, lambda start, end: self.a[a + start : a + end] == self.b[b + start : b + end])

    def suffix(self, a: int, b: int, limit: int) -> int:
        """Return the number of equal tokens before these places, up to ``limit``."""
        return _run_length(limit, lambda start, end: self.a[a - end : a - start] == self.b[b - end : b - start])


def _run_length(limit: int, is_equal: Callable[[int, int], bool]) -> int:
    """Return the length of the equal run, up to ``limit``: double the step until the texts differ, then bisect."""
    done, step = 0, _RUN_STEP
    while done < limit:
        size = min(step, limit - done)
        if is_equal(done, done + size):
            done, step = done + size, 2 * step
        elif size == 1:
            break
        else:
            limit, step = done + size - 1, max(size // 2, 1)
    return done


def difference(a: str, b: str) -> list[Stretch]:
    """Return the stretches that are equal, changed or not compared, in order. Together they cover both texts."""
    left, right = _TOKEN.findall(a), _TOKEN.findall(b)
    distinct = dict.fromkeys(left) | dict.fromkeys(right)
    if len(distinct) > _TOKENS_MAX:
        # There are more distinct words than characters to represent them, so use characters as tokens.
        left, right = list(a), list(b)
        pair = TextPair(a, b)
    else:
        codes = dict(zip(distinct, map(chr, range(len(distinct))), strict=True))
        pair = TextPair("".join(map(codes.__getitem__, left)), "".join(map(codes.__getitem__, right)))
    blocks, skipped = _align(pair)
    return list(_stretches(left, right, blocks, skipped))


def _align(pair: TextPair) -> tuple[list[_Block], set[_Range]]:
    """Return the equal blocks in order, and the gaps that were not compared."""
    blocks: list[_Block] = []
    whole = _trimmed(pair, _Range(0, len(pair.a), 0, len(pair.b)), blocks)
    gaps = [whole]
    if whole.cells > _EXACT_CELLS_MAX:
        alignment = _few_edits(pair, whole)
        if alignment is not None:
            blocks += alignment
            gaps = []
    for size in _ANCHOR_TOKENS:
        gaps = [gap for wide in gaps for gap in _between_anchors(pair, wide, size, blocks)]
    left, skipped = CELLS_MAX, set()
    for gap in sorted(gaps, key=lambda gap: gap.cells):
        if gap.cells <= left:
            left -= gap.cells
            blocks += _exact(pair, gap)
        else:
            skipped.add(gap)
    return sorted(blocks), skipped


def _trimmed(pair: TextPair, wide: _Range, blocks: list[_Block]) -> _Range:
    """Return the range without the equal tokens at its ends, which are added to ``blocks``."""
    a0, a1, b0, b1 = wide
    first = pair.prefix(a0, b0, min(a1 - a0, b1 - b0))
    a0, b0 = a0 + first, b0 + first
    last = pair.suffix(a1, b1, min(a1 - a0, b1 - b0))
    blocks += [_Block(a0 - first, b0 - first, first)] if first else []
    blocks += [_Block(a1 - last, b1 - last, last)] if last else []
    return _Range(a0, a1 - last, b0, b1 - last)


def _few_edits(pair: TextPair, wide: _Range) -> list[_Block] | None:
    """Return the alignment with the fewest insertions and deletions, or None if it has more than ``EDITS_MAX``."""
    a0, a1, b0, b1 = wide
    reached = {1: 0}
    """The farthest place in A that a path has reached, by diagonal (place in A minus place in B)."""
    trail: list[dict[int, int]] = []
    for edits in range(EDITS_MAX + 1):
        trail.append(reached)
        reached = dict(reached)
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and reached.get(diagonal - 1, -1) < reached.get(diagonal + 1, -1)
            )
            x = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
            y = x - diagonal
            if x > a1 - a0 or y > b1 - b0:
                reached[diagonal] = x
                continue
            x += pair.prefix(a0 + x, b0 + y, min(a1 - a0 - x, b1 - b0 - y))
            reached[diagonal] = x
            if x == a1 - a0 and x - diagonal == b1 - b0:
                return _backtrack(trail, wide)
    return None


def _backtrack(trail: Sequence[dict[int, int]], wide: _Range) -> list[_Block]:
    """Return the blocks on the path that ``_few_edits`` found."""
    x, y = wide.a1 - wide.a0, wide.b1 - wide.b0
    blocks: list[_Block] = []
    for edits in range(len(trail) - 1, -1, -1):
        reached, diagonal = trail[edits], x - y
        down = diagonal == -edits or (
            diagonal != edits and reached.get(diagonal - 1, -1) < reached.get(diagonal + 1, -1)
        )
        before = diagonal + 1 if down else diagonal - 1
        from_x = reached[before]
        size = x - from_x - (not down)
        if size:
            blocks.append(_Block(wide.a0 + x - size, wide.b0 + y - size, size))
        x, y = from_x, from_x - before
    return blocks


def _between_anchors(pair: TextPair, wide: _Range, size: int, blocks: list[_Block]) -> Iterator[_Range]:
    """Yield the gaps between matching runs of ``size`` tokens; the matches are added to ``blocks``."""
    if wide.cells <= _EXACT_CELLS_MAX or min(wide.a1 - wide.a0, wide.b1 - wide.b0) < size:
        yield wide
        return
    a, b = wide.a0, wide.b0
    for anchor_a, anchor_b in _anchors(pair, wide, size):
        if anchor_a < a or anchor_b < b:
            continue
        equal = pair.prefix(anchor_a, anchor_b, min(wide.a1 - anchor_a, wide.b1 - anchor_b))
        blocks.append(_Block(anchor_a, anchor_b, equal))
        yield _trimmed(pair, _Range(a, anchor_a, b, anchor_b), blocks)
        a, b = anchor_a + equal, anchor_b + equal
    yield _trimmed(pair, _Range(a, wide.a1, b, wide.b1), blocks)


def _anchors(pair: TextPair, wide: _Range, size: int) -> Iterator[tuple[int, int]]:
    """Yield the places of runs of ``size`` tokens that occur once in each text, ascending in both."""
    sampled = 1 + max(wide.a1 - wide.a0, wide.b1 - wide.b0) // _RUNS_SAMPLED_MAX
    at_a = _single_runs(pair.a[wide.a0 : wide.a1], size, sampled)
    at_b = _single_runs(pair.b[wide.b0 : wide.b1], size, sampled)
    _, in_a, in_b = np.intersect1d(at_a[0], at_b[0], assume_unique=True, return_indices=True)
    places_a, places_b = at_a[1][in_a], at_b[1][in_b]
    order = np.argsort(places_a)
    places_a, places_b = places_a[order], places_b[order]
    for index in _rising(places_b.tolist()):
        a, b = wide.a0 + int(places_a[index]), wide.b0 + int(places_b[index])
        # Different runs may have the same hash.
        if pair.a[a : a + size] == pair.b[b : b + size]:
            yield a, b


def _single_runs(text: str, size: int, sampled: int) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return the ascending hashes of runs that occur once, and their places. About one run in ``sampled`` is used."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64) + np.uint64(1)
    count = len(codes) - size + 1
    hashes = np.zeros(count, np.uint64)
    for place in range(size):
        hashes = hashes * _BASE + codes[place : place + count]
    # The low bits of such a product depend on few of the tokens.
    hashes ^= hashes >> np.uint64(29)
    # Sampling depends on hashes alone, so both texts sample the same runs.
    places = (hashes % np.uint64(sampled) == 0).nonzero()[0]
    distinct, first, counts = np.unique(hashes[places], return_index=True, return_counts=True)
    return distinct[counts == 1], places[first[counts == 1]]


def _rising(values: Sequence[int]) -> list[int]:
    """Return the places of a longest increasing subsequence."""
    ends: list[int] = []
    end_places: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        length = len(ends) if not ends or value > ends[-1] else bisect_left(ends, value)
        before.append(end_places[length - 1] if length else -1)
        if length == len(ends):
            ends.append(value)
            end_places.append(place)
        else:
            ends[length], end_places[length] = value, place
    chosen = []
    place = end_places[-1] if end_places else -1
    while place >= 0:
        chosen.append(place)
        place = before[place]
    return chosen[::-1]


def _exact(pair: TextPair, gap: _Range) -> list[_Block]:
    """Return a longest common subsequence of a gap, as blocks of one token."""
    a, b = pair.a[gap.a0 : gap.a1], pair.b[gap.b0 : gap.b1]
    if not a or not b:
        return []
    swapped = len(a) > len(b)
    matches = _subsequence(b, a) if swapped else _subsequence(a, b)
    return [_Block(gap.a0 + (y if swapped else x), gap.b0 + (x if swapped else y), 1) for x, y in matches]


def _subsequence(a: str, b: str) -> Iterator[tuple[int, int]]:
    """Yield the matches of a longest common subsequence, from the last to the first; ``a`` is the shorter text.

    Each row has a bit for each token of ``b``: 0 where the subsequence becomes longer. See Hyyro, "Bit-parallel LCS-
    length computation revisited", 2004.
    """
    masks = _masks(a, b)
    width = (len(b) + _BYTE_BITS - 1) // _BYTE_BITS
    full = (1 << len(b)) - 1
    row = full
    rows: list[bytes] = []
    for token in a:
        common = row & masks[token]
        row = ((row + common) | (row - common)) & full
        rows.append(row.to_bytes(width, "little"))
    x, y = len(a), len(b)
    while x and y:
        byte, bit = (y - 1) // _BYTE_BITS, 1 << (y - 1) % _BYTE_BITS
        if rows[x - 1][byte] & bit:
            y -= 1
        elif x > 1 and not rows[x - 2][byte] & bit:
            x -= 1
        else:
            x, y = x - 1, y - 1
            yield x, y


def _masks(a: str, b: str) -> dict[str, int]:
    """Return the places of each token of ``a`` in ``b``, as bits."""
    if len(b) <= _SHORT_ROW:
        masks = dict.fromkeys(a, 0)
        for place, token in enumerate(b):
            if token in masks:
                masks[token] |= 1 << place
        return masks
    codes = np.frombuffer(b.encode("utf-32-le", "surrogatepass"), np.uint32)
    return {
        token: int.from_bytes(np.packbits(codes == ord(token), bitorder="little").tobytes(), "little")
        for token in set(a)
    }


def _stretches(
    left: Sequence[str], right: Sequence[str], blocks: Sequence[_Block], skipped: set[_Range]
) -> Iterator[Stretch]:
    at_a = at_b = a = b = 0
    for kind, a1, b1 in _edges(len(left), len(right), blocks, skipped):
        text_a, text_b = "".join(left[a:a1]), "".join(right[b:b1])
        yield Stretch(kind, at_a, text_a, at_b, text_b)
        at_a, at_b, a, b = at_a + len(text_a), at_b + len(text_b), a1, b1


def _edges(a_end: int, b_end: int, blocks: Sequence[_Block], skipped: set[_Range]) -> Iterator[tuple[Kind, int, int]]:
    """Yield the kind of each stretch, and its ends in A and B. Adjacent blocks are one stretch."""
    a = b = 0
    equal = False
    for block in (*blocks, _Block(a_end, b_end, 0)):
        if (block.a, block.b) != (a, b):
            if equal:
                yield "equal", a, b
            is_skipped = _Range(a, block.a, b, block.b) in skipped
            yield ("not compared" if is_skipped else "changed"), block.a, block.b
            equal = False
        equal = equal or bool(block.size)
        a, b = block.a + block.size, block.b + block.size
    if equal:
        yield "equal", a, b
