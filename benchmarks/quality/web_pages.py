"""Whole web pages against the text of their article.

``python -m benchmarks.quality.web_pages FOLDER``, with the folder of a data set:

- ``readability/test/test-pages`` of https://github.com/mozilla/readability: a folder for each page, with the page,
  ``source.html``, and the markup of its article, ``expected.html``;
- ``article-extraction-benchmark`` of https://github.com/scrapinghub/article-extraction-benchmark: compressed pages, and
  the texts of their articles in ``ground-truth.json``. ``--output`` writes what is extracted for its ``evaluate.py``.

The texts of all articles are judged first, then what each extractor makes of the pages; a page *finds its text* if it
is flagged as a duplicate of it, or of the article that this text was flagged as a duplicate of. An undeserved flag is
one between texts that are less than 0.5 alike (``score``). Times are of the processor, for one page, the best of three.
"""

import gzip
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from benchmarks.quality.feed import Article, in_feed_order, write_lines
from benchmarks.quality.pairs import similar_pairs
from benchmarks.quality.schemes import SCHEMES, judge_with_scheme, rate_text
from benchmarks.quality.score import Quality, Verdict, measure, wilson
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.decode.html.html_reader import text_of_html
from consumer.decode.html.markup import MarkupTooComplex
from consumer.decode.html.page import read_page
from consumer.model.limits import DecodeLimits

PART: Final = "web_pages"
GROUND_TRUTH: Final = "ground-truth.json"
TIMES: Final = 3
OWN_TEXT: Final = "~text"
_LIMITS: Final = DecodeLimits()

Extract = Callable[[str], str]


def whole_text(markup: str) -> str:
    """Return the text of a page with all that is around the article: ``source.body_format = "html"``."""
    return text_of_html(markup, _LIMITS.attributes_max)


EXTRACTORS: Final[Mapping[str, Extract]] = {
    "html": whole_text,
    "article, fast": lambda markup: read_page(markup, "fast/2", _LIMITS).text,
    "article, precise": lambda markup: read_page(markup, "precise/2", _LIMITS).text,
}


class TestPage(NamedTuple):
    """A page, and the text of its article."""

    name: str
    markup: str
    text: str


class Extracted(NamedTuple):
    """The texts of the pages, in their order, and the time that each took; ``refused`` counts pages too complex."""

    texts: list[str]
    seconds: list[float]
    refused: int


def read_pages(folder: Path) -> Iterator[TestPage]:
    """Yield the pages of a data set by name; one whose article has no text is left out."""
    truth = folder / GROUND_TRUTH
    return _pages_with_texts(folder, truth) if truth.exists() else _pages_with_markup(folder)


def _pages_with_texts(folder: Path, truth: Path) -> Iterator[TestPage]:
    for name, page in sorted(json.loads(truth.read_bytes()).items()):
        markup = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()).decode("utf-8", "replace")
        if page["articleBody"]:
            yield TestPage(name, markup, page["articleBody"])


def _pages_with_markup(folder: Path) -> Iterator[TestPage]:
    for page in sorted(folder.glob("*/source.html")):
        expected = page.with_name("expected.html")
        text = whole_text(expected.read_text("utf-8", "replace")) if expected.exists() else ""
        if text:
            yield TestPage(page.parent.name, page.read_text("utf-8", "replace"), text)


def extracted(pages: Sequence[TestPage], extract: Extract, clock: Callable[[], float] = time.process_time) -> Extracted:
    """Extract and time each page; one that is too complex gives no text."""
    texts, seconds, refused = [], [], 0
    for page in pages:
        text, taken = "", []
        try:
            for _ in range(TIMES):
                began = clock()
                text = extract(page.markup)
                taken.append(clock() - began)
        except MarkupTooComplex:
            refused += 1
        texts.append(text)
        seconds.append(min(taken, default=0.0))
    return Extracted(texts, seconds, refused)


def feed_of_pages(pages: Sequence[TestPage], texts: Sequence[str]) -> list[Article]:
    """Return the articles' own texts, and then what was extracted from the pages, each in an order of its own."""
    rng = random.Random(1)
    own = [Article(id=f"{page.name}{OWN_TEXT}", body=page.text) for page in pages]
    whole = [Article(id=page.name, body=text) for page, text in zip(pages, texts, strict=True)]
    return list(in_feed_order([*rng.sample(own, len(own)), *rng.sample(whole, len(whole))]))


def found_their_text(pages: Sequence[TestPage], verdicts: Sequence[Verdict]) -> list[bool]:
    """Say of each page whether it was flagged as a duplicate of its own text."""
    original = {verdict.id: verdict.duplicate_of for verdict in verdicts}

    def root(article_id: str) -> str:
        while named := original[article_id]:
            article_id = named
        return article_id

    return [original[page.name] is not None and root(page.name) == root(f"{page.name}{OWN_TEXT}") for page in pages]


def write_texts(path: Path, pages: Sequence[TestPage], texts: Sequence[str]) -> None:
    """Write the texts as ``evaluate.py`` of the article-extraction-benchmark reads them."""
    found = {page.name: {"articleBody": text} for page, text in zip(pages, texts, strict=True)}
    path.write_text(json.dumps(found), encoding="utf-8")


def row(name: str, scheme: str, found: Sequence[bool], quality: Quality, done: Extracted) -> Row:
    """Return the row of an extractor and a scheme."""
    return {
        "extractor": name,
        "scheme": scheme,
        "pages": len(found),
        "find their text": sum(found),
        "even, odd": f"{sum(found[::2])} + {sum(found[1::2])}",
        "share": rate_text(wilson(sum(found), len(found))),
        "undeserved flags": quality.wrong,
        "refused": done.refused,
        "ms a page": 1e3 * sum(done.seconds) / max(1, len(done.seconds)),
        "median": 1e3 * statistics.median(done.seconds or [0.0]),
        "worst": 1e3 * max(done.seconds, default=0.0),
    }


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder of a data set.")],
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    show: Annotated[int, typer.Option(min=0, help="How many pages to name that do not find their text.")] = 0,
    output: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Folder for the texts of each extractor.")
    ] = None,
) -> None:
    """Count the pages that find the text of their article, with each extractor and scheme."""
    pages = list(read_pages(folder))
    if not pages:
        raise typer.BadParameter(f"{folder} has neither {GROUND_TRUTH} nor folders with source.html and expected.html")
    rows: list[Row] = []
    for name, extract in EXTRACTORS.items():
        tell(f"{name} …")
        done = extracted(pages, extract)
        if output is not None:
            write_texts(output / f"dupwatch, {name}.json", pages, done.texts)
        feed = feed_of_pages(pages, done.texts)
        pairs = similar_pairs(feed)
        for scheme in SCHEMES:
            with tempfile.TemporaryDirectory() as temporary:
                path = Path(temporary) / "pages.jsonl"
                write_lines(path, feed)
                verdicts = judge_with_scheme(path, scheme)
            found = found_their_text(pages, verdicts)
            quality = measure([article.id for article in feed], pairs, verdicts)
            rows.append(row(name, scheme, found, quality, done))
            for page in [page.name for page, is_found in zip(pages, found, strict=True) if not is_found][:show]:
                tell(f"{name}, {scheme}: {page} does not find its text")
            for flag in quality.wrong_flags[:show]:
                tell(f"{name}, {scheme}: {flag.id} flagged as {flag.other}, {flag.jaccard} alike")
    publish(PART, f"Web pages of {folder.name}", rows, out=out, pages=len(pages))


if __name__ == "__main__":
    typer.run(main)
