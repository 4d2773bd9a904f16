"""Hints in tags, roles, classes and ids that an element is part of the article, or of the page around it.

Authors choose classes and ids freely, but most pages use the same words. The lists here follow Arc90's Readability, as
do Firefox's reader view and most other extractors.
"""

import re
from collections.abc import Iterable
from typing import Final

from lxml import etree

APART: Final = frozenset(
    {
        *("aside", "audio", "button", "canvas", "dialog", "embed", "fieldset", "footer", "form", "head", "iframe"),
        *("input", "link", "map", "menu", "nav", "noembed", "noframes", "noscript", "object", "option", "script"),
        *("select", "style", "svg", "template", "textarea", "title", "video"),
    }
)
"""Tags of elements that are not part of an article."""
_ROLES: Final = frozenset(
    {
        *("alert", "alertdialog", "banner", "complementary", "contentinfo", "dialog", "menu", "menubar", "navigation"),
        *("search", "toolbar"),
    }
)
_HINTED: Final = frozenset({"aside", "dialog", "fieldset", "footer", "form", "menu", "nav"})
"""The tags in ``APART`` that some pages put around their article."""
_NEVER_BY_NAME: Final = frozenset(["html", "body", "article", "main", "a", "p"])
"""Tags that are better hints than class names and ids."""
_NAME_CHARS_MAX: Final = 400
"""Longer names are cut. They occur on pages whose style sheets have a class for each property."""

_OUTSIDE_WORDS: Final = (
    *("-ad-", "ad-break", "ai2html", "author-bio", "banner", "breadcrumb", "byline", "combx", "comment", "community"),
    *("cookie", "cover-wrap", "disqus", "extra", "footer", "gdpr", "header", "legends", "masthead", "menu"),
    *("newsletter", "outbrain", "pager", "pagination", "popup", "promo", "recommend", "related", "remark", "replies"),
    *("rss", "share", "shoutbox", "sidebar", "skyscraper", "social", "sponsor", "subscribe", "supplemental", "taboola"),
    *("teaser", "toolbar", "widget"),
)
"""Parts of the class or id of an element outside the article, unless it also has one of ``_MAYBE_ARTICLE_WORDS``."""
_MAYBE_ARTICLE_WORDS: Final = (
    *("and", "article", "body", "column", "content", "main", "shadow", "story", "entry", "post", "text"),
)
_ARTICLE_WORDS: Final = ("article", "blog", "body", "content", "entry", "main", "page", "post", "story", "text")
"""Parts of a class or id that raise an element's weight."""
_OTHER_WORDS: Final = (
    *("-ad-", "banner", "com-", "combx", "comment", "contact", "footer", "gdpr", "hidden", "masthead", "media", "meta"),
    *("outbrain", "promo", "related", "scroll", "share", "shopping", "shoutbox", "sidebar", "skyscraper", "sponsor"),
    *("tags", "widget"),
)
"""Parts of a class or id that lower an element's weight."""
_UNSEEN: Final = re.compile("display\\s*:\\s*none|visibility\\s*:\\s*hidden", re.IGNORECASE)
_STYLE_CHARS_MAX: Final = 400
NO_ARTICLE_TAGS: Final = APART - _HINTED
"""Tags that never hold an article."""
_WEIGHT: Final = 25
_Names = tuple[str | None, str | None]
"""Class and id."""


class ElementMarks:
    """The hints of the elements on one page, with a cache. Classes and ids count only if ``by_name``."""

    def __init__(self, *, by_name: bool) -> None:
        self._by_name = by_name
        self._around: dict[_Names, bool] = {}
        self._weights: dict[_Names, int] = {}

    def is_apart(self, element: etree._Element) -> bool:
        """Return whether hints say that an element and its contents are invisible or not part of an article."""
        if element.tag in APART:
            return True
        if not element.keys() or element.tag in {"html", "body"}:
            return False
        style = element.get("style")
        if style and _UNSEEN.search(style, 0, _STYLE_CHARS_MAX):
            return True
        return self._has_hint(element)

    def is_hinted(self, element: etree._Element) -> bool:
        """Return whether an element is marked as not part of an article. Some articles are marked so by mistake."""
        if element.tag in _HINTED:
            return True
        return bool(element.keys()) and element.tag not in {"html", "body"} and self._has_hint(element)

    def _has_hint(self, element: etree._Element) -> bool:
        get = element.get
        if get("role") in _ROLES or get("aria-hidden") == "true" or get("hidden") is not None:
            return True
        if not self._by_name or element.tag in _NEVER_BY_NAME:
            return False
        names = get("class"), get("id")
        if names not in self._around:
            text = " ".join(_searched(names))
            self._around[names] = _has(text, _OUTSIDE_WORDS) and not _has(text, _MAYBE_ARTICLE_WORDS)
        return self._around[names]

    def weight(self, element: etree._Element) -> int:
        """Return how strongly the names of an element suggest an article, from -50 to 50; 0 for no hint."""
        if not self._by_name:
            return 0
        names = element.get("class"), element.get("id")
        if names not in self._weights:
            found = [_has(name, _ARTICLE_WORDS) - _has(name, _OTHER_WORDS) for name in _searched(names)]
            self._weights[names] = _WEIGHT * sum(found)
        return self._weights[names]


def _has(name: str, words: Iterable[str]) -> bool:
    return any(word in name for word in words)


def _searched(names: _Names) -> list[str]:
    return [name[:_NAME_CHARS_MAX].lower() for name in names if name]
