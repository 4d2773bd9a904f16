"""The text of an HTML body, by libxml2's parser (lxml), within limits that keep one record from stalling the stream."""

import re
from collections.abc import Mapping
from typing import Final

from lxml import etree

_BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "br", "button", "caption", "center", "dd", "details"),
        *("dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3"),
        *("h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol"),
        *("optgroup", "option", "p", "pre", "search", "section", "select", "summary", "table", "tbody", "td"),
        *("textarea", "tfoot", "th", "thead", "tr", "ul"),
    }
)
_HIDDEN: Final = frozenset(["script", "style", "title", "template", "noscript", "iframe", "noembed", "noframes"])

_LONG_VALUE: Final = re.compile("=[\\s]*+(?:\"[^\">]*+>|'[^'>]*+>)")
"""An attribute's value with the sign in it that ends a tag elsewhere."""

_PIECE_BYTES: Final = 16 * 1024
_DEPTH_MAX: Final = 2_200
"""A little more than libxml2 follows when it builds a tree, which is what decides."""


class MarkupTooComplex(ValueError):  # noqa: N818  # what is the matter with it
    """Elements are nested deeper than the parser follows (2,048), or a tag has more attributes than it may have."""


class _Tags:
    """Counts the attributes of every tag, and how deep elements are; a target of the parser, which builds no tree."""

    def __init__(self) -> None:
        self.attributes = 0
        self.depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        del tag
        self.attributes = max(self.attributes, len(attributes))
        self.depth += 1

    def end(self, tag: str) -> None:
        """An element ends."""
        del tag
        self.depth -= 1

    def close(self) -> None:
        """The markup ends."""


def text_of_html(markup: str, attributes_max: int) -> str:
    """The text that a reader would see: one line for each block, white space collapsed, character references decoded.

    Scripts, styles, titles, templates, frames and what is for readers without scripts are left out. Broken markup is
    read as a browser would. Raises ``MarkupTooComplex`` rather than lose what stands too deep, or build a tree of a tag
    with more than ``attributes_max`` different attributes: that takes time that grows with the square of their number.
    """
    if _may_have(markup, attributes_max + 1) and _attributes(markup) > attributes_max:
        raise MarkupTooComplex(f"a tag of it has more than attributes_max = {attributes_max} different attributes")
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    tree = etree.fromstring(markup.encode(), parser) if markup.strip() else None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise _too_deep()
    if tree is None:
        return ""
    lines = (" ".join(line.split()) for line in "".join(_pieces(tree)).split("\n"))
    return "\n".join(line for line in lines if line)


def _may_have(markup: str, attributes: int) -> bool:
    """Tell whether a tag may have so many attributes: no for nearly all markup, and in little time."""
    # An attribute takes two characters at least, and nothing but a quoted value has a tag go on behind a ">".
    chars_min = 2 * attributes
    if len(markup) < chars_min:
        return False
    pieces = markup.split(">")
    return any(0 <= piece.find("<") <= len(piece) - chars_min for piece in pieces) or bool(_LONG_VALUE.search(markup))


def _attributes(markup: str) -> int:
    """Count the attributes of the tag that has most of them, in time that grows with the length of the markup.

    Raises ``MarkupTooComplex`` where elements are nested too deep. A parser without a tree follows them to any depth,
    and then searches all of it for each end tag; so this one is fed in pieces, and stopped.
    """
    tags = _Tags()
    parser = etree.HTMLParser(target=tags, encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    data = markup.encode()
    for start in range(0, len(data), _PIECE_BYTES):
        parser.feed(data[start : start + _PIECE_BYTES])
        if tags.depth > _DEPTH_MAX:
            raise _too_deep()
    parser.close()
    return tags.attributes


def _too_deep() -> MarkupTooComplex:
    return MarkupTooComplex("its elements are nested too deep to be read")


def _pieces(tree: etree._Element) -> list[str]:
    pieces: list[str] = []
    hidden = 0
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        is_hidden = element.tag in _HIDDEN
        if event == "end" and is_hidden:
            hidden -= 1
        if element.tag in _BLOCKS:
            pieces.append("\n")
        if event == "start" and is_hidden:
            hidden += 1
        text = element.text if event == "start" else element.tail
        if text and not hidden:
            pieces.append(text.replace("\n", " "))
    return pieces
