"""Related articles: those that a verdict names in ``parts``, because they share a long stretch without being near."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from consumer.console.context import ArticleView
from consumer.console.pages.stored_articles import ArticleLookUp, VersionKey
from consumer.model.verdict import Part

RELATED_MAX: Final = 5
"""The maximum number of related articles on a page."""


class RelatedArticle(NamedTuple):
    """An article that shares ``part`` with the article ``of``; ``view`` is None if the store no longer has it."""

    part: Part
    of: str
    view: ArticleView | None


class RelatedParts(NamedTuple):
    """Parts that the verdicts of a story's articles name, each with the id of the article that shares most of it."""

    parts: Sequence[tuple[Part, str]]

    @property
    def named(self) -> list[VersionKey]:
        """The ids and versions of the related articles."""
        return [(part.id, part.version) for part, _ in self.parts]

    def articles(self, found: ArticleLookUp) -> list[RelatedArticle]:
        """Return the related articles with what the store has of them."""
        return [RelatedArticle(part, of, found.articles.get((part.id, part.version))) for part, of in self.parts]


def related_parts(views: Iterable[ArticleView | None], own_ids: Iterable[str]) -> RelatedParts:
    """Return the parts that the verdicts of these articles name, without articles in ``own_ids``.

    Each article is named once, with the greatest share, and the greatest shares come first; at most ``RELATED_MAX``.
    """
    left_out, best = set(own_ids), dict[str, tuple[Part, str]]()
    for view in views:
        verdict = None if view is None else view.verdict
        if view is None or verdict is None or not isinstance(verdict.parts, tuple):
            continue
        for part in verdict.parts:
            if part.id not in left_out and (part.id not in best or _share(part) > _share(best[part.id][0])):
                best[part.id] = (part, view.id)
    ranked = sorted(best.values(), key=lambda pair: (-_share(pair[0]), pair[0].id))
    return RelatedParts(ranked[:RELATED_MAX])


def _share(part: Part) -> float:
    return max(part.share_of_this, part.share_of_that)
