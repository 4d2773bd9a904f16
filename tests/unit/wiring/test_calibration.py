"""Measuring a machine: what is counted, when it ends, and that nothing is left over."""

from itertools import pairwise
from pathlib import Path

import pytest

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.model.errors import ConfigError
from consumer.store_tools.made_articles import ArticleMaker
from consumer.text.sample_feed import sample_texts
from consumer.wiring.calibration import calibrate, calibrate_on_sample

SAMPLE = Path(__file__).parents[3] / "sample" / "feed.jsonl"


class Ticks:
    """A clock that advances by a second each time it is read."""

    def __init__(self) -> None:
        self.read = 0

    def __call__(self) -> float:
        """Return the next second."""
        self.read += 1
        return float(self.read)


@pytest.fixture
def config() -> Config:
    """Return settings whose own source, sink and store must not be touched."""
    settings = {
        "source": {"url": "/nowhere/articles.jsonl", "fields": {"body": "text"}},
        "store": {"url": "hbase://127.0.0.1:9/feed", "durability": "process"},
        "sink": {"url": "/nowhere/verdicts.jsonl"},
        "banks": {"url": "/nowhere/banks.jsonl"},
    }
    return load_config(None, settings)


def test_made_articles_are_judged_until_the_time_is_up(config: Config, tmp_path: Path) -> None:
    """The first round is not counted, the others are, by the clock around their runs."""
    maker = ArticleMaker(sample_texts(SAMPLE, ["zh"]), 200, 0.3)
    found = calibrate(config, maker, tmp_path, 12, Ticks(), round_articles=20)
    assert found.articles % 20 == 0
    rounds = len(list(tmp_path.glob("verdicts-*.jsonl")))
    assert found.articles == 20 * (rounds - 1) > 0
    assert found.speed.articles_a_s == pytest.approx(found.articles / found.seconds)
    assert found.speed.fingerprint_us > 0
    assert found.speed.judge_us > 0
    assert found.sizes.sample == 20 * rounds
    assert found.sizes.chars == pytest.approx(200, rel=0.1)
    assert found.sizes.char_bytes > 2.5


def test_a_sample_is_judged_as_it_is(config: Config, tmp_path: Path) -> None:
    """With the fields that the configuration names; sizes are those of its articles, and of their records."""
    feed = tmp_path / "feed.jsonl"
    lines = [f'{{"id":"{number}","text":"{"今天天气很好" * (number + 1)}"}}\n' for number in range(9)]
    feed.write_text("".join(lines), encoding="utf-8")
    found = calibrate_on_sample(config, str(feed), tmp_path, 1e9, Ticks())
    assert (found.articles, found.sizes.sample) == (9, 9)
    assert found.sizes.chars == 6 * 5
    assert found.sizes.text_bytes == 18 * 5
    # A line ends with a byte that is no part of the record.
    assert found.sizes.message_bytes == pytest.approx(len("".join(lines).encode()) / 9, abs=1)


def test_a_long_sample_ends_with_the_time(config: Config, tmp_path: Path) -> None:
    """After the batch in which the time is up."""
    feed = tmp_path / "feed.jsonl"
    feed.write_text("".join(f'{{"id":"{number}","text":"number {number}"}}\n' for number in range(1_000)))
    assert calibrate_on_sample(config, str(feed), tmp_path, 1, Ticks()).articles < 1_000


def test_a_sample_without_articles_is_refused(config: Config, tmp_path: Path) -> None:
    """In a sentence that says what to name instead."""
    feed = tmp_path / "feed.jsonl"
    feed.write_text("")
    with pytest.raises(ConfigError, match="no article with a text was judged; name a file that dupwatch run judges"):
        calibrate_on_sample(config, str(feed), tmp_path, 9, Ticks())


def test_made_articles_have_the_length_and_the_copies() -> None:
    """Copies share nearly all pieces with an earlier article; equal arguments make equal articles."""
    texts = sample_texts(SAMPLE, ["en"])
    bodies = list(ArticleMaker(texts, 600, 0.5, seed=3).bodies(40))
    assert bodies == list(ArticleMaker(texts, 600, 0.5, seed=3).bodies(40))
    assert all(500 < len(body) < 800 for body in bodies)
    shared = [len(set(one.split()) & set(other.split())) for one, other in pairwise(bodies)]
    copies = sum(words > 60 for words in shared)
    assert 10 < copies < 30
    assert len(set(bodies)) == 40


def test_texts_of_the_sample_feed_are_in_ordinary_letters() -> None:
    """Wide letters are an edit of the sample feed, and take three bytes each."""
    texts = sample_texts(SAMPLE, ["en"])
    assert len(texts) > 20
    assert not any("Ａ" <= char <= "ｚ" for text in texts for char in text)
