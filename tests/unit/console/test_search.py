"""The search of the queue, as people use it: what is found, and what the page says of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from consumer.console.intake.indexing import Indexer, IndexerDependencies
from consumer.reviews.word_index import results
from tests.unit.console.desks import Office, Page, decide, office, page
from tests.unit.console.newsroom import article
from tests.unit.reviews.made import word_cutter

ORIGINAL = article("original", "The first report", "")


@contextmanager
def filled(folder: Path) -> Iterator[Office]:
    """Open a console with pages of three rows, and four flags that are indexed."""
    with office(folder, page_rows=3, cutter=word_cutter()) as opened:
        for n in range(4):
            text = f"The harbour reopened. {'港口重新开放' if n % 2 else 'Trains were late.'}"
            opened.room.flag(article(f"copy-{n}", f"Copy {n}", text, source="wire"), ORIGINAL, 0.99 - n / 100)
        index(opened)
        yield opened


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console that tests change."""
    with filled(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A console that tests leave as it is."""
    with filled(tmp_path_factory.mktemp("quiet")) as opened:
        yield opened


def index(desk: Office) -> None:
    """Index what waits."""
    indexing = Indexer(
        IndexerDependencies(desk.served.database, desk.articles, word_cutter(), desk.served.clock, lambda: None)
    )
    while indexing.work():
        pass


def searched(desk: Office, text: str, rest: str = "") -> Page:
    """The page of a search."""
    return page(desk.ann, f"/?q={quote(text)}{rest}")


def titles(opened: Page) -> list[str]:
    """The articles of a page."""
    return opened.texts("ol.queue h2")


def test_a_search_is_a_part_of_the_queue(desk: Office) -> None:
    """It has pages, goes with filters and orders, and whoever decides goes on with what it found."""
    assert [each.attributes["name"] for each in page(desk.ann, "/").all("form[role=search] input")] == ["q"]
    first = searched(desk, "reopened HARBOUR")
    assert titles(first) == ["Copy 3", "Copy 2", "Copy 1"]
    assert titles(page(desk.ann, first.link("Next page"))) == ["Copy 0"]
    assert "The harbour" not in first.answer.shown
    ordered = searched(desk, "港口", "&order=oldest&source=wire")
    assert titles(ordered) == ["Copy 1", "Copy 3"]
    assert ordered.form("/") == {"order": "oldest", "source": "wire", "q": "港口", "state": "open"}
    assert ordered.link("Clear") == "/?order=oldest&source=wire"
    assert ordered.all("input#q")[0].attributes["value"] == "港口"
    assert not first.all("details.filters[open]")
    link, following = ordered.hrefs("[data-item]")
    assert titles(page(desk.ann, f"/?{link.partition('?')[2]}")) == ["Copy 1", "Copy 3"]
    number = int(link.partition("?")[0].rpartition("/")[2])
    after = decide(desk.ann, number, "right", f"?q={quote('港口')}&order=oldest").header("location")
    assert after.partition("?")[0] == following.partition("?")[0]
    assert titles(searched(desk, "港口")) == ["Copy 3"]


def test_ids_and_sources_are_found_before_texts_are(desk: Office) -> None:
    """By the whole id or its beginning, also of the earlier article; a source by its name; in all states."""
    late = desk.room.flag(article("late-9", "Late", "The harbour", source="Agence Ω"), article("first", "", ""), 0.8)
    for text in ("late-9", "lat", "Agence Ω", "first"):
        assert titles(searched(desk, text)) == ["Late"]
    found = searched(desk, "harbour")
    assert "Late" not in titles(found)
    assert "1 flag is not indexed yet. Until then it can only be found by id or source." in found.answer.shown
    decide(desk.ann, late.flag_id, "right")
    decided = searched(desk, "late-9", "&state=right")
    assert titles(decided) == ["Late"]
    assert "Only open and skipped flags can be found by words." in decided.answer.shown
    assert titles(searched(desk, "la")) == []


def test_many_ids_that_begin_alike(quiet: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not all shown: somebody who writes a word would drown in them. A whole id is always found."""
    monkeypatch.setattr(results, "IDS_MAX", 2)
    opened = searched(quiet, "origina")
    assert "flags begin like this. Not all of these flags are shown. Enter more of the id." in opened.answer.shown
    assert titles(opened) == []
    assert titles(searched(quiet, "copy-2")) == ["Copy 2"]


def test_nothing_found_says_what_was_searched(quiet: Office) -> None:
    """In the words of the reader."""
    opened = searched(quiet, "zeppelin")
    assert (
        "Nothing was found for zeppelin . Searched: titles and the first 2,000 characters of the texts "
        "of 4 open or skipped flags, ids, and sources. Decided flags can only be found by id or source."
    ) in opened.answer.shown
    assert "没有找到与" in quiet.ann.get("/?q=zeppelin", accept_language="zh").shown


def test_a_part_of_the_name_of_a_source_leads_to_it(quiet: Office) -> None:
    """Whatever its case: a source is found by its whole name alone."""
    opened = searched(quiet, "WIR")
    assert "Nothing was found for WIR . " in opened.answer.shown
    assert "Sources with similar names: wire" in opened.answer.shown
    assert opened.link("wire") == "/?source=wire"
    assert "similar names" not in searched(quiet, "zeppelin").answer.shown


def test_characters_that_stand_apart_are_found_where_no_text_has_the_word(quiet: Office) -> None:
    """And the page says that they stand apart."""
    opened = searched(quiet, "口新")
    assert titles(opened) == ["Copy 3", "Copy 1"]
    assert "No flag has these words. These flags have all of their characters." in opened.answer.shown
    assert titles(searched(quiet, "开")) == ["Copy 3", "Copy 1"]
    assert titles(searched(quiet, "开 harbour trains")) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"harbour"', 3),
        ("harbour*", 3),
        ("har*", 0),
        ("NEAR(harbour reopened)", 0),
        ("harbour'; DROP TABLE flags; --", 0),
        ("harbour %", 3),
        ("%", 0),
        ("<script>harbour</script>", 0),
        ("\u202eharbour", 3),
        ("harbour\U0010ffff", 3),
        ("{{harbour}}", 3),
        (" ".join(f"word{n}" for n in range(28)), 0),
    ],
)
def test_no_search_has_a_special_meaning(quiet: Office, text: str, count: int) -> None:
    """Signs are ignored, and words that are operators elsewhere are words."""
    opened = searched(quiet, text)
    assert len(titles(opened)) == count
    assert "<script>harbour" not in opened.answer.text


def test_long_searches(quiet: Office) -> None:
    """One that is too long is refused; of one with many words the page says how many are looked up."""
    for text, said in (
        ("x" * 10_000, "“Search” has 10,000 characters; the limit is 200"),
        ("a\0b", "contains a NUL character"),
    ):
        answer = quiet.ann.get(f"/?q={quote(text)}")
        assert answer.status == 400
        assert said in answer.shown
    many = searched(quiet, " ".join(map(str, range(50))))
    assert "Only the first 32 words were searched for." in many.answer.shown


def test_without_an_index(tmp_path: Path) -> None:
    """Ids and sources are found, and the page says that texts are not."""
    with office(tmp_path, search=False) as desk:
        desk.room.flag(article("copy", "Copy", "The harbour"), ORIGINAL)
        assert titles(searched(desk, "copy")) == ["Copy"]
        opened = searched(desk, "harbour")
        assert "Only ids and sources are searched, because console.search is off." in opened.answer.shown
