"""The two texts of a pair as a page shows them side by side, in parts."""

from typing import Literal, NamedTuple

from consumer.console.context import ArticleView
from consumer.console.pages.differing import Piece, differing, plain_part
from consumer.text.shown_keywords import shown_keywords


class Side(NamedTuple):
    """One of the two articles. ``pieces`` are of the part that is shown; ``element`` marks what only this side has."""

    name: Literal["article", "original"]
    id: str
    view: ArticleView | None
    pieces: tuple[Piece, ...]
    element: Literal["ins", "del"]


class Texts(NamedTuple):
    """Both texts as far as a page shows them."""

    article: tuple[Piece, ...]
    original: tuple[Piece, ...]
    number: int
    parts: int
    has_both: bool
    is_compared: bool
    is_equal: bool

    @property
    def first_difference(self) -> Piece | None:
        """The first piece that differs or stands elsewhere, to which a link leads without scripts."""
        return next((piece for piece in self.article + self.original if piece.mark in {"changed", "moved"}), None)

    @property
    def has_moved(self) -> bool:
        """Whether a passage stands in both texts, at different places."""
        return any(piece.mark == "moved" for piece in self.article + self.original)


def pair_texts(article: ArticleView | None, original: ArticleView | None, number: int) -> Texts:
    """Return part ``number`` of both texts with what differs, or of the one text that there is."""
    a, b = (view.body if view else None for view in (article, original))
    if a is not None and b is not None:
        both = differing(a, b, number)
        return Texts(
            both.part.article,
            both.part.original,
            both.number,
            both.parts,
            has_both=True,
            is_compared=both.compared,
            is_equal=both.equal,
        )
    piece, shown, parts = plain_part(a if a is not None else b or "", number)
    alone = (piece,) if piece.text else ()
    return Texts(
        () if a is None else alone,
        () if b is None else alone,
        shown,
        parts,
        has_both=False,
        is_compared=True,
        is_equal=False,
    )


def pair_keywords(article: ArticleView | None, original: ArticleView | None) -> tuple[str, ...]:
    """Return the keywords that both articles have, as the verdict of the later one names them if it does."""
    if article is None:
        return ()
    if article.verdict is not None and article.verdict.shared_keywords:
        return shown_keywords(article.verdict.shared_keywords)
    theirs = frozenset(original.keywords) if original else frozenset()
    return shown_keywords(word for word in article.keywords if word in theirs)
