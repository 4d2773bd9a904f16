"""Pages that hide their article from careless rules, and copies on ordinary ones, by how alike their texts are."""

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
import pytest

from benchmarks.quality.judging import KEYED, versions_of
from consumer.decode.html import page_survey
from consumer.decode.html.page import read_page
from consumer.model.article import ExtractionOutcome, PageForm
from consumer.model.limits import DecodeLimits
from tests.examples import drawn
from tests.ordinary_sites import SITES
from tests.written_pages import MENU, ODD, comments, long_notice, notice, paragraphs, related
from tests.written_prose import LANGUAGES, SUBJECTS, prose

LIMITS: Final = DecodeLimits()
LENGTHS: Final = (800, 3_000)
PAGES: Final = [
    (kind, LANGUAGES[(place + lap) % len(LANGUAGES)], chars, (place + 2 * lap) % 5)
    for (lap, chars), (place, kind) in product(enumerate(LENGTHS), enumerate(ODD))
]
"""Each kind of page in two languages and lengths, and with two sets of what else is on it."""
COPIES: Final = [
    (site, LANGUAGES[(site + lap) % len(LANGUAGES)], (800, 1_500, 3_000)[lap % 3], lap if lap < 3 else None)
    for lap, site in product(range(8), range(len(SITES)))
]
"""Each site in eight languages; the first three times with comments three times as long as the article."""


def alike(texts: Sequence[str], others: Sequence[str]) -> list[float]:
    """Return how alike each text and the other of the same place are, as the default scheme sees them."""
    similarity = KEYED.definition.sketch_similarity
    pairs = zip(versions_of(texts), versions_of(others), strict=True)
    return [float(similarity(*(np.frombuffer(version.record.sketch, np.uint8) for version in pair))) for pair in pairs]


