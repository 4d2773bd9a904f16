"""Words and weights are jieba's."""

import json
import pickle
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Protocol

import pytest

from consumer.fingerprint import (
    IdfTable,
    JiebaTokenizer,
    Lexicon,
    RustTokenizer,
    Tokenizer,
    default_tokenizer,
    normalise,
)
from tests.dev_feed import dev_sample
from tests.unit.fingerprint.weighing import weigh

TEXTS: dict[str, str] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "fingerprint" / "texts.json").read_text(encoding="utf-8")
)


class Extractor(Protocol):
    """What is used of `jieba.analyse.TFIDF`, which ships no types."""

    stop_words: set[str]
    idf_freq: dict[str, float]
    median_idf: float
    tokenizer: object

    def extract_tags(self, sentence: str, topK: int | None, *, withWeight: bool) -> list[tuple[str, float]]:  # noqa: N803
        """Tell words and weights."""


def _assert_as_jieba_weighs(text: str, words: list[str], lexicon: Lexicon, extractor: Extractor) -> None:
    theirs = dict(extractor.extract_tags(text, topK=None, withWeight=True))
    ours = weigh(words, lexicon)
    counts = Counter(words)
    total = float(sum(counts[word] for word, _ in ours))
    idf = {word: lexicon.idf.get(word, lexicon.median_idf) for word, _ in ours}
    assert {word: counts[word] * (idf[word] / total) for word, _ in ours} == theirs
    assert dict(ours) == {word: counts[word] * idf[word] for word, _ in ours}


@pytest.fixture(scope="module")
def extractor(jieba_tokenizer: JiebaTokenizer) -> Extractor:
    """The extractor that jieba ships, cutting with the reference's instance."""
    with warnings.catch_warnings():
        # It leaves the file of its IDF table to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        import jieba.analyse  # noqa: PLC0415

        extractor: Extractor = jieba.analyse.TFIDF()
    extractor.tokenizer = jieba_tokenizer._tokenizer
    return extractor


@pytest.mark.parametrize("name", TEXTS)
def test_words_and_weights_are_jiebas(
    name: str, rust_tokenizer: RustTokenizer, lexicon: Lexicon, extractor: Extractor
) -> None:
    """The engine's words carry the weights of `jieba.analyse.TFIDF`, bit for bit, before its division by the total."""
    text = normalise(TEXTS[name])
    _assert_as_jieba_weighs(text, rust_tokenizer.cut(text), lexicon, extractor)


def test_words_and_weights_are_jiebas_on_the_development_feed(
    rust_tokenizer: RustTokenizer, lexicon: Lexicon, extractor: Extractor
) -> None:
    """The same on real articles in three languages."""
    for article in dev_sample(97):
        text = normalise(article["body"])
        _assert_as_jieba_weighs(text, rust_tokenizer.cut(text), lexicon, extractor)


def test_lexicon_is_jiebas(lexicon: Lexicon, extractor: Extractor) -> None:
    """The stop words and the IDF table are those of `jieba.analyse.TFIDF`."""
    assert lexicon.stop_words == extractor.stop_words
    assert (lexicon.idf, lexicon.median_idf) == (extractor.idf_freq, extractor.median_idf)


def test_order_is_by_weight_and_then_by_code_points() -> None:
    """Keywords come heaviest first, equal ones by code points, whatever order the words had."""
    table = IdfTable({"heavy": 3.0, "light": 1.0}, 2.0)
    lexicon = Lexicon(lambda: table, stop_words=frozenset({"the"}), digest=b"")
    words = ["zebra", "light", "the", "THE", "a", " b ", "apple", "heavy", "light"]
    expected = (("heavy", 3.0), ("apple", 2.0), ("light", 2.0), ("zebra", 2.0))
    assert weigh(words, lexicon) == weigh(reversed(words), lexicon) == expected


def test_keywords_max_keeps_the_first() -> None:
    """A limit keeps the heaviest, and of equal ones the first by code points."""
    lexicon = Lexicon(lambda: IdfTable({"heavy": 3.0}, 2.0), stop_words=frozenset(), digest=b"")
    assert weigh(["bb", "aa", "heavy"], lexicon, keywords_max=2) == (("heavy", 3.0), ("aa", 2.0))


@pytest.mark.parametrize("tokenizer", [RustTokenizer, JiebaTokenizer])
def test_tokenizers_pickle(tokenizer: type[Tokenizer]) -> None:
    """A tokenizer crosses to a worker process, which builds its own."""
    copied = pickle.loads(pickle.dumps(tokenizer()))
    assert copied.cut("今天天气不错") == ["今天天气", "不错"]


def test_default_is_the_fast_engine_and_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a wheel of rjieba the reference cuts."""
    assert isinstance(default_tokenizer(), RustTokenizer)
    monkeypatch.setitem(sys.modules, "rjieba", None)
    assert isinstance(default_tokenizer(), JiebaTokenizer)


def test_reference_says_nothing_and_writes_no_cache(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Building and using the reference logs nothing and leaves no cache file in the temporary folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    JiebaTokenizer().cut("今天天气不错")
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
