"""Finds the elements of a page that styles hide from readers.

A rule that would hide more than about half of the text outside links is ignored. It probably belongs to an effect that
a script ends, such as fading in. Each element with its own ``display: none`` counts as a separate rule. Elements that
their own styles hide in another way count as one rule for each way. If nearly all text would be hidden, all of it is
kept.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

from lxml import etree

from consumer.decode.html.element_styles import REVERSIBLE_WAYS, ElementStyle, HidingStyle, styles_of
from consumer.decode.html.html_text import HIDDEN, text_of_parts
from consumer.decode.html.style_rules import HidingProperty

_SHARE_MAX: Final = 0.55
"""The maximum share of the text that a rule may hide. A hidden copy of the visible text may be slightly over half."""
_REST_SHARE_MIN: Final = 0.1
_FADING: Final = frozenset[HidingProperty](["opacity", "visibility"])
_UNCOUNTED: Final = HIDDEN | {"a"}
_BY_ATTRIBUTE: Final = etree.XPath("descendant-or-self::*[@hidden]")

_Key = tuple[HidingProperty, object]
"""A rule that hides: its way, and its block. For an element's own ``display: none``, the element replaces the block."""


class HiddenElements(NamedTuple):
    """Elements that are hidden with their contents: certainly, or in a way that scripts often end (``fading``)."""

    certain: frozenset[etree._Element]
    fading: frozenset[etree._Element]


class _Span(NamedTuple):
    """An element that a rule hides, with its range of characters in the page."""

    element: etree._Element
    start: int
    end: int


def hidden_elements(tree: etree._Element) -> Collection[etree._Element]:
    """Return the elements that are hidden with their contents, by styles or by the attribute ``hidden``."""
    styles = styles_of(tree)
    for element in _BY_ATTRIBUTE(tree):
        style = styles.get(element, ElementStyle())
        if "display" not in style.shown:
            styles[element] = style._replace(hidden=(*style.hidden, HidingStyle("display", None)))
    return frozenset().union(*hidden_by_style(tree, styles))


def seen_text(tree: etree._Element) -> str:
    """Return the text of a whole tree in the form of ``text_of``, without the elements of ``hidden_elements``."""
    hidden = hidden_elements(tree)
    return text_of_parts([tree], lambda element: element.tag in HIDDEN or element in hidden)


def hidden_by_style(tree: etree._Element, styles: Mapping[etree._Element, ElementStyle]) -> HiddenElements:
    """Return the elements that are hidden by these styles."""
    if not _have_text(element for element, style in styles.items() if style.hidden):
        return _NOTHING
    count = _CharacterCounter(styles)
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if event == "start":
            count.start(element)
        else:
            count.end(element)
    half = count.characters * _SHARE_MAX
    counted = {key: spans for key, spans in count.spans.items() if _size(spans) <= half}
    if _size(_outermost(chain.from_iterable(counted.values()))) > count.characters * (1 - _REST_SHARE_MIN):
        return _NOTHING
    fading = {span.element for key, spans in counted.items() if key[0] in _FADING for span in spans}
    certain = {span.element for key, spans in counted.items() if key[0] not in _FADING for span in spans}
    return HiddenElements(frozenset(certain), frozenset(fading - certain))


def _have_text(elements: Iterable[etree._Element]) -> bool:
    seen: set[etree._Element] = set()
    for element in elements:
        if element not in seen:
            for inner in element.iter():
                if inner.text and not inner.text.isspace():
                    return True
                seen.add(inner)
    return False


_NOTHING: Final = HiddenElements(frozenset(), frozenset())


class _CharacterCounter:
    """A walk through the elements of a page that counts the characters outside links that each rule hides."""

    def __init__(self, styles: Mapping[etree._Element, ElementStyle]) -> None:
        self.characters = 0
        self.spans: defaultdict[_Key, list[_Span]] = defaultdict(list)
        self._styles = styles
        # For each rule: the outermost element that it hides, the characters before it, and the step at which it began.
        self._open: dict[_Key, tuple[etree._Element, int, int]] = {}
        self._ended: dict[HidingProperty, int] = {}
        self._uncounted = 0
        self._step = 0

    def start(self, element: etree._Element) -> None:
        """Begin an element."""
        self._step += 1
        style = self._styles.get(element)
        if style is not None:
            for key in _keys(element, style):
                self._open.setdefault(key, (element, self.characters, self._step))
            for way in style.shown & REVERSIBLE_WAYS:
                self._ended[way] = self._step
        self._uncounted += element.tag in _UNCOUNTED
        self._add(element.text)

    def end(self, element: etree._Element) -> None:
        """End an element, and read the text after it."""
        self._uncounted -= element.tag in _UNCOUNTED
        style = self._styles.get(element)
        if style is not None:
            for key in _keys(element, style):
                outermost, before, began = self._open[key]
                if outermost is element:
                    del self._open[key]
                    if self._ended.get(key[0], 0) <= began:
                        self.spans[key].append(_Span(element, before, self.characters))
        self._add(element.tail)

    def _add(self, text: str | None) -> None:
        if text and not self._uncounted:
            self.characters += len("".join(text.split()))


def _keys(element: etree._Element, style: ElementStyle) -> list[_Key]:
    return [
        (way, element if way == "display" and block is None else block) for way, block in style.hidden
    ]  # fmt: skip


def _size(spans: Iterable[_Span]) -> int:
    return sum(span.end - span.start for span in spans)


def _outermost(spans: Iterable[_Span]) -> list[_Span]:
    """Return the spans that are not within another one."""
    found: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not found or span.end > found[-1].end:
            found.append(span)
    return found
