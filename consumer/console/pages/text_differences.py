"""Compares two texts. Splits both into marked pieces, to show side by side, in parts that fit on a page.

Characters that verdicts treat as the same do not differ, such as full-width and half-width letters, or capital and
small ones. Each text is shown as it was written.

Only the first ``COMPARED_CHARS_MAX`` characters of each text are compared, so that a page takes well under a second;
the rest is shown unmarked. A part shows at most ``PART_CHARS_MAX`` characters of each.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from consumer.fingerprint.characters.normalise import caseless, normalise
from consumer.text.diff import Stretch, difference
from consumer.text.moves import with_moves
from consumer.text.visible import paragraphs

COMPARED_CHARS_MAX: Final = 60_000
"""The maximum number of characters of each text that are compared, which takes about a tenth of a second."""
PART_CHARS_MAX: Final = 12_000
"""The maximum number of characters of each text in one part."""
_EQUAL_CHARS_MIN: Final = 3
"""Shorter equal text between two changes is shown as changed, since a few common letters mean nothing."""

PieceMark = Literal["same", "changed", "moved", "not compared"]


class Piece(NamedTuple):
    """Text of one side, safe to show. ``mark`` says whether the other side has it in the same or another place."""

    text: str
    mark: PieceMark


class PartPieces(NamedTuple):
    """The pieces of both texts that a page shows."""

    article: tuple[Piece, ...]
    original: tuple[Piece, ...]


class PartComparison(NamedTuple):
    """One part of two texts; ``number`` counts from 1.

    ``is_compared``: both were compared completely. ``is_equal``: they are the same, character for character.
    ``is_same_folded``: they are the same once folded as for a fingerprint; False unless compared completely.
    """

    part: PartPieces
    number: int
    parts: int
    is_compared: bool
    is_equal: bool
    is_same_folded: bool


def compare_part(article: str, original: str, number: int = 1) -> PartComparison:
    """Return part ``number`` of two texts, or the last part if there are fewer."""
    heads = article[:COMPARED_CHARS_MAX], original[:COMPARED_CHARS_MAX]
    if heads[0] == heads[1]:
        stretches = [Stretch("equal", 0, heads[0], 0, heads[1])]
    else:
        folded = _with_islands_joined(with_moves(difference(*map(_fold, heads))))
        stretches = [_as_written(stretch, *heads) for stretch in folded]
    tails = article[COMPARED_CHARS_MAX:], original[COMPARED_CHARS_MAX:]
    if any(tails):
        stretches.append(Stretch("not compared", len(heads[0]), tails[0], len(heads[1]), tails[1]))
    parts = list(_parts(stretches)) or [()]
    number = min(max(number, 1), len(parts))
    return PartComparison(
        _part_pieces(parts[number - 1]),
        number,
        len(parts),
        is_compared=all(stretch.kind != "not compared" for stretch in stretches),
        is_equal=article == original,
        is_same_folded=not any(tails) and (article == original or normalise(article) == normalise(original)),
    )


def plain_part(text: str, number: int = 1) -> tuple[Piece, int, int]:
    """Return part ``number`` of a single text, or the last part; also its number, and the number of parts."""
    parts = max(1, -(-len(text) // PART_CHARS_MAX))
    number = min(max(number, 1), parts)
    shown = text[(number - 1) * PART_CHARS_MAX : number * PART_CHARS_MAX]
    return Piece(paragraphs(shown, len(shown)), "not compared"), number, parts


def _fold(text: str) -> str:
    """Fold the characters of a text, except those that fold to several characters or none. Keeps the length."""
    forms = {char: _fold_char(char) for char in set(text)}
    return "".join(map(forms.__getitem__, text))


def _fold_char(char: str) -> str:
    form = caseless(char)
    return form if len(form) == 1 else char


def _as_written(stretch: Stretch, article: str, original: str) -> Stretch:
    kind, at_a, a, at_b, b = stretch
    return Stretch(kind, at_a, article[at_a : at_a + len(a)], at_b, original[at_b : at_b + len(b)])


def _with_islands_joined(stretches: Sequence[Stretch]) -> Iterator[Stretch]:
    """Yield the stretches, joining changes with the islands of equal text between them."""
    changed: Stretch | None = None
    for index, stretch in enumerate(stretches):
        if stretch.kind in {"moved", "not compared"} or (stretch.kind == "equal" and not _is_island(stretches, index)):
            if changed is not None:
                yield changed
                changed = None
            yield stretch
        elif changed is None:
            changed = stretch._replace(kind="changed")
        else:
            changed = changed._replace(a=changed.a + stretch.a, b=changed.b + stretch.b)
    if changed is not None:
        yield changed


def _is_island(stretches: Sequence[Stretch], index: int) -> bool:
    """Return whether equal text between two replacements is too short to mean anything."""
    around = stretches[max(index - 1, 0) : index + 2]
    if len(around) < len("<=>") or not around[0].kind == around[2].kind == "changed":
        return False
    # Between two insertions or two deletions, the other text continues unchanged.
    is_replaced = bool(around[0].a + around[2].a) and bool(around[0].b + around[2].b)
    text = stretches[index].a
    # Line ends always count as equal, so that texts keep their shape.
    return is_replaced and "\n" not in text and len(text.strip()) < _EQUAL_CHARS_MIN


def _parts(stretches: Sequence[Stretch]) -> Iterator[tuple[Stretch, ...]]:
    """Yield the stretches of each part, at most ``PART_CHARS_MAX`` characters of each text."""
    part: list[Stretch] = []
    room_a = room_b = PART_CHARS_MAX
    for whole in stretches:
        stretch = whole
        while stretch.a or stretch.b:
            if stretch.kind == "equal":
                taken_a = taken_b = min(len(stretch.a), room_a, room_b)
            else:
                taken_a, taken_b = min(len(stretch.a), room_a), min(len(stretch.b), room_b)
            kind, at_a, a, at_b, b = stretch
            if taken_a or taken_b:
                part.append(Stretch(kind, at_a, a[:taken_a], at_b, b[:taken_b]))
            stretch = Stretch(kind, at_a + taken_a, a[taken_a:], at_b + taken_b, b[taken_b:])
            room_a, room_b = room_a - taken_a, room_b - taken_b
            if stretch.a or stretch.b:
                yield tuple(part)
                part, room_a, room_b = [], PART_CHARS_MAX, PART_CHARS_MAX
    if part:
        yield tuple(part)


def _part_pieces(stretches: Sequence[Stretch]) -> PartPieces:
    return PartPieces(
        tuple(_piece(stretch.a, _mark(stretch)) for stretch in stretches if stretch.a),
        tuple(_piece(stretch.b, _mark(stretch)) for stretch in stretches if stretch.b),
    )


def _mark(stretch: Stretch) -> PieceMark:
    return "same" if stretch.kind == "equal" else stretch.kind


def _piece(text: str, mark: PieceMark) -> Piece:
    return Piece(paragraphs(text, len(text)), mark)
