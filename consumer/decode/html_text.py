"""Extracts the text of an HTML body with libxml2's parser (lxml), within limits: no record may stall the stream."""

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
"""The value of an attribute that contains ``>``, which elsewhere ends a tag."""

_PIECE_BYTES: Final = 16 * 1024
_DEPTH_MAX: Final = 2_200
"""Slightly more than libxml2's own limit for trees, which decides."""


class MarkupTooComplex(ValueError):  # noqa: N818  # it says what is wrong with the markup
    """Elements are nested deeper than the parser supports (2,048), or a tag has too many attributes."""


class _Tags:
    """Records the largest number of attributes of a tag, and the current depth: a parser target without a tree."""

    def __init__(self) -> None:
        self.attributes = 0
        self.depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Count a start tag."""
        del tag
        self.attributes = max(self.attributes, len(attributes))
        self.depth += 1

    def end(self, tag: str) -> None:
        """Count an end tag."""
        del tag
        self.depth -= 1

    def close(self) -> None:
        """Do nothing; the parser requires this method."""


def text_of_html(markup: str, attributes_max: int) -> str:
    """Return the text that a reader would see: one line per block, white space collapsed, references decoded.

    Scripts, styles, titles, templates, frames and noscript elements are left out. Broken markup is read as a browser
    would read it. Raises ``MarkupTooComplex`` rather than lose deeply nested text, or build a tree of a tag with more
    than ``attributes_max`` different attributes, which takes time quadratic in their number.
    """
    if _may_have(markup, attributes_max + 1) and _attributes(markup) > attributes_max:
        raise MarkupTooComplex(f"a tag has more than attributes_max = {attributes_max} different attributes")
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    tree = etree.fromstring(markup.encode(), parser) if markup.strip() else None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise _too_deep()
    if tree is None:
        return ""
    lines = (" ".join(line.split()) for line in "".join(_pieces(tree)).split("\n"))
    return "\n".join(line for line in lines if line)


def _may_have(markup: str, attributes: int) -> bool:
    """Return quickly whether a tag may have this many attributes, which hardly any markup has."""
    # An attribute takes at least two characters, and only a quoted value lets a tag continue after a ">".
    chars_min = 2 * attributes
    if len(markup) < chars_min:
        return False
    pieces = markup.split(">")
    return any(0 <= piece.find("<") <= len(piece) - chars_min for piece in pieces) or bool(_LONG_VALUE.search(markup))


def _attributes(markup: str) -> int:
    """Return the largest number of attributes of a tag, in time linear in the length of the markup.

    Raises ``MarkupTooComplex`` if elements are nested too deep. A parser without a tree follows them to any depth, and
    searches all open elements for each end tag, so it is fed in pieces and stopped.
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
    return MarkupTooComplex("elements are nested too deep")


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
