"""Surveys a page: the amount of text in each element, its share in links, and the element's score.

Scores follow Readability. A paragraph of some length gives points to the elements around it, more for more commas and
more text, and fewer to elements farther out. An element loses points in proportion to the share of its text that is in
links. Lengths are in bytes of UTF-8, so that a Chinese paragraph counts as much as an English one with the same
content.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from lxml import etree

from consumer.decode.html import html_text
from consumer.decode.html.page_marks import NO_ARTICLE_TAGS, ElementMarks

ELEMENTS_MAX: Final = 50_000
"""Pages with more elements are not surveyed. The largest of 130 real pages has a fifth of this number."""

_PARAGRAPHS: Final = frozenset(["p", "pre", "h2", "h3", "h4", "h5", "h6"])
_MAYBE_PARAGRAPHS: Final = frozenset(["blockquote", "dd", "div", "figcaption", "section", "td"])
"""Elements that are paragraphs unless one of their children is in ``_BLOCKS``."""
_BLOCKS: Final = frozenset(["article", "blockquote", "div", "dl", "main", "ol", "p", "pre", "section", "table", "ul"])
INLINE: Final = html_text.INLINE | {"br", "img", "label", "rp", "rt"}
"""Elements whose text is part of the line around them."""
_ITEMS: Final = frozenset(["dd", "dt", "li"])
_BREAKS_MIN: Final = 2
_PARAGRAPH_BYTES_MIN: Final = 25
_PARAGRAPH_BYTES: Final = 500
"""The length of one paragraph in bytes; unbroken text of twice that length counts as two."""
_BYTES_A_POINT: Final = 100
_LENGTH_POINTS_MAX: Final = 3
_DIVISORS: Final = (1, 2, 6, 9, 12)
"""The elements around a paragraph get its points divided by these numbers, from the inside out."""
_BASE: Final = {
    "article": 15, "div": 5, "main": 5, "pre": 3, "td": 3, "blockquote": 3,
    "address": -3, "ol": -3, "ul": -3, "dl": -3, "dd": -3, "dt": -3, "li": -3, "th": -5,
}  # fmt: skip
_BODY_POINTS: Final = 25
"""The points for ``itemprop="articleBody"``, which pages set for search engines."""
_STOPS: Final = re.compile("[,.;،؛。、，；।]")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a survey.

    By default, elements with a hint that they are outside the article are left out. With ``by_name``, classes and ids
    are hints too. With ``weighs``, elements with hints are kept, so that their text can be weighed against the rest,
    and the text of any block counts as a paragraph. ``doubted`` are elements whose hints are ignored, ``fading``
    elements with a hint from styles, ``unseen`` elements that are invisible or only overlay the page.
    """

    by_name: bool
    weighs: bool = False
    doubted: Collection[etree._Element] = frozenset()
    fading: Collection[etree._Element] = frozenset()
    unseen: Collection[etree._Element] = frozenset()


@dataclass(slots=True, eq=False)
class PagePart:
    """An element and the measures of its text: bytes, bytes in links, and commas and stops.

    ``score`` counts only if ``scored``: if a paragraph has given the element points. These fields are set only in a
    weighing survey: ``own`` is the bytes of text outside links and inner blocks, ``own_stops`` the commas and stops in
    this text, and ``breaks`` its line breaks. A ``hinted`` part and all parts in it are ``apart``: probably not in the
    article.
    """

    element: etree._Element
    parent: "PagePart | None"
    size: int = 0
    linked: int = 0
    stops: int = 0
    score: float = 0.0
    scored: bool = False
    own: int = 0
    own_stops: int = 0
    breaks: int = 0
    hinted: bool = False
    apart: bool = False

    @property
    def link_share(self) -> float:
        """The share of the text that is in links."""
        return self.linked / self.size if self.size else 0.0

    def around(self) -> Iterator["PagePart"]:
        """Yield the parts around this one, from the inside out."""
        outer = self.parent
        while outer is not None:
            yield outer
            outer = outer.parent


@dataclass(slots=True)
class Survey:
    """The result of surveying a page: its parts by element, or None for elements left out, and the parts with points.

    ``hinted`` are the parts with hints; ``survey_apart`` surveys their contents.
    """

    marks: ElementMarks
    rules: Rules
    parts: dict[etree._Element, PagePart | None] = field(default_factory=dict)
    scored: list[PagePart] = field(default_factory=list)
    hinted: list[PagePart] = field(default_factory=list)

    def weight(self, element: etree._Element) -> int:
        """Return how strongly the names of an element suggest the article, from -50 to 50; 0 without hints."""
        return 0 if element in self.rules.doubted else self.marks.weight(element)


def elements_of(tree: etree._Element) -> list[etree._Element]:
    """Return the elements of a page, or none if there are too many to survey."""
    elements = list(islice(tree.iter(), ELEMENTS_MAX + 1))
    return elements if len(elements) <= ELEMENTS_MAX else []


def survey(tree: etree._Element, rules: Rules) -> Survey | None:
    """Survey a page. Return None if it has too many elements."""
    page = Survey(ElementMarks(by_name=rules.by_name), rules)
    return page if _walk(tree, _Surveyor(page)) else None


