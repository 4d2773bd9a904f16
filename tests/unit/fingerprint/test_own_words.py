"""Words of a user's own: both engines cut them alike."""

import pickle
import random
import re

import pytest

from consumer.fingerprint import JiebaTokenizer, OwnWord, RustTokenizer, normalise
from consumer.fingerprint.tokenizers import with_frequencies
from tests.dev_feed import dev_sample

ODD = [
    "gpt-4",
    "gpt-4.5",
    "c++",
    "1.5b",
    "a.b",
    "x_y",
    "-a",
    "中-国",
    "5g手机",
    "3.5",
    "1-2-3",
    "1-2",
    "t恤",
    "a1",
    "北京大学生",
]
RUN = re.compile("[\u4e00-\u9fd5a-zA-Z0-9+#&._%\\-]+")


def test_own_words_are_cut_whole() -> None:
    """A word without a frequency is cut as one by both engines, hyphens and points in it too; others still split."""
    own = [OwnWord("石墨烯电池", None), OwnWord("gpt-4.5", None)]
    for tokenizer in (RustTokenizer(own), JiebaTokenizer(own)):
        assert tokenizer.cut("用gpt-4.5和gpt-4写石墨烯电池") == [
            "用",
            "gpt-4.5",
            "和",
            "gpt",
            "-",
            "4",
            "写",
            "石墨烯电池",
        ]
        assert tokenizer.count("gpt-4.5 a-b gpt-4.5") == {"gpt-4.5": 2, " ": 2, "a": 1, "-": 1, "b": 1}
    assert "gpt-4.5" not in RustTokenizer().cut("gpt-4.5")


@pytest.mark.parametrize("seed", range(2))
def test_engines_agree_with_random_dictionaries(seed: int) -> None:
    """With words from real texts and odd ones, of random and often equal frequencies, both engines cut all alike."""
    rng = random.Random(seed)
    texts = [normalise(article["body"])[:1_000] for article in dev_sample(300, seed)]
    words = set(rng.sample(ODD, 8))
    for text in rng.sample(texts, 20):
        start = rng.randrange(max(1, len(text) - 8))
        words |= set(RUN.findall(text[start : start + rng.randint(1, 6)]))
    own = [OwnWord(word, rng.choice([None, 1, 3, 50, 2_000, 10**6])) for word in sorted(words)]
    rust, jieba = RustTokenizer(own), JiebaTokenizer(own)
    pieces = ["a", "1", ".", "-", "x", "中", "国", "北京", " ", "%", "㐂", *words]
    random_texts = ["".join(rng.choices(pieces, k=rng.randint(2, 9))) for _ in range(500)]
    for text in texts + random_texts:
        assert rust.cut(text) == jieba.cut(text)
        assert rust.count(text) == jieba.count(text)


def test_ties_between_own_words_fall_alike() -> None:
    """Cuts that are exactly as likely, as among words of equal frequencies, are decided alike to the last digit."""
    frequencies = {"n": 1, "r": 10**6, "nt": 3, "t": 1, "p": 50, "e": 1, "i": 50, "h": 50, "en": 3}
    own = [OwnWord(word, frequency) for word, frequency in frequencies.items()]
    rust, jieba = RustTokenizer(own), JiebaTokenizer(own)
    rng = random.Random(3)
    for text in ["entry", "enter", "entries", *("".join(rng.choices("entriphsy", k=8)) for _ in range(5_000))]:
        assert rust.cut(text) == jieba.cut(text)


def test_a_known_word_has_its_frequency_replaced() -> None:
    """A word that jieba knows gets the new frequency, and the total is as if it had always had that."""
    plain, own = JiebaTokenizer(), JiebaTokenizer([OwnWord("图书馆", 7)])
    assert own._tokenizer.FREQ["图书馆"] == 7
    assert plain._tokenizer.total - own._tokenizer.total == plain._tokenizer.FREQ["图书馆"] - 7


def test_order_of_words_changes_no_frequency() -> None:
    """Suggested frequencies are asked of jieba's own dictionary, not of the words before."""
    own = [OwnWord("石墨", 10**8), OwnWord("石墨烯", None), OwnWord("石墨烯电池", None)]
    assert dict(with_frequencies(own)) == dict(with_frequencies(own[::-1]))
    backwards = JiebaTokenizer(own[::-1])._tokenizer.FREQ
    assert all(backwards[word] == frequency for word, frequency in with_frequencies(own))


@pytest.mark.parametrize("engine", [RustTokenizer, JiebaTokenizer])
def test_own_words_pickle(engine: type[RustTokenizer | JiebaTokenizer]) -> None:
    """A tokenizer crosses to a worker process with its words."""
    own = [OwnWord("石墨烯电池", 100_000)]
    assert pickle.loads(pickle.dumps(engine(own))).cut("石墨烯电池") == ["石墨烯电池"]
