"""Extracts the visible text of an HTML tree, one line per block."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from lxml import etree

BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "br", "button", "caption", "center", "dd", "details"),
        *("dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3"),
        *("h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol"),
        *("optgroup", "option", "p", "pre", "search", "section", "select", "summary", "table", "tbody", "td"),
        *("textarea", "tfoot", "th", "thead", "tr", "ul"),
    }
)
"""Elements that begin and end a line."""
INLINE: Final = frozenset(
    {
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("ins", "kbd", "mark", "nobr", "q", "rb", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub"),
        *("sup", "time", "tt", "u", "var", "wbr"),
    }
)
"""Elements within a line."""
HIDDEN: Final = frozenset(["script", "style", "title", "template", "noscript", "iframe", "noembed", "noframes"])
"""Elements whose text is not visible in the page."""
HEADINGS: Final = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])


def text_of(tree: etree._Element, blocks: Collection[str] = BLOCKS, hidden: Collection[str] = HIDDEN) -> str:
    """Return the text of a whole tree with white space collapsed.

    ``blocks`` begin and end lines; ``hidden`` tags are left out.
    """
    pieces: list[str] = []
    hidden_depth = 0
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        is_hidden = element.tag in hidden
        if event == "end" and is_hidden:
            hidden_depth -= 1
        if element.tag in blocks:
            pieces.append("\n")
        if event == "start" and is_hidden:
            hidden_depth += 1
        text = element.text if event == "start" else element.tail
        if text and not hidden_depth:
            pieces.append(text.replace("\n", " "))
    return _lines(pieces)


def text_of_parts(parts: Iterable[etree._Element], left_out: Callable[[etree._Element], bool]) -> str:
    """Return the text of these elements in the form of ``text_of``, without elements for which ``left_out`` is true."""
    pieces: list[str] = []
    for part in parts:
        pieces.append("\n")
        walk = etree.iterwalk(part, events=("start", "end"))
        for event, element in walk:
            if element.tag in BLOCKS:
                pieces.append("\n")
            if event == "start" and left_out(element):
                # The walk still reports its end, and the text after it is kept.
                walk.skip_subtree()
            elif event == "start" or element is not part:
                text = element.text if event == "start" else element.tail
                if text:
                    pieces.append(text.replace("\n", " "))
    return _lines(pieces)


def _lines(pieces: Iterable[str]) -> str:
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)
