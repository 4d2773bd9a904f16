"""Finds the article of a page by the shape of the page: the extractor ``fast``.

Text in paragraphs, with commas and few links, makes an article; short lines and lists of links stand around it. What
has most of the former is chosen (``page_survey``), then grown outwards while it becomes no worse, and what looks like
navigation within it is left out. No word list of any language is used but that of class names.

A change of what is extracted from some page needs a new revision in ``page``.
"""

from collections.abc import Iterator
from typing import Final

from lxml import etree

from consumer.decode.html_text import text_of_parts
from consumer.decode.page_marks import Marks
from consumer.decode.page_survey import Part, Survey, survey

_ENOUGH_BYTES: Final = 250
"""A text of fewer bytes of UTF-8 may be short because of misleading names; they are not believed, then."""
_RIVALS: Final = 4
_RIVAL_SHARE: Final = 0.75
_RIVALS_MIN: Final = 3
"""So many others with nearly as many points, in one element, mean that the article is all of that."""
_WORSE_SHARE: Final = 1 / 3
_SIBLING_SHARE: Final = 0.2
_SIBLING_POINTS_MIN: Final = 10
_SIBLING_BYTES: Final = 80
_SIBLING_LINK_SHARE: Final = 0.25
_CLEANED: Final = frozenset(["div", "dl", "ol", "section", "table", "ul"])
_STOPS_OF_PROSE: Final = 10
_LINK_SHARE_MAX: Final = 0.2
_LIKELY_LINK_SHARE_MAX: Final = 0.5
_LIKELY_WEIGHT: Final = 25


def article_text(tree: etree._Element) -> str:
    """Return the text of the article of a page, one line per block; "" where there is none, or too much of a page."""
    best = ""
    for by_name in (True, False):
        found = survey(tree, by_name=by_name)
        if found is None:
            return ""
        text = _text(found)
        if len(text.encode()) >= _ENOUGH_BYTES:
            return text
        best = max(best, text, key=len)
    return best


def _text(found: Survey) -> str:
    if not found.scored:
        return ""
    top = _grown(found)
    chosen = list(_with_siblings(top, found))
    kept = {part.element for part in chosen}

    def left_out(element: etree._Element) -> bool:
        part = found.parts[element]
        return part is None or (element not in kept and _is_navigation(part, found.marks))

    return text_of_parts((part.element for part in chosen), left_out)


def _grown(found: Survey) -> Part:
    """Return the part with most points, or one around it that holds the rest of the article as well."""
    ranked = sorted(found.scored, key=lambda part: -part.score)
    top = _shared_by_rivals(ranked) or ranked[0]
    last, around = top.score, top.parent
    bound = last * _WORSE_SHARE
    while around is not None and around.element.tag != "body" and (not around.scored or around.score >= bound):
        if around.scored and around.score > last:
            top = around
            break
        last, around = around.score if around.scored else last, around.parent
    while top.parent is not None and top.parent.element.tag != "body" and _is_alone(top, found):
        top = top.parent
    return top


def _shared_by_rivals(ranked: list[Part]) -> Part | None:
    top = ranked[0]
    rivals = [part for part in ranked[1 : 1 + _RIVALS] if part.score >= top.score * _RIVAL_SHARE]
    if top.score <= 0 or len(rivals) < _RIVALS_MIN:
        return None
    around = [set(_ancestors(rival)) for rival in rivals]
    for part in _ancestors(top):
        if part.element.tag in {"body", "html"}:
            return None
        if sum(part in parts for parts in around) >= _RIVALS_MIN:
            return part
    return None


def _ancestors(part: Part) -> Iterator[Part]:
    around = part.parent
    while around is not None:
        yield around
        around = around.parent


def _is_alone(part: Part, found: Survey) -> bool:
    """Return whether no other child of its parent has text."""
    parent = part.parent
    return parent is not None and parent.size == part.size and found.parts.get(part.element) is not None


def _with_siblings(top: Part, found: Survey) -> Iterator[Part]:
    """Yield the part with those beside it that go on with the same article: others with points, and paragraphs."""
    if top.parent is None:
        yield top
        return
    bound = max(_SIBLING_POINTS_MIN, top.score * _SIBLING_SHARE)
    class_ = top.element.get("class")
    for element in top.parent.element:
        part = found.parts.get(element)
        if part is None:
            continue
        bonus = top.score * _SIBLING_SHARE if class_ and element.get("class") == class_ else 0
        if part is top or (part.scored and part.score + bonus >= bound) or _is_prose(part):
            yield part


def _is_prose(part: Part) -> bool:
    if part.element.tag != "p":
        return False
    if part.size > _SIBLING_BYTES:
        return part.link_share < _SIBLING_LINK_SHARE
    return part.size > 0 and not part.linked and part.stops > 0


def _is_navigation(part: Part, marks: Marks) -> bool:
    """Return whether something within an article looks like links to others."""
    if part.element.tag not in _CLEANED or not part.size:
        return False
    weight = marks.weight(part.element)
    if weight < 0:
        return True
    if part.stops >= _STOPS_OF_PROSE:
        return False
    return part.link_share > (_LIKELY_LINK_SHARE_MAX if weight >= _LIKELY_WEIGHT else _LINK_SHARE_MAX)