def odd_page(kind: str, language: str, chars: int, around: int, subject: str) -> str:
    """Return a page of a site of this kind; what is around an article is the same on its other pages."""
    before, after = (
        ("", notice(language)),
        (notice(language), ""),
        (MENU, related(language) + comments(language, chars // 2, 5, around) + notice(language)),
        (MENU + notice(language), comments(language, 3 * chars, len(subject), around)),
        (MENU, long_notice(language)),
    )[around]
    article = ODD[kind](prose(language, subject, chars))
    return f"<html><head><title>x</title></head><body>{before}{article}{after}</body></html>"


@pytest.mark.parametrize("extractor", ["fast/2", "precise/2"])
def test_two_articles_of_one_site_are_not_alike(extractor: PageForm) -> None:
    """Whatever wrapper they stand in, what they are made of, and what is the same on both pages."""
    assert len(PAGES) >= 100
    pages = drawn(PAGES, 2)
    texts = [[read_page(odd_page(*page, subject), extractor, LIMITS).text for page in pages] for subject in SUBJECTS]
    found = alike(*texts)
    assert [
        page for page, similarity in zip(pages, found, strict=True) if similarity >= KEYED.definition.similarity_min
    ] == []


@pytest.mark.parametrize(("revision", "found_min"), [("fast/1", 0), ("fast/2", 0.9)])
def test_the_article_is_found_on_odd_pages(revision: PageForm, found_min: float) -> None:
    """Not only what is different: nearly always the article itself. Revision 1 finds the notice on half of them."""
    pages = [read_page(odd_page(*page, SUBJECTS[0]), revision, LIMITS) for page in PAGES]
    own = ["\n".join(prose(language, SUBJECTS[0], chars)) for _, language, chars, _ in PAGES]
    found = [similarity >= KEYED.definition.similarity_min for similarity in alike([page.text for page in pages], own)]
    assert sum(found) >= found_min * len(found)
    assert (sum(found) < len(found) / 2) == (revision == "fast/1")


@pytest.mark.parametrize(("extractor", "missed_max"), [("fast/2", 3), ("precise/2", 5)])
def test_copies_on_ordinary_pages_are_alike(extractor: PageForm, missed_max: int) -> None:
    """Nearly all, also where comments are three times as long as the article."""
    assert (len(COPIES), sum(form is not None for *_, form in COPIES)) == (64, 24)
    texts = [prose(language, SUBJECTS[0], chars, site) for site, language, chars, _ in COPIES]
    pages = []
    for place, ((site, language, chars, form), text) in enumerate(zip(COPIES, texts, strict=True)):
        thread = "" if form is None else comments(language, 3 * chars, place, form)
        pages.append(read_page(SITES[site](language, text, thread), extractor, LIMITS).text)
    found = alike(pages, ["\n".join(text) for text in texts])
    missed = [
        copy for copy, similarity in zip(COPIES, found, strict=True) if similarity < KEYED.definition.similarity_min
    ]
    assert len(missed) <= missed_max


NOTICE: Final = f"<div id=bottom>{paragraphs([' '.join(prose('en', 'kitchen', 260))])}</div>"
ARTICLE: Final = prose("en", "island", 800)


def read(body: str) -> tuple[ExtractionOutcome, str]:
    """Return what the default extractor finds in a body."""
    page = read_page(f"<html><body>{body}</body></html>", "fast/2", LIMITS)
    return page.extracted, page.text


def test_no_article_is_taken_that_a_longer_block_outweighs() -> None:
    """The whole text is judged if no search ends with the longest block: one of lines too short to give points."""
    lines = paragraphs([f"Bolt, size {number}" for number in range(100)], "li")
    extracted, text = read(f"<div class=story>{paragraphs(ARTICLE[:2])}</div><ul>{lines}</ul>")
    assert extracted is ExtractionOutcome.WHOLE_TEXT
    assert text == "\n".join([*ARTICLE[:2], *(f"Bolt, size {number}" for number in range(100))])


def test_comments_do_not_outweigh_what_is_marked_as_an_article() -> None:
    """Not even where they come without names, so that they cannot be told from paragraphs."""
    thread = f"<div class=comments>{paragraphs(prose('en', 'kitchen', 2_400))}</div>"
    article = f"<article>{paragraphs(ARTICLE)}</article>"
    assert read(f"{article}{thread}") == (ExtractionOutcome.ARTICLE, "\n".join(ARTICLE))
    # Above the article they are more likely to be one.
    assert read(f"{thread}{article}")[1] != "\n".join(ARTICLE)


def test_only_the_hints_at_the_longest_block_are_doubted() -> None:
    """Names are believed elsewhere: teasers within the article's wrapper stay out of it."""
    teasers = f"<div class=related>{paragraphs(prose('en', 'kitchen', 300))}</div>"
    extracted, text = read(f"<form class=sidebar>{paragraphs(ARTICLE)}{teasers}</form>{NOTICE}")
    assert (extracted, text) == (ExtractionOutcome.ARTICLE, "\n".join(ARTICLE))


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_list_that_is_doubted_competes_with_a_notice(language: str) -> None:
    """On equal terms: lists have fewer points than other elements, unless nothing else is left."""
    items = prose(language, "island", 800)
    body = f"{MENU}<ol class=menu>{paragraphs(items, 'li')}</ol>{long_notice(language)}"
    assert read(body) == (ExtractionOutcome.ARTICLE, "\n".join(items))


def test_pieces_of_an_article_in_like_elements_belong_together() -> None:
    """A letter, an advert and the rest of the letter, each deep in elements of its own."""
    rest = prose("en", "kitchen", 2_000)
    pieces = "<hr>".join(
        f"<div><div><div><div><div class=text>{paragraphs(piece)}</div></div></div></div></div>"
        for piece in (ARTICLE, rest)
    )
    assert read(f"{MENU}<div id=page>{pieces}</div>{NOTICE}") == (
        ExtractionOutcome.ARTICLE,
        "\n".join([*ARTICLE, *rest]),
    )


def test_a_notice_beside_an_article_is_left_out() -> None:
    """Beside it in the body, and beside it in another element, where it has half of its points at most."""
    article = f"<div class=one>{paragraphs(ARTICLE)}</div>"
    assert read(f"{article}{NOTICE}")[1] == "\n".join(ARTICLE)
    long = prose("en", "island", 2_000)
    page = f"<div id=page><h2>News</h2><div class=one>{paragraphs(long)}</div>{NOTICE}</div>"
    assert read(page)[1] == "\n".join(long)


def test_lines_between_breaks_are_paragraphs_without_any_commas() -> None:
    """In Thai, with comments of which each comes in a paragraph."""
    text = prose("th", "island", 1_500)
    page = SITES[3]("th", text, comments("th", 4_500, 1, 3))
    assert alike([read_page(page, "fast/2", LIMITS).text], ["\n".join(text)])[0] >= KEYED.definition.similarity_min


def test_a_headline_is_the_title_and_no_text() -> None:
    """A heading further down is text."""
    texts = [f"<h1>News</h1>{paragraphs(ARTICLE[:2])}<h1>Later</h1>{paragraphs(ARTICLE[2:])}"]
    assert read(f"<article>{''.join(texts)}</article>{NOTICE}")[1] == "\n".join([*ARTICLE[:2], "Later", *ARTICLE[2:]])


def test_lists_of_prose_with_links_are_text() -> None:
    """Lists with more text outside of links than in them are no navigation."""
    items = "".join(f"<li>{text} <a href='/'>See the whole report of that</a></li>" for text in ARTICLE[:2])
    assert "whole report" in read(f"<article>{paragraphs(ARTICLE)}<ul>{items}</ul></article>")[1]
    links = "".join(f"<li><a href='/'>{text}</a></li>" for text in ARTICLE[:2])
    assert read(f"<article>{paragraphs(ARTICLE)}<ul>{links}</ul></article>")[1] == "\n".join(ARTICLE)


@pytest.mark.parametrize(
    "opening",
    [
        "<div id=onetrust-consent-sdk>",
        "<div id=sp_message_container_7>",
        "<div role=dialog><button>Yes</button>",
        "<div style='position: fixed; bottom: 0'><button>Yes</button>",
        "<style>.bar{position:fixed}</style><div class=bar><button>Yes</button>",
    ],
)
def test_dialogs_in_front_of_a_page_are_no_articles(opening: str) -> None:
    """However long they are."""
    dialog = f"{opening}{paragraphs(prose('en', 'kitchen', 1_200))}</div>"
    assert read(f"<div>{paragraphs(ARTICLE)}</div>{dialog}") == (ExtractionOutcome.ARTICLE, "\n".join(ARTICLE))


@pytest.mark.parametrize(
    ("opening", "chars"),
    [("<div role=dialog><h1>News</h1>", 800), ("<div style='position:fixed;overflow:auto'>", 3_000)],
)
def test_a_page_within_a_dialog_is_found(opening: str, chars: int) -> None:
    """It has a headline, or nearly all of the text."""
    article = prose("en", "island", chars)
    page = f"{opening}<button>Close</button>{paragraphs(article)}</div>{NOTICE}"
    assert read(page) == (ExtractionOutcome.ARTICLE, "\n".join(article))


def test_elements_that_stand_apart_are_counted_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is weighed later is work, too."""
    page = f"<div>{paragraphs(ARTICLE)}</div><form>{'<hr>' * 60}</form>"
    assert read(page)[0] is ExtractionOutcome.ARTICLE
    monkeypatch.setattr(page_survey, "ELEMENTS_MAX", 50)
    assert read(page)[0] is ExtractionOutcome.WHOLE_TEXT
