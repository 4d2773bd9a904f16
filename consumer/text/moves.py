"""Finds moved text: a passage removed at one place of a difference and inserted at another, word for word.

A difference leads from a text A to a text B: text is removed from A and inserted in B. Runs of ``_RUN_CHARS``
characters of changed text in A are looked up in B by hash. The longest matches win, from the beginning of A. No
character moves twice. The work grows with the length of the texts only, because at most ``_PLACES_MAX`` places of a run
are compared.
"""

import unicodedata
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consumer.text.diff import Kind, Stretch, TextPair
from consumer.text.passages import run_hashes

MOVED_WIDTH_MIN: Final = 40
"""Narrower passages are mere phrases. A letter has width 1, an ideograph 3, since it stands for a whole syllable."""
ISLAND_WIDTH_MAX: Final = 24
"""Equal text between two changes, up to this width, may be part of a moved passage."""
_WIDE: Final = 3
_RUN_CHARS: Final = 12
_STEP: Final = 3
"""One in this many runs of A is looked up. Even the shortest passage, 14 ideographs, has this many runs."""
_PLACES_MAX: Final = 4
"""The maximum number of places of a run in B that are compared."""


class TextSpan(NamedTuple):
    """A span of characters from ``start`` to ``end``."""

    start: int
    end: int


class _Match(NamedTuple):
    a: TextSpan
    b: TextSpan


