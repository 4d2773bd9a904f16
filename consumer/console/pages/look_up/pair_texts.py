"""The two texts of a pair as a page shows them side by side, in parts."""

from typing import Literal, NamedTuple

from consumer.console.context import ArticleView
from consumer.console.pages.text_differences import Piece, compare_part, plain_part
from consumer.text.shown_keywords import shown_keywords


class PairSide(NamedTuple):
    """One of the two articles. ``pieces`` belong to the shown part; ``element`` marks text that only this side has."""

    id: str
    view: ArticleView | None
    pieces: tuple[Piece, ...]
    element: Literal["ins", "del"]


class PairTexts(NamedTuple):
    """Both articles with one part of their texts: part ``number`` of ``parts`` parts.

    ``is_compared``, ``is_equal`` and ``is_same_folded`` are as in ``PartComparison``.
    """

    article: PairSide
    original: PairSide
    number: int
    parts: int
    has_both: bool
    is_compared: bool
    is_equal: bool
    is_same_folded: bool

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the article, then those of the original."""
        return self.article.pieces + self.original.pieces

    @property
    def first_difference(self) -> Piece | None:
        """The first piece that differs or moved: the target of a link that works without scripts."""
        return next((piece for piece in self.pieces if piece.mark in {"changed", "moved"}), None)

    @property
    def has_moved(self) -> bool:
        """Whether a passage of this part is in both texts at different places."""
        return any(piece.mark == "moved" for piece in self.pieces)


def pair_texts(ids: tuple[str, str], views: tuple[ArticleView | None, ArticleView | None], number: int) -> PairTexts:
    """Return part ``number`` of both texts with their differences, or of the only text."""
    a, b = (view.body if view else None for view in views)
    if a is not None and b is not None:
        both = compare_part(a, b, number)
        pieces, shown, parts = (both.part.article, both.part.original), both.number, both.parts
        is_compared, is_equal, is_same_folded = both.is_compared, both.is_equal, both.is_same_folded
    else:
        piece, shown, parts = plain_part(a if a is not None else b or "", number)
        alone = (piece,) if piece.text else ()
        pieces = (() if a is None else alone, () if b is None else alone)
        is_compared, is_equal, is_same_folded = True, False, False
    return PairTexts(
        PairSide(ids[0], views[0], pieces[0], "ins"),
        PairSide(ids[1], views[1], pieces[1], "del"),
        shown,
        parts,
        has_both=a is not None and b is not None,
        is_compared=is_compared,
        is_equal=is_equal,
        is_same_folded=is_same_folded,
    )


def pair_keywords(article: ArticleView | None, original: ArticleView | None) -> tuple[str, ...]:
    """Return the keywords that both articles have, from the verdict of the later one if it names them."""
    if article is None:
        return ()
    if article.verdict is not None and article.verdict.shared_keywords:
        return shown_keywords(article.verdict.shared_keywords)
    original_keywords = frozenset(original.keywords) if original else frozenset()
    return shown_keywords(word for word in article.keywords if word in original_keywords)
