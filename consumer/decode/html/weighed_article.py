"""Finds the article on a page and weighs it against the rest of the page: revision 2 of the extractor ``fast``.

Tags, roles, attributes and names hint at parts of a page that do not belong to its article, but are wrong on some
pages. So the text found is weighed against the longest block of prose that it leaves out (``page_blocks``). Only one
block counts, because all comments together are often longer than the article. If that block is longer, its hints are
ignored and the page is searched again. If no search finds the longest block, there is no article.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from lxml import etree

from consumer.decode.html.element_styles import ElementStyle, styles_of
from consumer.decode.html.hidden_text import hidden_by_style
from consumer.decode.html.page_article import ArticleText, take_article
from consumer.decode.html.page_blocks import TextBlock, blocks_of
from consumer.decode.html.page_survey import PagePart, Rules, Survey, elements_of, survey, survey_apart

_SEARCHES_MAX: Final = 4
"""The maximum number of searches of a page. The last one ignores classes and ids."""
_HINTED_WEIGHT: Final = 0.9
"""The weight of a hinted block: it loses to an article of the same length."""
_PREFERRED_SHARE_MIN: Final = 0.5
"""A preferred article may be shorter by this factor than the longest block that it leaves out."""
_ARTICLE_BYTES_MIN: Final = 600
_ARTICLE_PARAGRAPHS_MIN: Final = 3
_PARAGRAPH_BYTES: Final = 80
_ARTICLE_SHARE_MIN: Final = 1 / 6
"""A long enough text marked as an article may be shorter than a later hinted block, by this factor."""
_ARTICLES: Final = frozenset(["article", "main"])
DIALOGS_MAX: Final = 100
"""The maximum number of possible dialogs that are examined."""
_VENDOR_IDS: Final = frozenset(
    {
        *("_evidon_banner", "axeptio_overlay", "borlabscookiebox", "catapult-cookie-bar", "ccc", "cc-main"),
        *("cky-consent", "cmpbox", "cmplz-cookiebanner-container", "consent_blackbar", "cookie-law-info-bar"),
        *("cookie-notice", "cookiescript_injected", "cybotcookiebotdialog", "didomi-host", "didomi-notice"),
        *("didomi-popup", "eu-cookie-law", "ez-cookie-dialog-wrapper", "fc-consent-root"),
        *("hs-eu-cookie-confirmation", "iubenda-cs-banner", "klaro", "moove_gdpr_cookie_info_bar"),
        *("onetrust-banner-sdk", "onetrust-consent-sdk", "ppms_cm_popup_overlay", "qc-cmp2-container"),
        *("shopify-pc__banner", "sp-cc", "tarteaucitronroot", "termly-code-snippet-support"),
        *("truste-consent-track", "uniccmp", "usercentrics-cmp-ui", "usercentrics-root"),
    }
)
_VENDOR_PREFIXES: Final = ("osano-cm-", "sp_message_container_")
_ROLES: Final = frozenset(["alertdialog", "dialog"])
_CONTROLS: Final = ("button", "input", "select")
_PAGE_TAGS: Final = ("article", "h1", "main")
_NEVER_DIALOGS: Final = frozenset(["article", "body", "html", "main"])
_SHARE_MAX: Final = 0.8
"""An element with a larger share of the text is the page itself."""


def rules_for(tree: etree._Element) -> Rules:
    """Return the rules for the first survey of a page, with the elements that its styles hide."""
    styles = styles_of(tree)
    certain, fading = hidden_by_style(tree, styles)
    return Rules(by_name=True, weighs=True, fading=fading, unseen=certain | consent_dialogs(tree, styles))


def weighed_article_text(tree: etree._Element) -> str:
    """Return the text of the article on a page, one line per block; "" if none is certain, or the page is too large."""
    # Keep references to the elements, because lxml makes a new object for an element that nothing refers to.
    elements = elements_of(tree)
    if not elements:
        return ""
    rules = rules_for(tree)
    doubted: set[etree._Element] = set()
    last_size = -1
    for search in range(_SEARCHES_MAX):
        page = survey(tree, replace(rules, by_name=search < _SEARCHES_MAX - 1, doubted=doubted))
        if page is None:
            return ""
        taken = take_article(page)
        size = _size(page, taken)
        rival = _longest_left_out(page, taken, size)
        if rival is None or _is_article(page, taken, size, rival):
            return taken.text
        left_out = rival.size_without(taken.elements)
        if size == last_size and size >= left_out * _PREFERRED_SHARE_MIN and _is_preferred(page, taken, rival):
            # The result is the same, although the hints against the other block were ignored.
            return taken.text
        last_size = size
        doubted.update(part.element for part in (rival.root, *rival.root.around()))
    return ""


def survey_long_parts(page: Survey, size: int) -> None:
    """Survey hinted parts whose text may have more bytes than ``size``."""
    for part in page.hinted:
        if _bytes_at_most(part.element) > size:
            survey_apart(page, part)


def _longest_left_out(page: Survey, taken: ArticleText, size: int) -> TextBlock | None:
    """Return the block with the most text left out, if that is more than ``size`` bytes. Hinted blocks count less."""
    survey_long_parts(page, size)
    left_out, block = 0.0, None
    for each in blocks_of(page):
        weight = each.size_without(taken.elements) * (_HINTED_WEIGHT if each.root.apart else 1)
        if weight > left_out:
            left_out, block = weight, each
    return block if left_out > size else None


def _size(page: Survey, taken: ArticleText) -> int:
    return sum(part.own for part in _parts(page, taken))


def _parts(page: Survey, taken: ArticleText) -> list[PagePart]:
    return [part for element in taken.elements if (part := page.parts[element]) is not None]


def _bytes_at_most(element: etree._Element) -> int:
    """Return an upper bound on the bytes of text outside links, without surveying the element."""
    linked = (inner.text or "" for inner in element.iter("a", "script", "style"))
    return sum(map(_bytes, element.itertext())) - sum(map(_bytes, linked))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _is_article(page: Survey, taken: ArticleText, size: int, rival: TextBlock) -> bool:
    """Return whether the text taken is an article in its own right, and the rival, such as a comment, is below it."""
    left_out = rival.size_without(taken.elements)
    if not rival.root.apart or size < max(_ARTICLE_BYTES_MIN, left_out * _ARTICLE_SHARE_MIN):
        return False
    parts = _parts(page, taken)
    if _paragraphs(parts) < _ARTICLE_PARAGRAPHS_MIN:
        return False
    order = {element: place for place, element in enumerate(page.parts)}
    outermost = [part for part in (rival.root, *rival.root.around()) if part.apart][-1]
    return order[next(part for part in parts if part.own).element] < order[outermost.element] and _is_within_mark(
        page, taken
    )


def _is_preferred(page: Survey, taken: ArticleText, rival: TextBlock) -> bool:
    """Return whether the text taken looks more like an article than a longer block: by its mark or its paragraphs."""
    return _is_within_mark(page, taken) or _paragraphs(_parts(page, taken)) > _paragraphs(rival.paragraphs)


def _paragraphs(parts: Iterable[PagePart]) -> int:
    """Estimate the number of paragraphs that are long enough to be prose."""
    return sum(min(1 + part.breaks, part.own // _PARAGRAPH_BYTES) for part in parts)


def _is_within_mark(page: Survey, taken: ArticleText) -> bool:
    """Return whether the text taken begins in an element marked as an article."""
    parts = [part for part in _parts(page, taken) if part.own][:1]
    around = [outer for part in parts for outer in (part, *part.around())]
    return any(
        outer.element.tag in _ARTICLES
        or "articleBody" in (outer.element.get("itemprop") or "")
        or page.weight(outer.element) > 0
        for outer in around
    )


def consent_dialogs(tree: etree._Element, styles: Mapping[etree._Element, ElementStyle]) -> frozenset[etree._Element]:
    """Return the dialogs in front of the page, such as requests for consent to cookies."""
    found: set[etree._Element] = set()
    candidates = {element for element, style in styles.items() if style.fixed}
    for element in tree.iter():
        id_ = element.get("id")
        if id_ is not None and (id_.lower() in _VENDOR_IDS or id_.startswith(_VENDOR_PREFIXES)):
            found.add(element)
        if element.tag == "dialog" or element.get("role") in _ROLES or element.get("aria-modal") == "true":
            candidates.add(element)
    if candidates:
        found.update(_with_controls(tree, candidates))
    return frozenset(found)


def _with_controls(tree: etree._Element, candidates: set[etree._Element]) -> Iterator[etree._Element]:
    """Yield candidates that have controls but no article."""
    # In page order, so that the limit always keeps the same elements.
    for element in [element for element in tree.iter() if element in candidates][:DIALOGS_MAX]:
        has_control = next(element.iter(*_CONTROLS), None) is not None
        is_page = element.tag in _NEVER_DIALOGS or next(element.iter(*_PAGE_TAGS), None) is not None
        if has_control and not is_page and _characters(element) <= _characters(tree) * _SHARE_MAX:
            yield element


def _characters(element: etree._Element) -> int:
    return sum(map(len, element.itertext()))