def with_moves(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Return the stretches of a difference with moved text as separate stretches.

    A stretch of kind ``moved`` has text in A or B only; the other text has the same passage elsewhere. The stretches
    still cover both texts, in order.
    """
    changed = [*_changed(stretches)]
    pair = TextPair("".join(stretch.a for stretch in stretches), "".join(stretch.b for stretch in stretches))
    matches = _matches(pair, [a for a, _ in changed], [b for _, b in changed])
    if not matches:
        return list(stretches)
    spans_a, spans_b = sorted(match.a for match in matches), sorted(match.b for match in matches)
    return list(_joined(part for stretch in stretches for part in _divided(stretch, spans_a, spans_b)))


def _changed(stretches: Sequence[Stretch]) -> Iterator[tuple[TextSpan, TextSpan]]:
    """Yield the changed spans of both texts, including islands of equal text."""
    first: Stretch | None = None
    last: Stretch | None = None
    for stretch in stretches:
        if stretch.kind == "changed":
            first, last = first or stretch, stretch
        elif first is not None and last is not None and not _is_island(stretch):
            yield _span_from(first, last)
            first = last = None
    if first is not None and last is not None:
        yield _span_from(first, last)


def _is_island(stretch: Stretch) -> bool:
    return stretch.kind == "equal" and len(stretch.a) <= ISLAND_WIDTH_MAX and _width(stretch.a) <= ISLAND_WIDTH_MAX


def _span_from(first: Stretch, last: Stretch) -> tuple[TextSpan, TextSpan]:
    return TextSpan(first.at_a, last.at_a + len(last.a)), TextSpan(first.at_b, last.at_b + len(last.b))


def _matches(pair: TextPair, changed_a: Sequence[TextSpan], changed_b: Sequence[TextSpan]) -> list[_Match]:
    """Return the passages in changed spans of A that are also in changed spans of B."""
    starts_a, starts_b = _run_starts(changed_a), _run_starts(changed_b)
    if not len(starts_a) or not len(starts_b):
        return []
    hashes_b = run_hashes(pair.b, _RUN_CHARS)[starts_b]
    order = np.argsort(hashes_b, kind="stable")
    starts_b, hashes_b = starts_b[order], hashes_b[order]
    starts_a = starts_a[::_STEP]
    hashes_a = run_hashes(pair.a, _RUN_CHARS)[starts_a]
    firsts = np.searchsorted(hashes_b, hashes_a, "left")
    ends = np.minimum(np.searchsorted(hashes_b, hashes_a, "right"), firsts + _PLACES_MAX)
    known = (firsts < ends).nonzero()[0]
    matches = _MatchSet(pair, changed_a, changed_b)
    for start, first, end in zip(starts_a[known].tolist(), firsts[known].tolist(), ends[known].tolist(), strict=True):
        matches.add_longest(start, starts_b[first:end].tolist())
    return matches.matches


def _run_starts(spans: Sequence[TextSpan]) -> NDArray[np.intp]:
    """Return the starts of all runs within these spans."""
    starts = [np.arange(span.start, max(span.end - _RUN_CHARS + 1, span.start), dtype=np.intp) for span in spans]
    return np.concatenate(starts) if starts else np.zeros(0, np.intp)


class _MatchSet:
    """The matches found so far, which do not overlap in A or B."""

    def __init__(self, pair: TextPair, changed_a: Sequence[TextSpan], changed_b: Sequence[TextSpan]) -> None:
        self.matches: list[_Match] = []
        self._pair = pair
        self._changed_a = changed_a
        self._changed_b = changed_b
        self._looked_to = 0
        self._spans_b: list[TextSpan] = []

    def add_longest(self, at_a: int, places_b: Sequence[int]) -> None:
        """Add the longest match around a run, if it is long enough. Runs must come in the order of A."""
        if at_a < self._looked_to:
            return
        room_a = _span_at(self._changed_a, at_a)
        room_a = TextSpan(max(room_a.start, self.matches[-1].a.end if self.matches else 0), room_a.end)
        candidates = [match for at_b in places_b if (match := self._grow(at_a, at_b, room_a)) is not None]
        if not candidates:
            return
        longest = max(candidates, key=lambda match: match.a.end - match.a.start)
        # Skip the runs within this match. A longer match that begins within it also ends after it, so a later run finds
        # that one.
        self._looked_to = longest.a.end - _RUN_CHARS + 1
        match = _trim_to_words(self._pair, longest)
        if _width(self._pair.a[match.a.start : match.a.end]) >= MOVED_WIDTH_MIN:
            self.matches.append(match)
            insort(self._spans_b, match.b)
            self._looked_to = match.a.end

    def _grow(self, at_a: int, at_b: int, room_a: TextSpan) -> _Match | None:
        """Return the longest match around a place of each text, or None if another match covers the place in B."""
        room_b = _span_at(self._changed_b, at_b)
        index = bisect_left(self._spans_b, TextSpan(at_b + 1, at_b + 1))
        start = max(room_b.start, self._spans_b[index - 1].end if index else 0)
        end = min(room_b.end, self._spans_b[index].start if index < len(self._spans_b) else room_b.end)
        if not start <= at_b < end:
            return None
        before = self._pair.suffix(at_a, at_b, min(at_a - room_a.start, at_b - start))
        after = self._pair.prefix(at_a, at_b, min(room_a.end - at_a, end - at_b))
        return _Match(TextSpan(at_a - before, at_a + after), TextSpan(at_b - before, at_b + after))


def _span_at(spans: Sequence[TextSpan], at: int) -> TextSpan:
    """Return the span that contains a place."""
    return spans[bisect_left(spans, TextSpan(at + 1, at + 1)) - 1]


def _trim_to_words(pair: TextPair, match: _Match) -> _Match:
    """Return a match without partial words and spaces at its ends."""
    (a, a_end), (b, _) = match
    first, last = 0, a_end - a
    while first < last and (_is_within_word(pair.a, a + first) or _is_within_word(pair.b, b + first)):
        first += 1
    while last > first and (_is_within_word(pair.a, a + last) or _is_within_word(pair.b, b + last)):
        last -= 1
    while first < last and pair.a[a + first].isspace():
        first += 1
    while last > first and pair.a[a + last - 1].isspace():
        last -= 1
    return _Match(TextSpan(a + first, a + last), TextSpan(b + first, b + last))


def _is_within_word(text: str, at: int) -> bool:
    """Return whether a place is within a word."""
    return 0 < at < len(text) and _is_word_char(text[at - 1]) and _is_word_char(text[at])


def _is_word_char(char: str) -> bool:
    return char.isalnum() and not _is_wide(char)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(_WIDE if _is_wide(char) else 1 for char in text)


def _divided(stretch: Stretch, spans_a: Sequence[TextSpan], spans_b: Sequence[TextSpan]) -> Iterator[Stretch]:
    """Yield the moved and other parts of a stretch."""
    kind, at_a, a, at_b, b = stretch
    edges_a, edges_b = _edges(spans_a, at_a, len(a)), _edges(spans_b, at_b, len(b))
    if not edges_a and not edges_b:
        yield stretch
    elif kind == "equal":
        edges = sorted({0, *edges_a, *edges_b, len(a)})
        for start, end in pairwise(edges):
            yield from _equal_part(
                spans_a, spans_b, Stretch(kind, at_a + start, a[start:end], at_b + start, b[start:end])
            )
    else:
        for start, end in _parts(edges_a, len(a)):
            moved = _is_in(spans_a, at_a + start)
            yield Stretch("moved" if moved else kind, at_a + start, a[start:end], at_b, "")
        for start, end in _parts(edges_b, len(b)):
            moved = _is_in(spans_b, at_b + start)
            yield Stretch("moved" if moved else kind, at_a + len(a), "", at_b + start, b[start:end])


def _equal_part(spans_a: Sequence[TextSpan], spans_b: Sequence[TextSpan], part: Stretch) -> Iterator[Stretch]:
    """Yield a part of equal text, as two stretches if it belongs to a moved passage in A or B."""
    moved_a, moved_b = _is_in(spans_a, part.at_a), _is_in(spans_b, part.at_b)
    if not moved_a and not moved_b:
        yield part
        return
    yield Stretch("moved" if moved_a else "changed", part.at_a, part.a, part.at_b, "")
    yield Stretch("moved" if moved_b else "changed", part.at_a + len(part.a), "", part.at_b, part.b)


def _edges(spans: Sequence[TextSpan], at: int, size: int) -> list[int]:
    """Return the offsets at which spans cut the ``size`` characters from ``at``, including 0 and ``size``.

    Return [] if no span overlaps these characters.
    """
    first = max(bisect_left(spans, TextSpan(at, at)) - 1, 0)
    edges = {0, size}
    has_overlap = False
    for span in spans[first:]:
        if span.start >= at + size:
            break
        if span.end > at:
            has_overlap = True
            edges |= {edge - at for edge in span if at < edge < at + size}
    return sorted(edges) if has_overlap else []


def _parts(edges: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    edges = edges or ([0, size] if size else [])
    yield from pairwise(edges)


def _is_in(spans: Sequence[TextSpan], at: int) -> bool:
    index = bisect_left(spans, TextSpan(at + 1, at + 1)) - 1
    return index >= 0 and at < spans[index].end


def _joined(parts: Iterable[Stretch]) -> Iterator[Stretch]:
    """Yield parts in order, and regroup each row of changed and moved parts that has a moved one.

    In such a row the text of A comes first, then that of B, in few stretches.
    """
    pending: list[Stretch] = []
    for part in parts:
        if part.kind in {"changed", "moved"}:
            pending.append(part)
            continue
        yield from _in_order(pending)
        pending = []
        yield part
    yield from _in_order(pending)


def _in_order(parts: Sequence[Stretch]) -> Iterator[Stretch]:
    if all(part.kind == "changed" for part in parts):
        yield from parts
        return
    a, b = _pieces((part.kind, part.a) for part in parts), _pieces((part.kind, part.b) for part in parts)
    # The difference may have paired words inside a moved passage, although the same words stand next to it. Pair the
    # words next to the passage instead.
    before, after = _take_equal_words(a, b, 0), _take_equal_words(a, b, -1)
    at_a, at_b = parts[0].at_a, parts[0].at_b
    only_a = [(kind, text, "") for kind, text in a]
    only_b = [(kind, "", text) for kind, text in b]
    for kind, text_a, text_b in (("equal", before, before), *only_a, *only_b, ("equal", after, after)):
        if text_a or text_b:
            yield Stretch(kind, at_a, text_a, at_b, text_b)
            at_a, at_b = at_a + len(text_a), at_b + len(text_b)


def _pieces(parts: Iterable[tuple[Kind, str]]) -> list[tuple[Kind, str]]:
    """Return the text of A or B in some stretches, in as few pieces as possible."""
    pieces = _grouped(part for part in parts if part[1])
    # The space next to a moved passage counts as moved: nobody looks for a change there.
    kinds_nearby = [{kind for kind, _ in pieces[max(index - 1, 0) : index + 2]} for index in range(len(pieces))]
    return _grouped(
        ("moved" if text.isspace() and "moved" in kinds else kind, text)
        for (kind, text), kinds in zip(pieces, kinds_nearby, strict=True)
    )


def _grouped(pieces: Iterable[tuple[Kind, str]]) -> list[tuple[Kind, str]]:
    groups = groupby(pieces, key=lambda piece: piece[0])
    return [(kind, "".join(text for _, text in group)) for kind, group in groups]


def _take_equal_words(a: list[tuple[Kind, str]], b: list[tuple[Kind, str]], end: Literal[0, -1]) -> str:
    """Remove and return the words that the changes in A and B have in common.

    With ``end`` 0 these are the first words of the first change in each, with -1 the last words of the last change.
    """
    if not a or not b or not a[end][0] == b[end][0] == "changed":
        return ""
    texts = [pieces[end][1][:: -1 if end else 1] for pieces in (a, b)]
    size = TextPair(*texts).prefix(0, 0, min(map(len, texts)))
    while size and any(_is_within_word(text, size) for text in texts):
        size -= 1
    for pieces, text in zip((a, b), texts, strict=True):
        pieces[end] = ("changed", text[size:][:: -1 if end else 1])
    return texts[0][:size][:: -1 if end else 1]
