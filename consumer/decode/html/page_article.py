"""Finds the article on a page by the shape of the page: the extractor ``fast``.

An article is text in paragraphs, with commas and few links. Short lines and lists of links surround it. The element
with the most points (``page_survey``) is chosen, or an element around it that also contains the rest of the article.
Parts of this element that look like navigation are left out. The only word list is that of class names, so any language
will do.

``article_text`` is revision 1, and ``weighed_article_text`` in ``weighed_article`` is revision 2. Any change of the
results needs a new revision in ``page``.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from lxml import etree

from consumer.decode.html.html_text import text_of_parts
from consumer.decode.html.page_survey import PagePart, Rules, Survey, survey

_ENOUGH_BYTES_MIN: Final = 250
"""A text of fewer bytes of UTF-8 may be short because of misleading class names, so the next try ignores them."""
_RIVALS_MAX: Final = 4
_RIVAL_SHARE: Final = 0.75
_RIVALS_MIN: Final = 3
"""The minimum number of rivals, which are parts with nearly as many points as the best part.

If there are that many, the article is the innermost element that contains the best part and this many rivals.
"""
_CONTINUED_SHARE_MIN: Final = 0.8
"""Elements with the same tag and class that make up this share of an element are pieces of one article."""
_WORSE_SHARE: Final = 1 / 3
_SIBLING_SHARE: Final = 0.2
_UNLIKE_SIBLING_SHARE: Final = 0.5
_SIBLING_POINTS_MIN: Final = 10
_SIBLING_BYTES: Final = 80
_SIBLING_LINK_SHARE: Final = 0.25
_CLEANED: Final = frozenset(["div", "dl", "ol", "section", "table", "ul"])
_LISTS: Final = frozenset(["dl", "ol", "ul"])
_STOPS_OF_PROSE: Final = 10
_LINK_SHARE_MAX: Final = 0.2
_LIKELY_LINK_SHARE_MAX: Final = 0.5
_LIKELY_WEIGHT: Final = 25


class ArticleText(NamedTuple):
    """The text of an article, one line per block, and the elements that it was taken from."""

    text: str
    elements: dict[etree._Element, None]


def article_text(tree: etree._Element) -> str:
    """Return the text of the article on a page, one line per block; "" if there is none, or the page is too large."""
    best = ""
    for by_name in (True, False):
        page = survey(tree, Rules(by_name=by_name))
        if page is None:
            return ""
        text = take_article(page).text
        if len(text.encode()) >= _ENOUGH_BYTES_MIN:
            return text
        best = max(best, text, key=len)
    return best


def take_article(page: Survey) -> ArticleText:
    """Return the article of a surveyed page. Its text is "" if no part has points."""
    taken: dict[etree._Element, None] = {}
    if not page.scored:
        return ArticleText("", taken)
    top = _find_top(page)
    chosen = list(_with_siblings(top, page))
    kept = {part.element for part in chosen}

    is_begun = not page.rules.weighs

    def left_out(element: etree._Element) -> bool:
        nonlocal is_begun
        part = page.parts[element]
        if part is None or (element not in kept and (part.hinted or _is_navigation(part, page))):
            return True
        if element.tag == "h1" and not is_begun:
            # The headline is the page's title.
            return True
        is_begun = is_begun or part.own >= _SIBLING_BYTES
        taken[element] = None
        return False

    return ArticleText(text_of_parts((part.element for part in chosen), left_out), taken)


def _find_top(page: Survey) -> PagePart:
    """Return the part with the most points, or an outer part that also contains the rest of the article."""
    ranked = sorted(page.scored, key=lambda part: -part.score)
    top = (page.rules.weighs and _around_pieces(ranked)) or _around_rivals(ranked) or ranked[0]
    last, around = top.score, top.parent
    bound = last * _WORSE_SHARE
    while around is not None and around.element.tag != "body" and (not around.scored or around.score >= bound):
        if around.scored and around.score > last:
            top = around
            break
        last, around = around.score if around.scored else last, around.parent
    while top.parent is not None and top.parent.element.tag != "body" and _is_alone(top, page):
        top = top.parent
    return top


def _around_rivals(ranked: list[PagePart]) -> PagePart | None:
    top = ranked[0]
    rivals = [part for part in ranked[1 : 1 + _RIVALS_MAX] if part.score >= top.score * _RIVAL_SHARE]
    if top.score <= 0 or len(rivals) < _RIVALS_MIN:
        return None
    around = [set(rival.around()) for rival in rivals]
    for part in top.around():
        if part.element.tag in {"body", "html"}:
            return None
        if sum(part in parts for parts in around) >= _RIVALS_MIN:
            return part
    return None


def _around_pieces(ranked: list[PagePart]) -> PagePart | None:
    """Return the element around all elements that look like the best element, if little else is in it."""
    top = ranked[0]
    bound = top.score * _SIBLING_SHARE
    pieces = [part for part in ranked if part.score >= bound and _is_piece(part, top)]
    around = Counter(outer for piece in pieces for outer in piece.around())
    shared = next((outer for outer in top.around() if around[outer] == len(pieces)), None)
    if len(pieces) == 1 or shared is None or shared.element.tag in {"body", "html"}:
        return None
    return shared if sum(piece.size for piece in pieces) >= shared.size * _CONTINUED_SHARE_MIN else None


def _is_piece(part: PagePart, top: PagePart) -> bool:
    """Return whether a part looks like the best one. Without a class, it must be a sibling without an id."""
    named = top.element.get("class") or (part.parent is top.parent and not part.element.get("id"))
    return part is top or (bool(named) and _looks_like(part.element, top.element))


def _looks_like(element: etree._Element, other: etree._Element) -> bool:
    return (element.tag, element.get("class")) == (other.tag, other.get("class"))


def _is_alone(part: PagePart, page: Survey) -> bool:
    """Return whether a part has all the text of its parent."""
    parent = part.parent
    return parent is not None and parent.size == part.size and page.parts.get(part.element) is not None


def _with_siblings(top: PagePart, page: Survey) -> Iterator[PagePart]:
    """Yield ``top`` and its siblings that continue the article: parts with points, and paragraphs."""
    if top.parent is None:
        yield top
        return
    bound = max(_SIBLING_POINTS_MIN, top.score * _SIBLING_SHARE)
    class_ = top.element.get("class")
    for element in top.parent.element:
        part = page.parts.get(element)
        if part is None or part.apart:
            continue
        bonus = top.score * _SIBLING_SHARE if class_ and element.get("class") == class_ else 0
        goes_on = part.scored and part.score + bonus >= bound and (not page.rules.weighs or _may_go_on(part, top, page))
        if part is top or goes_on or _is_prose(part):
            yield part


def _may_go_on(part: PagePart, top: PagePart, page: Survey) -> bool:
    """Return whether a sibling of the article may continue it, rather than be another piece of the page."""
    element, named = part.element, part.element.get("id") or top.element.get("id")
    if element.tag == "p" or (_looks_like(element, top.element) and (element.get("class") or not named)):
        return True
    is_in_body = top.parent is not None and top.parent.element.tag == "body"
    return not is_in_body and (page.weight(element) > 0 or part.score >= top.score * _UNLIKE_SIBLING_SHARE)


def _is_prose(part: PagePart) -> bool:
    if part.element.tag != "p":
        return False
    if part.size > _SIBLING_BYTES:
        return part.link_share < _SIBLING_LINK_SHARE
    return part.size > 0 and not part.linked and part.stops > 0


def _is_navigation(part: PagePart, page: Survey) -> bool:
    """Return whether a part of an article looks like links to other articles."""
    if part.element.tag not in _CLEANED or not part.size:
        return False
    weight = page.weight(part.element)
    if weight < 0:
        return True
    if part.stops >= _STOPS_OF_PROSE:
        return False
    is_likely = weight >= _LIKELY_WEIGHT or (page.rules.weighs and part.element.tag in _LISTS)
    return part.link_share > (_LIKELY_LINK_SHARE_MAX if is_likely else _LINK_SHARE_MAX)
