"""Reads web pages: the text of the article, or else the whole text, and the title."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from lxml import etree, html

from consumer.decode.html.hidden_text import seen_text
from consumer.decode.html.html_reader import tree_of
from consumer.decode.html.html_text import text_of
from consumer.decode.html.page_article import article_text
from consumer.decode.html.precise_article import load, precise_text, weighed_precise_text
from consumer.decode.html.weighed_article import weighed_article_text
from consumer.model.article import BodyForm, ExtractionOutcome, PageForm
from consumer.model.limits import DecodeLimits

ARTICLE_BYTES_MIN: Final = 140
"""The minimum size of an article in UTF-8: two short sentences."""


class PageText(NamedTuple):
    """The text to judge, how it was found, and the page's title, or ""."""

    text: str
    extracted: ExtractionOutcome
    title: str


@dataclass(frozen=True, slots=True)
class Extractor:
    """A way to find the article on a page. ``find`` returns "" if it finds no article.

    ``reader`` is the revision of the reader that builds the tree, ``parser`` the type of parser that the reader uses.
    If ``find`` returns less than ``ARTICLE_BYTES_MIN``, ``fallback`` is tried, and then ``whole_text``. ``load`` loads
    the package that ``find`` needs, if any.
    """

    reader: int
    find: Callable[[etree._Element], str]
    fallback: Callable[[etree._Element], str] | None = None
    whole_text: Callable[[etree._Element], str] = text_of
    parser: type[etree.HTMLParser] = etree.HTMLParser
    load: Callable[[], object] | None = None


EXTRACTORS: Final[Mapping[PageForm, Extractor]] = MappingProxyType(
    {
        "fast/1": Extractor(1, article_text),
        "fast/2": Extractor(2, weighed_article_text, whole_text=seen_text),
        "precise/1": Extractor(1, precise_text, article_text, text_of, html.HTMLParser, load),
        "precise/2": Extractor(2, weighed_precise_text, weighed_article_text, seen_text, html.HTMLParser, load),
    }
)
"""The extractors by name and revision.

Stores are bound to a revision, so its results must never change: ``tests/fixtures/pages`` pins them.
"""


def load_extractor(form: BodyForm) -> None:
    """Load the package that a form of bodies needs, if any. Raises ``ConfigError`` if it is not installed."""
    extractor = EXTRACTORS.get(cast("PageForm", form))
    if extractor is not None and extractor.load is not None:
        extractor.load()


def read_page(markup: str, form: PageForm, limits: DecodeLimits) -> PageText:
    """Read a page. Raises ``MarkupTooComplex``, and ``ConfigError`` as ``load_extractor`` does.

    The text is not limited here. The title is cut to ``title_chars_max``.
    """
    extractor = EXTRACTORS[form]
    tree = tree_of(markup, extractor.reader, limits.attributes_max, limits.values_max, extractor.parser)
    if tree is None:
        return PageText("", ExtractionOutcome.WHOLE_TEXT, "")
    title = _page_title(tree)[: limits.title_chars_max]
    for found_by, text in _attempts(tree, extractor):
        if len(text.encode()) >= ARTICLE_BYTES_MIN:
            return PageText(text, found_by, title)
    return PageText(extractor.whole_text(tree), ExtractionOutcome.WHOLE_TEXT, title)


def _attempts(tree: etree._Element, extractor: Extractor) -> Iterator[tuple[ExtractionOutcome, str]]:
    yield ExtractionOutcome.ARTICLE, extractor.find(tree)
    if extractor.fallback is not None:
        yield ExtractionOutcome.FAST_ARTICLE, extractor.fallback(tree)


def _page_title(tree: etree._Element) -> str:
    """Return the title of a page on one line, or "".

    ``og:title`` is the headline for links to the page. ``title`` often includes the name of the site, and the first
    ``h1`` may be that name alone.
    """
    found: dict[str, str] = {}
    for element in tree.iter("meta", "title", "h1"):
        if element.tag != "meta":
            # Take only the first of each, since pictures within the page have titles, too.
            if element.tag not in found:
                found[element.tag] = _on_one_line(element.text or "" if element.tag == "title" else text_of(element))
        elif "og:title" in {element.get("property"), element.get("name")} and (
            title := _on_one_line(element.get("content") or "")
        ):
            return title
    return found.get("title") or found.get("h1") or ""


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
