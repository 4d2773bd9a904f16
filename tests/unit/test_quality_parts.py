"""The measuring of parts: copies that have what they should, and figures that are known by hand."""

import random
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.quality import parts
from benchmarks.quality.feed import Article, write_lines
from benchmarks.quality.part_cases import CHARS_MIN, FOOTERS, KINDS, feed_of_parts, halved
from benchmarks.quality.parts import Index, Name, Rules, Truth, measured, named, recall, right_names
from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.parts import parts_batch, unpacked_anchors


def words(rng: random.Random, characters: int) -> str:
    """Sentences of random words."""
    text = ""
    while len(text) < characters:
        text += "".join(rng.choices("abcdefghijklmnop", k=rng.randrange(2, 9))) + rng.choice((" ", " ", " ", ". "))
    return text[:characters]


@pytest.fixture(scope="module")
def feed() -> list[Article]:
    """Articles of which every second one is long enough for a copy."""
    rng = random.Random(1)
    return [Article(id=f"{number}", body=words(rng, (1_200, 500)[number % 2]), lang="en") for number in range(60)]


def test_copies_have_a_half_of_their_original(feed: list[Article]) -> None:
    """Each kind; all come after it, and equal seeds give equal feeds."""
    made = feed_of_parts(feed, seed=3, share=1.0)
    assert made == feed_of_parts(feed, seed=3, share=1.0)
    assert made != feed_of_parts(feed, seed=4, share=1.0)
    ids = [article.id for article in made]
    bodies = {article.id: article.body for article in feed}
    copies = [article for article in made if "~" in article.id]
    assert {article.id.partition("~")[2] for article in copies} == set(KINDS)
    assert len(copies) == 30
    for copy in copies:
        original, _, kind = copy.id.partition("~")
        assert ids.index(original) < ids.index(copy.id)
        half = len(bodies[original]) // 2
        assert any(bodies[original][start : start + half] in copy.body for start in range(half + 1))
        assert (len(copy.body) == half) == (kind == "half")


def test_some_articles_have_the_footer_of_their_language() -> None:
    """And a half is half of the text, wherever it is cut."""
    articles = [Article(id=f"{number}", body="字" * 50, lang=("zh", "en")[number % 2]) for number in range(400)]
    made = feed_of_parts(articles, seed=1, share=1.0)
    for lang, is_cjk in (("zh", True), ("en", False)):
        footed = [article for article in made if article.body.endswith(FOOTERS[is_cjk])]
        assert 3 < len(footed) < 25
        assert {article.lang for article in footed} == {lang}
    rng = random.Random(2)
    text = words(rng, CHARS_MIN)
    halves = {halved(text, rng) for _ in range(40)}
    assert len(halves) > 5
    assert all(len(half) == CHARS_MIN // 2 and half in text for half in halves)


def test_rows_that_are_too_long_are_read_and_ignored() -> None:
    """What is read is counted, also of these; a row is kept no longer than that shows."""
    (packed,) = parts_batch([words(random.Random(5), 300)]).anchors
    anchors = unpacked_anchors(packed)[:3]
    index = Index(row_max=2)
    for place in range(5):
        index.post(anchors[:2], place)
    index.post(anchors[2:], 9)
    assert index.look_up(anchors) == [9]
    assert (index.rows_read, index.postings_read, index.postings_written) == (3, 7, 11)


def test_names_of_a_feed_that_is_known(feed: list[Article]) -> None:
    """A half names its original, a footer nobody once it is known, and unrelated texts nobody."""
    rng = random.Random(6)
    footer = words(rng, 500)
    texts = [article.body for article in feed]
    footed = [f"{words(rng, 700)} {footer}" for _ in range(30)]
    names, work = named([*texts, texts[0][:600], *footed], Rules())
    assert [(name.place, name.earlier) for name in names if name.place <= len(texts)] == [(len(texts), 0)]
    assert names[0].share == pytest.approx(1.0)
    assert all(name.place < len(texts) + 1 + 13 for name in names)
    assert work.rows <= 8
    assert work.written <= 16


def test_right_is_what_is_shared_beyond_footers() -> None:
    """Two thirds of what is asked for are enough; in hindsight, shingles of many texts do not count."""
    rng = random.Random(7)
    footer, shared, short = words(rng, 600), words(rng, 300), words(rng, 90)
    footed = [f"{words(rng, 300)} {footer}" for _ in range(5)]
    texts = [*footed, shared + words(rng, 300), words(rng, 400) + shared, short + words(rng, 90), short]
    texts += [f"{words(rng, 300)} {normalise(FOOTERS[False])}" for _ in range(2)]
    in_hindsight, truth = Truth(texts, common_max=3), Truth(texts, None)
    names = [Name(1, 0, 0.6, 500), Name(6, 5, 0.5, 300), Name(8, 7, 1.0, 80)]
    names += [Name(10, 9, 0.6, 500)]
    assert right_names(names, truth, Rules()) == [True, True, True, False]
    assert right_names(names, in_hindsight, Rules(chars_min=200)) == [False, True, False, False]
    share, characters = truth.shared(6, 5)
    assert share == pytest.approx(0.5, abs=0.03)
    assert 270 <= characters <= 292


def test_rates_are_counted_by_kind_and_place() -> None:
    """One of two halves names its original, and one of four names is wrong."""
    articles = [Article(id=name, body="") for name in ("a", "b", "a~half", "c", "b~half", "b~framed")]
    names = [Name(2, 0, 1.0, 99), Name(3, 1, 0.4, 99), Name(4, 0, 0.4, 99), Name(5, 1, 0.5, 99)]
    assert recall(articles, names, "half").value == 0.5
    rows = {row["what"]: row["value"] for row in measured(articles, names, [True, False, True, True], [False] * 4)}
    assert (rows["recall: half"], rows["recall: framed"], rows["recall: embedded"]) == (0.5, 1.0, None)
    assert rows["precision"] == 3 / 4
    assert rows["precision, second half of the feed"] == 2 / 3
    assert rows["precision, of no copies"] == rows["in hindsight"] == 0.0


def test_the_command_prints_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feed: list[Article]) -> None:
    """A table of rates and one of the work; both as JSON lines as well."""
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "feed.jsonl", feed)
    app = typer.Typer()
    app.command()(parts.main)
    found = CliRunner().invoke(app, [str(tmp_path / "feed.jsonl"), "--show", "1"])
    assert found.exit_code == 0, found.output
    assert "Parts in feed: 72 texts" in found.output
    assert "recall: embedded" in found.output
    assert (tmp_path / "out" / "bench" / "parts.jsonl").is_file()
