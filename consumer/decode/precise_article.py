"""Finds the article of a page with trafilatura: the extractor ``precise``. An optional package, loaded when needed.

It gets the tree that our parser has made within its limits, never the markup: its own parsing has none of them.
"""

import logging
from importlib import import_module
from typing import Any, Final

from lxml import etree

from consumer.decode.html_text import text_of
from consumer.model.errors import ConfigError
from consumer.text.install_advice import install_command

ELEMENTS_MAX: Final = 20_000
"""A page of more elements is left to the other extractor. The largest of 130 real pages has half of that."""
DEPTH_MAX: Final = 200
"""Nor is one with deeper elements read: the package looks at all that is around an element again and again."""
_LINES: Final = frozenset(["ab", "cell", "head", "item", "lb", "list", "p", "quote", "row", "table"])
"""Elements of trafilatura's trees that begin a line."""


def load() -> Any:  # noqa: ANN401  # a module
    """Load the package. Raises ``ConfigError`` with the command that installs it, where it is missing."""
    try:
        module = import_module("trafilatura")
    except ImportError as error:
        raise ConfigError(
            f'source.extractor = "precise" needs a package that is not installed ({error}). Install it with:\n'
            f"{install_command('pages')}"
        ) from error
    # It warns of each page without an article, which is counted here.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    return module


def precise_text(tree: etree._Element) -> str:
    """Return the text of the article of a page, one line per block; "" where none is found, or a page is too large.

    The tree must be one of ``lxml.html``.
    """
    if _is_costly(tree):
        return ""
    try:
        found = load().bare_extraction(tree, favor_precision=True, include_comments=False)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, etree.LxmlError):
        # A page that the package has a defect with is a page without an article to it.
        return ""
    return "" if found is None else text_of(found.body, _LINES, hidden=())


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
