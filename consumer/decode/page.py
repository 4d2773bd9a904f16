"""Reads a web page: the text of its article, or else the whole text, and its title."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from lxml import etree, html

from consumer.decode import precise_article
from consumer.decode.html_text import text_of
from consumer.decode.markup import parse_html
from consumer.decode.page_article import article_text
from consumer.decode.page_title import page_title
from consumer.model.article import Extracted, ExtractorName
from consumer.model.limits import DecodeLimits

ARTICLE_BYTES_MIN: Final = 140
"""What is found is no article if it has fewer bytes of UTF-8: two short sentences."""


class Page(NamedTuple):
    """The text that is judged, what it is of the page, and the page's title, "" where it has none."""

    text: str
    extracted: Extracted
    title: str


@dataclass(frozen=True, slots=True)
class Extractor:
    """One way of finding the article of a page; ``find`` returns "" where it finds none.

    ``revision`` names what is found, title and whole text included. It is among the settings that a store is bound to,
    so it changes when the same page gives another text, and at no other time: ``tests/fixtures/pages`` pins it.
    """

    revision: str
    find: Callable[[etree._Element], str]
    parser: type[etree.HTMLParser] = etree.HTMLParser
    load: Callable[[], object] | None = None


_EXTRACTORS: Final[Mapping[ExtractorName, Extractor]] = MappingProxyType(
    {
        "fast": Extractor("fast/1", article_text),
        "precise": Extractor("precise/1", precise_article.precise_text, html.HTMLParser, precise_article.load),
    }
)


def revision_of(name: ExtractorName) -> str:
    """Return the name of an extractor with the revision of its output."""
    return _EXTRACTORS[name].revision


def load_extractor(name: ExtractorName) -> None:
    """Load what an extractor needs; ``ConfigError`` where it is not installed."""
    load = _EXTRACTORS[name].load
    if load is not None:
        load()


def read_page(markup: str, name: ExtractorName, limits: DecodeLimits) -> Page:
    """Read a page. Raises ``MarkupTooComplex``.

    The text is not limited here. The title is cut to ``title_chars_max``.
    """
    extractor = _EXTRACTORS[name]
    tree = parse_html(markup, limits.attributes_max, limits.values_max, extractor.parser)
    if tree is None:
        return Page("", Extracted.WHOLE_TEXT, "")
    title = page_title(tree)[: limits.title_chars_max]
    for found_by, text in _found(tree, extractor):
        if len(text.encode()) >= ARTICLE_BYTES_MIN:
            return Page(text, found_by, title)
    return Page(text_of(tree), Extracted.WHOLE_TEXT, title)


def _found(tree: etree._Element, extractor: Extractor) -> Iterator[tuple[Extracted, str]]:
    yield Extracted.ARTICLE, extractor.find(tree)
    if extractor.find is not article_text:
        yield Extracted.FAST_ARTICLE, article_text(tree)