def survey_apart(page: Survey, part: PagePart) -> None:
    """Survey the contents of a hinted part, without giving points."""
    _walk(part.element, _Surveyor(page, part))


def _walk(tree: etree._Element, surveyor: "_Surveyor") -> bool:
    walk = etree.iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        if event == "end":
            surveyor.end(element)
        elif not surveyor.start(element):
            walk.skip_subtree()
        if len(surveyor.page.parts) > ELEMENTS_MAX:
            return False
    return True


class _Surveyor:
    """A walk through the elements of a page, or of one hinted part, in document order."""

    def __init__(self, page: Survey, within: PagePart | None = None) -> None:
        self.page = page
        self._rules = page.rules
        self._marks = page.marks
        self._within = within
        self._around: PagePart | None = within.parent if within is not None else None
        self._links = 0
        # The block-level elements around the current one, outermost first.
        self._blocks: list[PagePart] = []

    def start(self, element: etree._Element) -> bool:
        """Begin an element. Return whether to visit its contents."""
        if self._is_left_out(element):
            self.page.parts[element] = None
            return False
        part = PagePart(element, self._around)
        self.page.parts[element] = self._around = part
        self._links += element.tag == "a"
        if self._rules.weighs and not self._begin_weighed(part):
            return False
        if element.text:
            self._add(part, element.text)
        return True

    def _is_left_out(self, element: etree._Element) -> bool:
        if self._rules.weighs:
            return element.tag in NO_ARTICLE_TAGS or element in self._rules.unseen
        return self._marks.is_apart(element)

    def _begin_weighed(self, part: PagePart) -> bool:
        """Begin a part in a weighing survey. Return False if a hint excludes its contents for now."""
        is_hinted = part.element in self._rules.fading or self._marks.is_hinted(part.element)
        part.hinted = is_hinted and part.element not in self._rules.doubted
        part.apart = part.hinted or self._within is not None
        if part.element.tag not in INLINE or not self._blocks:
            self._blocks.append(part)
        elif part.element.tag == "br":
            self._blocks[-1].breaks += 1
        if part.hinted and self._within is None:
            self.page.hinted.append(part)
            return False
        return True

    def end(self, element: etree._Element) -> None:
        """End an element, and read the text after it."""
        part = self.page.parts[element]
        if part is not None:
            self._links -= element.tag == "a"
            self._sum_up(part)
            self._around = part.parent
            if self._blocks and self._blocks[-1] is part:
                self._blocks.pop()
        is_last = self._within is not None and element is self._within.element
        if element.tail and self._around is not None and not is_last:
            self._add(self._around, element.tail)

    def _add(self, part: PagePart, text: str) -> None:
        words = " ".join(text.split())
        if not words:
            return
        size = len(words) if words.isascii() else len(words.encode())
        stops = len(_STOPS.findall(words))
        part.size += size
        part.stops += stops
        if self._links:
            part.linked += size
        elif self._blocks:
            self._blocks[-1].own += size
            self._blocks[-1].own_stops += stops

    def _sum_up(self, part: PagePart) -> None:
        parent = part.parent
        if parent is not None and not part.hinted:
            parent.size += part.size
            parent.linked += part.linked
            parent.stops += part.stops
        if part.apart:
            return
        if part.size >= _PARAGRAPH_BYTES_MIN and _is_paragraph(part.element):
            _give_points(_scored_around(part), part.size, part.stops, self._paragraphs(part))
        elif part.own >= _PARAGRAPH_BYTES_MIN:
            around = part.parent if part.element.tag in _ITEMS else part
            _give_points(around, part.own, part.own_stops, self._paragraphs(part))
        if part.scored:
            points = part.score + self._base(part.element) + self.page.weight(part.element)
            points += _BODY_POINTS * ("articleBody" in (part.element.get("itemprop") or ""))
            part.score = points * (1 - part.link_share)
            self.page.scored.append(part)

    def _paragraphs(self, part: PagePart) -> int:
        """Return how many paragraphs the text of a part counts as."""
        return max(1 + part.breaks, part.own // _PARAGRAPH_BYTES) if self._rules.weighs else 1

    def _base(self, element: etree._Element) -> int:
        base = _BASE.get(element.tag, 0)
        return max(base, _BASE["div"]) if element in self._rules.doubted else base


def _is_paragraph(element: etree._Element) -> bool:
    return element.tag in _PARAGRAPHS or (
        element.tag in _MAYBE_PARAGRAPHS and not any(inner.tag in _BLOCKS for inner in element)
    )


def _scored_around(paragraph: PagePart) -> PagePart | None:
    # An element with line breaks contains several paragraphs.
    breaks = sum(inner.tag == "br" for inner in paragraph.element)
    return paragraph if breaks >= _BREAKS_MIN and paragraph.element.tag != "p" else paragraph.parent


def _give_points(around: PagePart | None, size: int, stops: int, paragraphs: int) -> None:
    points = 1 + stops + min(size // _BYTES_A_POINT, _LENGTH_POINTS_MAX * paragraphs)
    for divisor in _DIVISORS:
        if around is None:
            return
        around.score += points / divisor
        around.scored = True
        around = around.parent
