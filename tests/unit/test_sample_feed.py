"""The sample feed is what its generator makes, and its labels say what is true of its texts."""

import importlib.util
import json
import re
import sys
import unicodedata
from collections import Counter
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SAMPLE = Path(__file__).resolve().parents[2] / "sample"
ARTICLE_FIELDS = {"id", "source", "lang", "url", "title", "published_at", "body"}
DERIVED_FROM_NOTHING = {"original", "short", "new_version", "replay"}

Fields = dict[str, Any]


def load(name: str) -> list[Fields]:
    """Read one of the files of the sample."""
    return [json.loads(line) for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def make_feed() -> ModuleType:
    """Import the generator from its path, for the sample is no package."""
    spec = importlib.util.spec_from_file_location("make_feed", SAMPLE / "make_feed.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def feed() -> list[Fields]:
    """All lines of the feed, retractions too."""
    return load("feed.jsonl")


@pytest.fixture(scope="module")
def articles(feed: list[Fields]) -> list[Fields]:
    """Lines of the feed that carry a body."""
    return [line for line in feed if line["body"] is not None]


@pytest.fixture(scope="module")
def labels() -> list[Fields]:
    """All labels, in the order of the feed."""
    return load("labels.jsonl")


@pytest.fixture(scope="module")
def first_sent(articles: list[Fields]) -> dict[str, Fields]:
    """Each id with the content that it had first."""
    return {article["id"]: article for article in reversed(articles)}


def plain(text: str) -> str:
    """Undo what normalising undoes, written apart from the generator's own function."""
    kept = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", kept).casefold()).strip()


def shingles(article: Fields) -> set[str]:
    """List the character shingles, written apart from the generator's own function."""
    words = re.sub(r"\W+", " ", plain(article["body"])).strip()
    width = 9 if article["lang"] == "en" else 5
    return {words[i : i + width] for i in range(len(words)) if i + width <= len(words)} or {words}


def sent_at(article: Fields) -> datetime:
    """Read the time of publication."""
    return datetime.fromisoformat(article["published_at"])


def test_shipped_files_are_what_the_generator_makes(make_feed: ModuleType) -> None:
    """Making the feed again gives the shipped bytes of every file."""
    feed = make_feed.build()
    assert list(feed) == ["feed.jsonl", "labels.jsonl", "pairs.jsonl"]
    assert {name: (SAMPLE / name).read_bytes() for name in feed} == {name: text.encode() for name, text in feed.items()}


def test_check_fails_when_a_file_differs(
    make_feed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --check nothing is written; the program ends with 0 when the files are right, with 1 and a name when not."""
    for path in SAMPLE.glob("*.jsonl"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(make_feed, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["make_feed.py", "--check"])
    assert make_feed.main() == 0
    (tmp_path / "labels.jsonl").write_text("{}\n")
    assert make_feed.main() == 1
    assert "labels.jsonl" in capsys.readouterr().err
    assert (tmp_path / "labels.jsonl").read_text() == "{}\n"
    monkeypatch.setattr(sys, "argv", ["make_feed.py"])
    assert make_feed.main() == 0
    assert (tmp_path / "labels.jsonl").read_bytes() == (SAMPLE / "labels.jsonl").read_bytes()


def test_feed_is_large_and_mixed_enough(articles: list[Fields], labels: list[Fields]) -> None:
    """The feed has at least 180 articles, 48 originals, three languages, and each operator eight times."""
    operators = Counter(label["operator"] for label in labels)
    originals = [label["id"] for label in labels if label["operator"] in {"original", "short"}]
    languages = Counter(article["lang"] for article in articles if article["id"] in set(originals))
    assert len(articles) >= 180
    assert len(originals) >= 48
    assert languages["zh"] >= 32
    assert languages["en"] >= 8
    assert languages["ja"] >= 5
    assert operators["hard_negative"] >= 20
    assert min(operators[name] for name in operators if name not in {"new_version", "replay"}) >= 8
    assert len({article["source"] for article in articles}) >= 5


def test_every_line_has_the_fields_of_an_article(feed: list[Fields]) -> None:
    """Ids take 1 to 512 bytes, times name their zone, and no field is empty or unknown."""
    for line in feed:
        assert 1 <= len(line["id"].encode()) <= 512
        if line["body"] is None:
            assert set(line) == {"id", "body"}
        else:
            assert set(line) <= ARTICLE_FIELDS
            assert all(line.values())
            assert sent_at(line).tzinfo is not None


def test_texts_are_of_sensible_length() -> None:
    """Posts are of one line and at most 30 characters, articles as long as short news."""
    for article in [*load("originals.jsonl"), *load("hard_negatives.jsonl")]:
        body = article["body"]
        if "short-" in article["id"]:
            assert len(body) <= 30
            assert "\n" not in body
        elif article["lang"] == "en":
            assert 150 <= len(body.split()) <= 350
        else:
            assert 200 <= len(body) <= 900


def test_edits_stay_near_the_length_of_news(articles: list[Fields]) -> None:
    """No operator lets a text grow out of hand."""
    assert max(len(article["body"]) for article in articles) <= 2000


def test_labels_stand_beside_their_articles(articles: list[Fields], labels: list[Fields]) -> None:
    """There is one label for each article, in the order of the feed."""
    assert [label["id"] for label in labels] == [article["id"] for article in articles]


def test_feed_is_in_order_of_time(articles: list[Fields], labels: list[Fields]) -> None:
    """But for the replay, articles stand in the order of publication, all within one window of seven days."""
    sent = [sent_at(article) for article, label in zip(articles, labels, strict=True) if label["operator"] != "replay"]
    assert sent == sorted(sent)
    assert sent[-1] - sent[0] < timedelta(days=7)


def test_every_edit_comes_after_its_original(articles: list[Fields], labels: list[Fields]) -> None:
    """An article made from another, or confusable with it, stands below it in the feed."""
    place = {article["id"]: number for number, article in reversed(list(enumerate(articles)))}
    derived = [label for label in labels if label["of"] is not None]
    assert len(derived) >= 130
    assert all(place[label["of"]] < place[label["id"]] for label in derived)
    assert {label["operator"] for label in labels if label["of"] is None} == DERIVED_FROM_NOTHING


def test_edits_are_interleaved(articles: list[Fields], labels: list[Fields]) -> None:
    """Fewer than one edit in ten stands right below its original."""
    neighbours = sum(label["of"] == above["id"] for above, label in zip(articles, labels[1:], strict=False))
    assert neighbours < len(articles) / 10


def test_similarities_are_exact(first_sent: dict[str, Fields], labels: list[Fields]) -> None:
    """Each label has the Jaccard similarity that the shipped texts have."""
    for label in labels:
        if label["of"] is not None:
            mine, theirs = shingles(first_sent[label["id"]]), shingles(first_sent[label["of"]])
            assert label["jaccard"] == round(len(mine & theirs) / len(mine | theirs), 4), label


def test_expectations_follow_from_the_similarity(first_sent: dict[str, Fields], labels: list[Fields]) -> None:
    """From 0.8 on a duplicate is expected, below 0.5 none; of short posts equal ones are duplicates and no others."""
    for label in labels:
        if label["of"] is None:
            assert (label["expected"], label["jaccard"]) == ("unique", None)
        elif "short-" in label["of"]:
            equal = plain(first_sent[label["id"]]["body"]) == plain(first_sent[label["of"]]["body"])
            assert label["expected"] == ("duplicate" if equal else "unique")
        else:
            sure = "duplicate" if label["jaccard"] >= 0.8 else "unique" if label["jaccard"] < 0.5 else "open"
            assert label["expected"] == sure


def test_most_edits_are_sure_and_some_are_open(labels: list[Fields]) -> None:
    """Over a hundred edits are duplicates, a few are open, and no half of a text is expected to be found."""
    expected = Counter(label["expected"] for label in labels if label["operator"] != "hard_negative")
    assert expected["duplicate"] >= 100
    assert expected["open"] >= 8
    assert {label["expected"] for label in labels if label["operator"] == "half_cut"} == {"unique"}


def test_hard_negatives_are_no_duplicates(labels: list[Fields]) -> None:
    """All stay below 0.7, and only those written as templates reach 0.5."""
    templates = {line["id"] for line in load("hard_negatives.jsonl") if line["note"] == "template"}
    similarity = {label["id"]: label["jaccard"] for label in labels if label["operator"] == "hard_negative"}
    assert max(similarity.values()) < 0.7
    assert {name for name, value in similarity.items() if value >= 0.5} == templates
    assert len(templates) >= 2


def test_unrelated_articles_are_unlike(articles: list[Fields], labels: list[Fields]) -> None:
    """Two articles of different families share less than a tenth of their shingles, whatever was done to them."""
    families = [
        (label["of"] or label["id"], shingles(article))
        for article, label in zip(articles, labels, strict=True)
        if label["operator"] != "hard_negative"
    ]
    for (family, mine), (other, theirs) in combinations(families, 2):
        if family != other:
            assert len(mine & theirs) < 0.1 * len(mine | theirs), (family, other)


def test_hard_negatives_are_unlike_every_edit(articles: list[Fields], labels: list[Fields]) -> None:
    """No edit brings a hard negative as near as 0.7 to anything in the feed."""
    texts = [(label, shingles(article)) for article, label in zip(articles, labels, strict=True)]
    for label, mine in texts:
        if label["operator"] == "hard_negative":
            nearest = max(len(mine & theirs) / len(mine | theirs) for other, theirs in texts if other is not label)
            assert nearest < 0.7, label


def test_operators_do_what_they_are_called(first_sent: dict[str, Fields], labels: list[Fields]) -> None:
    """Reposts are verbatim, every other edit differs, and what only looks different is equal once normalised."""
    for label in labels:
        if label["of"] is None or label["operator"] == "hard_negative":
            continue
        edited, original = first_sent[label["id"]], first_sent[label["of"]]
        assert edited["source"] != original["source"]
        assert (edited["body"] == original["body"]) == (label["operator"] == "repost"), label
        if label["operator"] in {"full_width", "zero_width", "short_repost"}:
            assert plain(edited["body"]) == plain(original["body"]), label
        if label["operator"] in {"truncation", "half_cut"}:
            assert original["body"].startswith(edited["body"])
        if label["operator"] == "header_footer":
            assert f"\n{original['body']}\n" in edited["body"]


def test_sentences_join_to_their_paragraph(make_feed: ModuleType) -> None:
    """Cutting into sentences loses no character and leaves no lone quotation mark."""
    joint = {"zh": "", "ja": "", "en": " "}
    for article in load("originals.jsonl"):
        for paragraph in article["body"].split("\n"):
            sentences = make_feed.split_sentences(paragraph, article["lang"])
            assert joint[article["lang"]].join(sentences) == paragraph
            for opening, closing in ("“”", "「」"):
                assert all(sentence.count(opening) == sentence.count(closing) for sentence in sentences)


def test_light_rewrite_changes_a_word_a_figure_and_the_quotation_marks(make_feed: ModuleType) -> None:
    """A text with one word of the list, one decimal figure and a quotation is changed at all three."""
    edited = make_feed.light_rewrite("“目前”有 3.5 吨", "zh", make_feed.generator("test"))
    assert edited == "「眼下」有 3.50 吨"


def test_an_edit_does_not_depend_on_other_articles(make_feed: ModuleType) -> None:
    """Made on its own, an original gets the edits that it has in the whole feed."""
    fields = load("originals.jsonl")[20]
    alone = {article.id: article.body for _, article in make_feed.edits(make_feed.Article(**fields))}
    shipped = {line["id"]: line["body"] for line in load("feed.jsonl") if line["id"] in alone}
    assert alone == shipped
    assert len(alone) == make_feed.EDITS_PER_ARTICLE


def test_late_events_come_after_all_that_depends_on_them(feed: list[Fields], labels: list[Fields]) -> None:
    """Two articles are retracted and one gets new content, each below the last line that is labelled with it."""
    lines = (SAMPLE / "feed.jsonl").read_text(encoding="utf-8").splitlines()
    retracted = {line["id"]: number for number, line in enumerate(feed) if line["body"] is None}
    renewed = {
        line["id"]: number
        for number, line in enumerate(feed)
        if line["body"] and any(line["id"] == above["id"] and line != above for above in feed[:number])
    }
    replayed = [text for text, times in Counter(lines).items() if times > 1]
    family = {label["id"]: label["of"] or label["id"] for label in labels}
    assert (len(retracted), len(renewed), len(replayed)) == (2, 1, 1)
    for article_id, number in {**retracted, **renewed}.items():
        assert number > 0.8 * len(feed)
        assert all(family[line["id"]] != article_id for line in feed[number + 1 :])


def test_new_version_is_new_content(feed: list[Fields]) -> None:
    """The new version is less than half like the one that it replaces."""
    version, replaced = [line for line in feed if line["id"] == "zh-market-open"][::-1]
    mine, theirs = shingles(version), shingles(replaced)
    assert len(mine & theirs) / len(mine | theirs) < 0.5
