"""Extracts the text of a tree of HTML: what a reader sees, one line per block."""

from collections.abc import Callable, Collection, Iterable

from lxml import etree

from consumer.decode.html_tags import BLOCKS, HIDDEN


def text_of(tree: etree._Element, blocks: Collection[str] = BLOCKS, hidden: Collection[str] = HIDDEN) -> str:
    """Return the text of a whole tree, white space collapsed: ``blocks`` begin lines, ``hidden`` are left out."""
    pieces: list[str] = []
    around = 0
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        is_hidden = element.tag in hidden
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
