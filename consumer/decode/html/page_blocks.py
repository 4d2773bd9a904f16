"""Finds the blocks of prose on a page, so that they can be weighed against each other.

The paragraphs in one element form a block. List items, cells, sections and three or more similar elements do not
separate blocks if they contain only prose: their paragraphs join the paragraphs around them. Comments come with names,
times and links, so each is a block of its own, and a thread weighs no more than its longest comment.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from consumer.decode.html.page_survey import INLINE, PagePart, Survey

_PARAGRAPHS: Final = frozenset(
    ["address", "caption", "dt", "figcaption", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "summary"]
)
_ITEMS: Final = frozenset(["blockquote", "dd", "li", "section", "td", "th"])
_LISTS: Final = frozenset(["dl", "figure", "ol", "table", "tbody", "tr", "ul"])
_BORDERS: Final = frozenset(["body", "html", "main"])
_ALIKE_MIN: Final = 3
_LINK_SHARE_MAX: Final = 0.25


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A block of paragraphs in an element."""

    root: PagePart
    paragraphs: list[PagePart] = field(default_factory=list)

    def size_without(self, taken: Collection[etree._Element]) -> int:
        """Return the bytes of text outside links, excluding paragraphs in ``taken``."""
        return sum(part.own for part in self.paragraphs if part.element not in taken)


def blocks_of(page: Survey) -> list[TextBlock]:
    """Return the blocks of a surveyed page."""
    outer = _blocks_around(page)
    prose = _prose(outer)
    alike = Counter(_likeness(part, outer[part]) for part in prose)
    roots: dict[PagePart, PagePart] = {}
    blocks: dict[PagePart, TextBlock] = {}
    for part, around in outer.items():
        tag = part.element.tag
        is_item = part in prose and (tag in _ITEMS or alike[_likeness(part, around)] >= _ALIKE_MIN)
        if around is None or part.hinted or tag in _BORDERS:
            root = part
        else:
            root = roots[around] if is_item or tag in _PARAGRAPHS or tag in _LISTS else part
        roots[part] = root
        if part.own:
            blocks.setdefault(root, TextBlock(root)).paragraphs.append(part)
    return list(blocks.values())


def _blocks_around(page: Survey) -> dict[PagePart, PagePart | None]:
    """Map each block-level part to the block around it, outer parts first."""
    nearest: dict[PagePart | None, PagePart | None] = {None: None}
    outer: dict[PagePart, PagePart | None] = {}
    for part in page.parts.values():
        if part is not None:
            around = nearest.get(part.parent)
            is_block = part.hinted or part.element.tag not in INLINE
            nearest[part] = part if is_block else around
            if is_block:
                outer[part] = around
    return outer


def _likeness(part: PagePart, around: PagePart | None) -> tuple[PagePart | None, str, str | None]:
    return around, part.element.tag, part.element.get("class")


def _prose(outer: dict[PagePart, PagePart | None]) -> set[PagePart]:
    """Return the parts that are paragraphs, or consist of paragraphs, and have few links."""
    mixed: set[PagePart | None] = set()
    prose: set[PagePart] = set()
    for part, around in reversed(outer.items()):
        has_one_form = part.own in {0, part.size - part.linked} or part.element.tag in _PARAGRAPHS
        if has_one_form and part not in mixed and not part.hinted and part.link_share < _LINK_SHARE_MAX:
            prose.add(part)
        elif part.size:
            mixed.add(around)
    return prose
