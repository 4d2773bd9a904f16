"""The text of an HTML body, by libxml2's parser (lxml), within limits that keep one record from stalling the stream."""

import re
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

_NAME: Final = re.compile(r"[^\s/>=]+")
NAMES_MAX: Final = 20_000
"""Different words, tags and attributes in one body. The parser compares each attribute of a tag with all before it, so
a tag of 100,000 took it 36 s. Every attribute's name is one of these, so this limit bounds it to about a second."""


class MarkupTooComplex(ValueError):  # noqa: N818  # what is the matter with it
    """The markup is nested deeper than the parser follows (2,048 elements), or has more than ``NAMES_MAX`` names."""


def text_of_html(markup: str) -> str:
    """The text that a reader would see: one line for each block, white space collapsed, character references decoded.

    Scripts, styles, titles, templates, frames and what is for readers without scripts are left out. Broken markup is
    read as a browser would. Raises ``MarkupTooComplex`` rather than lose what stands too deep, or take
    longer than the length of the markup warrants.
    """
    if len(markup) > NAMES_MAX and len(set(_NAME.findall(markup))) > NAMES_MAX:
        raise MarkupTooComplex(f"it has more than {NAMES_MAX} different words, tags and attributes")
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    tree = etree.fromstring(markup.encode(), parser) if markup.strip() else None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise MarkupTooComplex("its elements are nested too deep to be read")
    if tree is None:
        return ""
    lines = (" ".join(line.split()) for line in "".join(_pieces(tree)).split("\n"))
    return "\n".join(line for line in lines if line)


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
