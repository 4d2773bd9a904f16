"""Parses HTML with libxml2 (lxml) into a tree, within limits: no record may stall the stream."""

import re
from collections.abc import Mapping
from typing import Final

from lxml import etree

_LONG_VALUE: Final = re.compile("=[\\s]*+(?:\"[^\">]*+>|'[^'>]*+>)")
"""The value of an attribute that contains ``>``, which elsewhere ends a tag."""

_PIECE_BYTES: Final = 16 * 1024
_DEPTH_MAX: Final = 2_200
"""Slightly more than libxml2's own limit for trees, which decides."""
_VALUE_CHARS_MIN: Final = 2
"""An element or an attribute takes at least this many characters of markup."""


class MarkupTooComplex(ValueError):  # noqa: N818  # it says what is wrong with the markup
    """Elements are nested deeper than the parser supports (2,048), or there are too many of them or of attributes."""


class _Tags:
    """Records what a tree would have, without making one: a parser target.

    ``attributes`` is the largest number of attributes of a tag, ``values`` the number of elements and attributes.
    """

    def __init__(self) -> None:
        self.attributes = 0
        self.values = 0
        self.depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Count a start tag."""
        del tag
        self.attributes = max(self.attributes, len(attributes))
        self.values += 1 + len(attributes)
        self.depth += 1

    def end(self, tag: str) -> None:
        """Count an end tag."""
        del tag
        self.depth -= 1

    def close(self) -> None:
        """Do nothing; the parser requires this method."""


def parse_html(
    markup: str,
    attributes_max: int,
    values_max: int | None = None,
    parser_type: type[etree.HTMLParser] = etree.HTMLParser,
) -> etree._Element | None:
    """Return the tree of markup, read as a browser would read it; None where there is nothing in it.

    Raises ``MarkupTooComplex`` rather than lose deeply nested text, or build a tree of a tag with more than
    ``attributes_max`` different attributes, which takes time quadratic in their number, or one of more than
    ``values_max`` elements and attributes, which takes memory.
    """
    if _may_have(markup, attributes_max + 1) or _is_long(markup, values_max):
        _check(markup, attributes_max, values_max)
    parser = parser_type(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    tree = etree.fromstring(markup.encode(), parser) if markup.strip() else None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise _too_deep()
    return tree


def _may_have(markup: str, attributes: int) -> bool:
    """Return quickly whether a tag may have this many attributes, which hardly any markup has."""
    # An attribute takes at least two characters, and only a quoted value lets a tag continue after a ">".
    chars_min = _VALUE_CHARS_MIN * attributes
    if len(markup) < chars_min:
        return False
    pieces = markup.split(">")
    return any(0 <= piece.find("<") <= len(piece) - chars_min for piece in pieces) or bool(_LONG_VALUE.search(markup))


def _is_long(markup: str, values_max: int | None) -> bool:
    return values_max is not None and len(markup) > _VALUE_CHARS_MIN * values_max


def _check(markup: str, attributes_max: int, values_max: int | None) -> None:
    """Raise ``MarkupTooComplex`` where a tree would break a limit, in time linear in the length of the markup.

    A parser without a tree follows elements to any depth, and searches all open ones for each end tag, so it is fed in
    pieces and stopped.
    """
    tags = _Tags()
    parser = etree.HTMLParser(target=tags, encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    data = markup.encode()
    for start in range(0, len(data), _PIECE_BYTES):
        parser.feed(data[start : start + _PIECE_BYTES])
        if tags.depth > _DEPTH_MAX:
            raise _too_deep()
        if values_max is not None and tags.values > values_max:
            raise MarkupTooComplex(f"it has more elements and attributes than values_max = {values_max}")
    parser.close()
    if tags.attributes > attributes_max:
        raise MarkupTooComplex(f"a tag has more than attributes_max = {attributes_max} different attributes")


def _too_deep() -> MarkupTooComplex:
    return MarkupTooComplex("elements are nested too deep")
