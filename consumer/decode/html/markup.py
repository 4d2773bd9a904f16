"""Parses HTML into a tree with libxml2 (lxml), within limits, so that no record stalls the stream."""

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
from lxml import etree

_LONG_VALUE: Final = re.compile(b"=[\\s]*+(?:\"[^\">]*+>|'[^'>]*+>)")
"""A quoted attribute value that contains ``>``, which elsewhere ends a tag."""

_PIECE_BYTES: Final = 16 * 1024
_DEPTH_MAX: Final = 2_200
"""Slightly more than libxml2's own limit, which applies to trees."""
_VALUE_BYTES_MIN: Final = 2
"""An element or an attribute takes at least this many bytes of markup."""
_COMPARISONS_MAX: Final = 100_000_000
"""The maximum number of comparisons of end tags with open elements, about a second of work."""


class MarkupTooComplex(ValueError):  # noqa: N818  # named for the markup, which is at fault
    """Markup nested deeper than the parser supports (2,048), or with too many elements, attributes or end tags."""


class _Tags:
    """A parser target that counts the contents of a tree without building it.

    ``attributes`` is the largest number of attributes of any tag, ``values`` the number of elements and attributes.
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
    """Return the tree that libxml2 builds from markup; None for empty markup.

    Raises ``MarkupTooComplex`` for elements nested too deeply, whose text would be lost; for a tag with more than
    ``attributes_max`` different attributes, which take quadratic time; and for more than ``values_max`` elements and
    attributes, which take memory. With ``values_max``, it also refuses many end tags among deeply nested elements,
    because each is compared with all open elements.
    """
    data = markup.encode()
    if _may_have(data, attributes_max + 1) or _may_exceed(data, values_max):
        _check(data, attributes_max, values_max)
    parser = parser_type(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    tree = etree.fromstring(data, parser) if markup and not markup.isspace() else None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise _too_deep()
    return tree


def _may_have(data: bytes, attributes: int) -> bool:
    """Return whether any tag may have this many attributes, by a quick search. False for nearly all markup."""
    # An attribute takes at least two bytes, and only a quoted value lets a tag continue after a ">".
    bytes_min = _VALUE_BYTES_MIN * attributes
    if len(data) < bytes_min:
        return False
    ends = np.append(np.flatnonzero(np.frombuffer(data, np.uint8) == ord(">")), len(data))
    starts = np.append(0, ends[:-1] + 1)
    long = np.flatnonzero(ends - starts >= bytes_min)
    pieces = zip(starts[long].tolist(), ends[long].tolist(), strict=True)
    return any(0 <= data.find(b"<", start, end) <= end - bytes_min for start, end in pieces) or bool(
        _LONG_VALUE.search(data)
    )


def _may_exceed(data: bytes, values_max: int | None) -> bool:
    """Return whether a page may exceed the limits on values or on the work of end tags, by a quick search."""
    if values_max is None:
        return False
    return len(data) > _VALUE_BYTES_MIN * values_max or data.count(b"</") * _DEPTH_MAX > _COMPARISONS_MAX


def _check(data: bytes, attributes_max: int, values_max: int | None) -> None:
    """Raise ``MarkupTooComplex`` if a tree would exceed a limit. Takes linear time.

    A parser without a tree accepts any depth, and compares each end tag with all open elements. So it gets the markup
    in pieces, and parsing stops after the piece that exceeds the limit on depth, values or comparisons.
    """
    tags = _Tags()
    parser = etree.HTMLParser(target=tags, encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    searched = 0
    for start in range(0, len(data), _PIECE_BYTES):
        piece = data[start : start + _PIECE_BYTES]
        parser.feed(piece)
        if tags.depth > _DEPTH_MAX:
            raise _too_deep()
        searched += tags.depth * piece.count(b"</")
        if values_max is not None and tags.values > values_max:
            raise MarkupTooComplex(f"it has more elements and attributes than values_max = {values_max}")
        if values_max is not None and searched > _COMPARISONS_MAX:
            raise MarkupTooComplex("it has too many end tags among deeply nested elements")
    parser.close()
    if tags.attributes > attributes_max:
        raise MarkupTooComplex(f"a tag has more than attributes_max = {attributes_max} different attributes")


def _too_deep() -> MarkupTooComplex:
    return MarkupTooComplex("elements are nested too deep")
