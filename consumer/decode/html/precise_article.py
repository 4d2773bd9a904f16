"""Finds the article on a page with trafilatura: the extractor ``precise``.

trafilatura is an optional package, loaded when needed. It gets the tree that our parser built within limits, never the
markup, because trafilatura's own parser has no limits. ``precise_text`` is revision 1. Revision 2 first removes hidden
text, and weighs the result like ``weighed_article``.
"""

import logging
from collections.abc import Collection
from copy import deepcopy
from importlib import import_module
from typing import Any, Final

from lxml import etree

from consumer.decode.html.html_text import text_of
from consumer.decode.html.page_blocks import blocks_of
from consumer.decode.html.page_survey import PagePart, Survey, survey
from consumer.decode.html.weighed_article import rules_for, survey_long_parts
from consumer.model.errors import ConfigError
from consumer.text.install_advice import install_command

ELEMENTS_MAX: Final = 20_000
"""Pages with more elements are left to the extractor ``fast``. The largest of 130 real pages has half as many."""
DEPTH_MAX: Final = 200
"""Deeper pages are left to the extractor ``fast`` too: trafilatura visits all ancestors of an element repeatedly."""
_COMPARED_MAX: Final = 20
"""The maximum number of paragraphs of a block, longest first, to look for in the extracted text."""
_BEGINNING_CHARS: Final = 40
_LINES: Final = frozenset(["ab", "cell", "head", "item", "lb", "list", "p", "quote", "row", "table"])
"""Elements of trafilatura's trees that begin a line."""


def load() -> Any:  # noqa: ANN401  # a module
    """Return trafilatura's module. Raises ``ConfigError``, with the command that installs it, if it is missing."""
    try:
        module = import_module("trafilatura")
    except ImportError as error:
        raise ConfigError(
            f'source.extractor = "precise" needs a package that is not installed ({error}). Install it with:\n'
            f"{install_command('pages')}"
        ) from error
    # The package warns about each page without an article. Metrics count these pages.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    return module


def precise_text(tree: etree._Element) -> str:
    """Return the text of the article on a page, one line per block; "" if none is found.

    The result is also "" if the page is too large or too deep. The tree must come from the parser of ``lxml.html``.
    """
    return "" if _is_costly(tree) else _found_text(tree)


def weighed_precise_text(tree: etree._Element) -> str:
    """Return the text like ``precise_text``, but of visible text only; "" also if it leaves out a longer block."""
    if _is_costly(tree):
        return ""
    rules = rules_for(tree)
    text = _found_text(_without(tree, {*rules.unseen, *rules.fading}))
    page = survey(tree, rules)
    return "" if page is None or _is_outweighed(text, page) else text


def _without(tree: etree._Element, unseen: Collection[etree._Element]) -> etree._Element:
    """Return a copy of the tree without these elements. The text after them is kept."""
    copied = deepcopy(tree)
    twins = [twin for element, twin in zip(tree.iter(), copied.iter(), strict=True) if element in unseen]
    for twin in twins:
        if twin is not copied:
            twin.drop_tree()
    return copied


def _is_outweighed(text: str, page: Survey) -> bool:
    """Return whether some block of the page is longer than the text and mostly missing from it."""
    size = len(text.encode())
    survey_long_parts(page, size)
    letters = "".join(text.split())
    for block in blocks_of(page):
        if block.size_without(()) > size:
            longest = sorted(block.paragraphs, key=lambda part: -part.own)[:_COMPARED_MAX]
            missing = [part for part in longest if not _begins_within(part, letters)]
            if 2 * sum(part.own for part in missing) > sum(part.own for part in longest):
                return True
    return False


def _begins_within(part: PagePart, letters: str) -> bool:
    return "".join("".join(part.element.itertext()).split())[:_BEGINNING_CHARS] in letters


def _found_text(tree: etree._Element) -> str:
    try:
        document = load().bare_extraction(tree, favor_precision=True, include_comments=False)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, etree.LxmlError):
        # A defect in the package: treat the page as one without an article.
        return ""
    return "" if document is None else text_of(document.body, _LINES, hidden=())


def _is_costly(tree: etree._Element) -> bool:
    elements = depth = 0
    for event, _ in etree.iterwalk(tree, events=("start", "end")):
        if event == "end":
            depth -= 1
            continue
        elements += 1
        depth += 1
        if elements > ELEMENTS_MAX or depth > DEPTH_MAX:
            return True
    return False
