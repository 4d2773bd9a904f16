"""Generated articles: languages, copies, ids, and how they are encoded."""

import json
import re
from itertools import islice

import numpy as np
import pytest

from benchmarks.speed.peers import shingles
from consumer.decode.article import FieldPaths
from consumer.stress import LANGUAGES
from consumer.stress.load import encoded, prepared_feed
from consumer.stress.made_texts import FeedText, made_feed
from consumer.stress.trial import Trial

OWN_LETTERS = {"zh": "[\u4e00-\u9fff]", "en": "[a-z]", "ja": "[\u3041-\u30fe\u4e00-\u9fff]"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_is_in_its_language_and_as_long_as_asked(language: str) -> None:
    """Most of its letters are the language's; copies resemble their originals, and other texts each other little."""
    feed = list(islice(made_feed(600, languages=(language,), copies_share=0.3), 60))
    for text in feed:
        assert 600 <= len(text.body) <= 640
        letters = re.findall(r"\w", text.body)
        assert len(re.findall(OWN_LETTERS[language], text.body)) > 0.8 * len(letters)
        assert text.language == language
    by_id = {text.id: shingles(text.body) for text in feed}
    alike = [_similarity(by_id[text.id], by_id[text.original]) for text in feed if text.original]
    assert len(alike) >= 10
    assert np.median(alike) > 0.8
    own = [by_id[text.id] for text in feed if text.original is None]
    assert max(_similarity(own[0], other) for other in own[1:]) < 0.3


def _similarity(these: set[str], those: set[str]) -> float:
    return len(these & those) / len(these | those)


def test_languages_take_turns_and_copies_keep_theirs() -> None:
    """Equal seeds give equal articles, other seeds others, and ids begin with the prefix of the run."""

    def made(seed: int, prefix: str) -> list[FeedText]:
        texts = made_feed(100, languages=("zh", "en"), copies_share=0.3, seed=seed, prefix=prefix)
        return list(islice(texts, 50))

    feed = made(3, "stress-a")
    assert [text.id for text in feed] == [f"stress-a-{number}" for number in range(50)]
    assert {text.language for text in feed[:10]} == {"zh", "en"}
    languages = {text.id: text.language for text in feed}
    assert all(languages[text.original] == text.language for text in feed if text.original)
    assert [text.body for text in feed] == [text.body for text in made(3, "stress-b")]
    assert not {text.body for text in feed} & {text.body for text in made(4, "stress-a")}


def test_an_article_is_encoded_as_the_settings_name_its_fields() -> None:
    """Nested members too."""
    text = FeedText("a-1", "body", None, "en")
    assert json.loads(encoded(text, FieldPaths())) == {"id": "a-1", "body": "body", "lang": "en"}
    named = FieldPaths(id="data.guid", body="data.text.plain", lang="language")
    assert json.loads(encoded(text, named)) == {
        "data": {"guid": "a-1", "text": {"plain": "body"}},
        "language": "en",
    }


def test_articles_are_prepared_in_order_until_a_stop() -> None:
    """One a line; the trial learns which are copies."""
    trial, done = Trial("p", np.arange(20.0)), [0]
    texts = made_feed(80, copies_share=0.5, prefix="p")

    with prepared_feed(texts, trial, FieldPaths(), done.append, lambda: done[-1] >= 12) as lines:
        articles = [json.loads(line) for line in lines]
    assert [article["id"] for article in articles] == [f"p-{number}" for number in range(12)]
    originals = [text.original for text in islice(made_feed(80, copies_share=0.5, prefix="p"), 12)]
    assert trial.is_copy.tolist() == [original is not None for original in originals] + [False] * 8
