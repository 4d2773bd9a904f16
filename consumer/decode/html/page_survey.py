"""Surveys a page: how much text each of its elements has, how much of it in links, and how many points.

Scores are Readability's: a paragraph of some length gives points, more for more commas and more text, to the elements
around it, fewer to those further out; an element keeps the share of its points that is not the text of links. Lengths
are in bytes of UTF-8, so that a Chinese paragraph counts as much as an English one that says the same.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from lxml import etree

from consumer.decode.html import html_text
from consumer.decode.html.page_marks import NEVER, ElementMarks

ELEMENTS_MAX: Final = 50_000
"""A page of more elements is not surveyed. The largest of 130 real pages has a fifth of that."""

_PARAGRAPHS: Final = frozenset(["p", "pre", "h2", "h3", "h4", "h5", "h6"])
_MAYBE_PARAGRAPHS: Final = frozenset(["blockquote", "dd", "div", "figcaption", "section", "td"])
"""Paragraphs where none of the next are in them."""
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
"""The element around a paragraph gets all of its points, the next one half of them, and so on."""
_BASE: Final = {
    "article": 15, "div": 5, "main": 5, "pre": 3, "td": 3, "blockquote": 3,
    "address": -3, "ol": -3, "ul": -3, "dl": -3, "dd": -3, "dt": -3, "li": -3, "th": -5,
}  # fmt: skip
_BODY_POINTS: Final = 25
"""What ``itemprop="articleBody"`` gives, which pages have for search engines."""
_STOPS: Final = re.compile("[,.;،؛。、，；।]")


@dataclass(frozen=True, slots=True)
class Rules:
    """How a page is surveyed.

    ``weighs``: hints that an element stands apart are doubted, so that its text can be weighed against the rest, and
    the text of any block is a paragraph. ``doubted``: elements whose hints are not believed. ``fading``: elements at
    which styles hint. ``unseen``: elements that no reader sees, or only in front of the page. Without ``weighs`` what
    stands apart is no part of the survey.
    """

    by_name: bool
    weighs: bool = False
    doubted: Collection[etree._Element] = frozenset()
    fading: Collection[etree._Element] = frozenset()
    unseen: Collection[etree._Element] = frozenset()


@dataclass(slots=True, eq=False)
class PagePart:
    """An element and what is in it: bytes of text, of them in links, commas and stops.

    Only if the rules weigh: ``own`` are the bytes outside of links and of blocks within it, ``own_stops`` their commas
    and stops, ``breaks`` the line breaks among them. A ``hinted`` part is said to stand ``apart``, and so are all parts
    within it.
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
    """A page's marks and rules, its parts by element, None for what is no part, and parts that have points.

    ``hinted`` are parts that stand apart; what is in them is surveyed by ``survey_apart``.
    """

    marks: ElementMarks
    rules: Rules
    parts: dict[etree._Element, PagePart | None] = field(default_factory=dict)
    scored: list[PagePart] = field(default_factory=list)
    hinted: list[PagePart] = field(default_factory=list)

    def weight(self, element: etree._Element) -> int:
        """Return how likely an element is a part of an article by its names, as far as these are believed."""
        return 0 if element in self.rules.doubted else self.marks.weight(element)


def elements_of(tree: etree._Element) -> list[etree._Element]:
    """Return the elements of a page; none where it has too many to be surveyed, wherever they stand."""
    elements = list(islice(tree.iter(), ELEMENTS_MAX + 1))
    return elements if len(elements) <= ELEMENTS_MAX else []


def survey(tree: etree._Element, rules: Rules) -> Survey | None:
    """Survey a page; None where it has too many elements."""
    found = Survey(ElementMarks(by_name=rules.by_name), rules)
    return found if _follow(tree, _Surveyor(found)) else None


def survey_apart(found: Survey, part: PagePart) -> None:
    """Survey the contents of a part that stands apart, without giving points."""
    _follow(part.element, _Surveyor(found, part))


def _follow(tree: etree._Element, surveyor: "_Surveyor") -> bool:
    walk = etree.iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        if event == "end":
            surveyor.end(element)
        elif not surveyor.start(element):
            walk.skip_subtree()
        if len(surveyor.found.parts) > ELEMENTS_MAX:
            return False
    return True


class _Surveyor:
    """Follows the elements of a page in document order, or those of one part that stands apart."""

    def __init__(self, found: Survey, within: PagePart | None = None) -> None:
        self.found = found
        self._rules = found.rules
        self._marks = found.marks
        self._within = within
        self._around: PagePart | None = within.parent if within is not None else None
        self._links = 0
        # The block-level elements around.
        self._blocks: list[PagePart] = []

    def start(self, element: etree._Element) -> bool:
        """Begin an element; return whether to look into it."""
        if self._is_no_part(element):
            self.found.parts[element] = None
            return False
        part = PagePart(element, self._around)
        self.found.parts[element] = self._around = part
        self._links += element.tag == "a"
        if self._rules.weighs and not self._is_weighed(part):
            return False
        if element.text:
            self._add(part, element.text)
        return True

    def _is_no_part(self, element: etree._Element) -> bool:
        if self._rules.weighs:
            return element.tag in NEVER or element in self._rules.unseen
        return self._marks.apart(element)

    def _is_weighed(self, part: PagePart) -> bool:
        """Begin a part in a weighing survey; return False if a hint keeps its contents out for now."""
        is_hinted = part.element in self._rules.fading or self._marks.hinted(part.element)
        part.hinted = is_hinted and part.element not in self._rules.doubted
        part.apart = part.hinted or self._within is not None
        if part.element.tag not in INLINE or not self._blocks:
            self._blocks.append(part)
        elif part.element.tag == "br":
            self._blocks[-1].breaks += 1
        if part.hinted and self._within is None:
            self.found.hinted.append(part)
            return False
        return True

    def end(self, element: etree._Element) -> None:
        """End an element, and read the text behind it."""
        part = self.found.parts[element]
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
            points = part.score + self._base(part.element) + self.found.weight(part.element)
            points += _BODY_POINTS * ("articleBody" in (part.element.get("itemprop") or ""))
            part.score = points * (1 - part.link_share)
            self.found.scored.append(part)

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
    # What breaks lines by itself holds several paragraphs.
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
