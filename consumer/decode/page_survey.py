"""Surveys a page: how much text each of its elements has, how much of it in links, and how many points.

Scores are Readability's: a paragraph of some length gives points, more for more commas and more text, to the elements
around it, fewer to those further out; an element keeps the share of its points that is not the text of links. Lengths
are in bytes of UTF-8, so that a Chinese paragraph counts as much as an English one that says the same.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from consumer.decode.page_marks import Marks

ELEMENTS_MAX: Final = 50_000
"""A page of more elements is not surveyed. The largest of 130 real pages has a fifth of that."""

_PARAGRAPHS: Final = frozenset(["p", "pre", "h2", "h3", "h4", "h5", "h6"])
_MAYBE_PARAGRAPHS: Final = frozenset(["blockquote", "dd", "div", "figcaption", "section", "td"])
"""Paragraphs where none of the next are in them."""
_BLOCKS: Final = frozenset(["article", "blockquote", "div", "dl", "main", "ol", "p", "pre", "section", "table", "ul"])
_BREAKS_MIN: Final = 2
_PARAGRAPH_BYTES_MIN: Final = 25
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


@dataclass(slots=True, eq=False)
class Part:
    """An element and what is in it: bytes of text, of them in links, commas and stops."""

    element: etree._Element
    parent: "Part | None"
    size: int = 0
    linked: int = 0
    stops: int = 0
    score: float = 0.0
    scored: bool = False

    @property
    def link_share(self) -> float:
        """The share of the text that is in links."""
        return self.linked / self.size if self.size else 0.0


@dataclass(slots=True)
class Survey:
    """The marks of a page, its parts by element, None for what stands apart, and those that have points."""

    marks: Marks
    parts: dict[etree._Element, Part | None] = field(default_factory=dict)
    scored: list[Part] = field(default_factory=list)


def survey(tree: etree._Element, *, by_name: bool) -> Survey | None:
    """Survey a page; None where it has too many elements. Names of classes and ids count if ``by_name``."""
    surveyor = _Surveyor(by_name=by_name)
    walk = etree.iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        if event == "end":
            surveyor.end(element)
        elif not surveyor.start(element):
            walk.skip_subtree()
        if len(surveyor.found.parts) > ELEMENTS_MAX:
            return None
    return surveyor.found


class _Surveyor:
    """Follows the elements of a page in document order."""

    def __init__(self, *, by_name: bool) -> None:
        self.found = Survey(Marks(by_name=by_name))
        self._marks = self.found.marks
        self._around: Part | None = None
        self._links = 0

    def start(self, element: etree._Element) -> bool:
        """Begin an element; return whether to look into it."""
        if self._marks.apart(element):
            self.found.parts[element] = None
            return False
        part = Part(element, self._around)
        self.found.parts[element] = self._around = part
        self._links += element.tag == "a"
        if element.text:
            self._add(part, element.text)
        return True

    def end(self, element: etree._Element) -> None:
        """End an element, and read the text behind it."""
        part = self.found.parts[element]
        if part is not None:
            self._links -= element.tag == "a"
            self._sum_up(part)
            self._around = part.parent
        if element.tail and self._around is not None:
            self._add(self._around, element.tail)

    def _add(self, part: Part, text: str) -> None:
        words = " ".join(text.split())
        if not words:
            return
        size = len(words) if words.isascii() else len(words.encode())
        part.size += size
        part.stops += len(_STOPS.findall(words))
        if self._links:
            part.linked += size

    def _sum_up(self, part: Part) -> None:
        tag, parent = part.element.tag, part.parent
        if parent is not None:
            parent.size += part.size
            parent.linked += part.linked
            parent.stops += part.stops
        if part.size >= _PARAGRAPH_BYTES_MIN and _is_paragraph(part.element):
            _give_points(part)
        if part.scored:
            points = part.score + _BASE.get(tag, 0) + self._marks.weight(part.element)
            points += _BODY_POINTS * ("articleBody" in (part.element.get("itemprop") or ""))
            part.score = points * (1 - part.link_share)
            self.found.scored.append(part)


def _is_paragraph(element: etree._Element) -> bool:
    return element.tag in _PARAGRAPHS or (
        element.tag in _MAYBE_PARAGRAPHS and not any(inner.tag in _BLOCKS for inner in element)
    )


def _give_points(part: Part) -> None:
    points = 1 + part.stops + min(part.size // _BYTES_A_POINT, _LENGTH_POINTS_MAX)
    # What breaks lines by itself holds several paragraphs.
    breaks = sum(inner.tag == "br" for inner in part.element)
    around = part if breaks >= _BREAKS_MIN and part.element.tag != "p" else part.parent
    for divisor in _DIVISORS:
        if around is None:
            return
        around.score += points / divisor
        around.scored = True
        around = around.parent
