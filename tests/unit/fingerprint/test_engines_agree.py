"""rjieba with its repairs against jieba: the same words, everywhere that was ever looked."""

import itertools
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import JiebaTokenizer, RustTokenizer, normalise, tokenizers
from tests.dev_feed import EVERY_PART, dev_part
from tests.examples import examples

TEXTS: dict[str, str] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "fingerprint" / "texts.json").read_text(encoding="utf-8")
)
NASTY = [
    "non-exclusive 1997.8.12 50-60% a.b.c i.e. v3.14.2-rc1 ..hidden -x- _a_ a__b --long-option=x.y",
    "on-line on-line on-line 1.2.3 1.2.3 line",
    "C++ c++ C# c# AT&T at&t T恤 t恤 4S店 4s店 卡拉OK 江南style 江南style-2 B超 b超 x-c++-y 1号店-2 a座.b座",
    "100% 5%-6% 1.5.6 1.5%6 .5 5. 5.% %5 a%b 1-2-3 10.0.0.1:8080 user_name@host-1.example.org",
    "2021-08-09T12:30:45.123Z uuid 123e4567-e89b-12d3-a456-426614174000 c0.c1023 s0-s0",
    "naïve café Ærø ſtraße 한국어 텍스트 русский-текст e\u0301\u0302 ｶﾀｶﾅ 👩‍👧 ﷺ",
    "㐀北京㐀大学 龦龧中国鿿 \U00020000国\U0002a6df \uf900\ufa0e金子 甲㐂乙 北京\U00020000a-b",
    "\x1c\x1d\x85\u2028\r\n\r\t\v a\x00b 中\x00文",
    "龘靐齉 爩麤灪 犇猋骉 鱻羴 魑魅魍魉 龢龤 龥鿕",
    "結婚的和尚未結婚的 乒乓球拍卖完了 下雨天留客天留我不留 他说的确实在理 南京市长江大桥",
]
ASCII_RUNS = st.text("ab1.-_%+#&c ", max_size=14)
MIXED_RUNS = st.text("a1.-_%+c中北京大学国㐀\U00020000鿿店号的 ，", max_size=14)
RARE_HAN = st.text(st.characters(min_codepoint=0x9E00, max_codepoint=0xA000), max_size=12)
ANY = st.text(max_size=30)


@pytest.mark.parametrize("text", [*TEXTS.values(), *NASTY])
def test_texts_are_cut_alike(text: str, rust_tokenizer: RustTokenizer, jieba_tokenizer: JiebaTokenizer) -> None:
    """Self-written texts in several scripts and nasty runs have the same words, raw and normalised."""
    for form in (text, normalise(text)):
        assert rust_tokenizer.cut(form) == jieba_tokenizer.cut(form)
        assert rust_tokenizer.count(form) == jieba_tokenizer.count(form)


@examples(500)
@given(text=ASCII_RUNS | MIXED_RUNS | RARE_HAN | ANY)
def test_random_runs_are_cut_alike(text: str, rust_tokenizer: RustTokenizer, jieba_tokenizer: JiebaTokenizer) -> None:
    """Random strings from nasty alphabets have the same words, and put together they are the string again."""
    words = rust_tokenizer.cut(text)
    assert words == jieba_tokenizer.cut(text)
    assert rust_tokenizer.count(text) == jieba_tokenizer.count(text)
    assert "".join(words) == text


@pytest.mark.parametrize(("alphabet", "length"), [("a1.-_%", 5), ("c+#&a1.-", 4), ("a1.中北-", 5)])
def test_every_small_run_is_cut_alike(
    alphabet: str, length: int, rust_tokenizer: RustTokenizer, jieba_tokenizer: JiebaTokenizer
) -> None:
    """All strings up to a few characters over what the repair is about have the same words."""
    for size in range(1, length + 1):
        for characters in itertools.product(alphabet, repeat=size):
            text = "".join(characters)
            assert rust_tokenizer.cut(text) == jieba_tokenizer.cut(text)


def test_random_ideographs_are_cut_alike(rust_tokenizer: RustTokenizer, jieba_tokenizer: JiebaTokenizer) -> None:
    """Random ideographs, known to the HMM or not, have the same words: ties in its path fall alike."""
    rng = random.Random(5)
    for _ in range(4_000):
        text = "".join(chr(rng.randrange(0x4E00, 0x9FD6)) for _ in range(rng.randint(2, 14)))
        assert rust_tokenizer.cut(text) == jieba_tokenizer.cut(text)


@pytest.mark.parametrize("part", EVERY_PART)
def test_development_feed_is_cut_alike(
    part: int, rust_tokenizer: RustTokenizer, jieba_tokenizer: JiebaTokenizer
) -> None:
    """Real articles in Chinese, English and Japanese have the same words, without exception."""
    for article in dev_part(part):
        text = normalise(article["body"])
        assert rust_tokenizer.cut(text) == jieba_tokenizer.cut(text), article["id"]


def test_what_was_met_before_changes_no_count(jieba_tokenizer: JiebaTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words remembered as sound are those of texts without a repair; the memory is limited in words and characters."""
    tokenizer = RustTokenizer()
    texts = ["北京1997.8.12那天non-exclusive。", "北京㐀㐁", "北京没有1997.8.12", "word " + "x" * 500]
    for text in texts * 2:
        assert tokenizer.count(text) == Counter(jieba_tokenizer.cut(text))
    assert {"北京", "word"} <= tokenizer._sound
    assert not any(len(word) > 32 or "." in word or "㐀" in word for word in tokenizer._sound)
    monkeypatch.setattr(tokenizers, "_SOUND_WORDS_MAX", 3)
    for number in range(20):
        tokenizer.count(f"word{number}")
    assert len(tokenizer._sound) <= 3
    assert tokenizer.count(texts[0]) == Counter(jieba_tokenizer.cut(texts[0]))
