"""Extracts the text of HTML: what a reader sees, one line per block."""

from collections.abc import Callable, Collection, Iterable

from lxml import etree

from consumer.decode.html_reader import tree_of
from consumer.decode.html_tags import BLOCKS, HIDDEN
from consumer.model.article import READER_REVISION


def text_of_html(markup: str, attributes_max: int, revision: int = READER_REVISION) -> str:
    """Return the text that a reader would see: one line per block, white space collapsed, references decoded.

    Scripts, styles, titles, templates, frames and noscript elements are left out. ``revision`` is that of the reader
    (``html_reader``). Raises ``MarkupTooComplex`` as ``parse_html`` does.
    """
    tree = tree_of(markup, revision, attributes_max)
    return "" if tree is None else text_of(tree)


def text_of(
    tree: etree._Element,
    blocks: Collection[str] = BLOCKS,
    hidden: Collection[str] = HIDDEN,
    left_out: Collection[etree._Element] = frozenset(),
) -> str:
    """Return the text of a whole tree, as ``text_of_html`` does.

    ``blocks`` are the tags that begin lines. Elements with ``hidden`` tags, and those in ``left_out``, do not count.
    """
    pieces: list[str] = []
    around = 0
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        is_hidden = element.tag in hidden or element in left_out
        if event == "end" and is_hidden:
            around -= 1
        if element.tag in blocks:
            pieces.append("\n")
        if event == "start" and is_hidden:
            around += 1
        text = element.text if event == "start" else element.tail
        if text and not around:
            pieces.append(text.replace("\n", " "))
    return _lines(pieces)


def text_of_parts(parts: Iterable[etree._Element], left_out: Callable[[etree._Element], bool]) -> str:
    """Return the text of these elements, in the same form, without that of elements which are ``left_out``."""
    pieces: list[str] = []
    for part in parts:
        pieces.append("\n")
        walk = etree.iterwalk(part, events=("start", "end"))
        for event, element in walk:
            if element.tag in BLOCKS:
                pieces.append("\n")
            if event == "start" and left_out(element):
                # Its end comes all the same, and the text behind it stays.
                walk.skip_subtree()
            elif event == "start" or element is not part:
                text = element.text if event == "start" else element.tail
                if text:
                    pieces.append(text.replace("\n", " "))
    return _lines(pieces)


def _lines(pieces: Iterable[str]) -> str:
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)
