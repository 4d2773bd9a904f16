"""The words of the compiled core are jieba's, and so are their weights."""

import itertools
import json
import math
import random
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO

import dupwatch_core
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import CUT_WHOLE, JiebaTokenizer, Lexicon, OwnWord, RustTokenizer, Tokenizer, normalise
from consumer.fingerprint.tokenizers import with_frequencies
from consumer.workers.word_files import _jieba_folder, _jieba_hasher, load_lexicon
from tests.dev_feed import EVERY_PART, dev_part, dev_sample
from tests.examples import drawn, examples, share_of

TEXTS: dict[str, str] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "fingerprint" / "texts.json").read_text(encoding="utf-8")
)
NASTY = [
    "",
    "non-exclusive 1997.8.12 50-60% a.b.c i.e. v3.14.2-rc1 ..hidden -x- _a_ a__b --long-option=x.y",
    "C++ c++ C# c# AT&T at&t T恤 t恤 4S店 4s店 卡拉OK 江南style 江南style-2 B超 b超 x-c++-y 1号店-2 a座.b座 C+++ c##",
    "100% 5%-6% 1.5.6 1.5%6 .5 5. 5.% %5 a%b 1-2-3 10.0.0.1:8080 user_name@host-1.example.org 1.٣ ３.５ 1.५",
    "2021-08-09T12:30:45.123Z uuid 123e4567-e89b-12d3-a456-426614174000 c0.c1023 s0-s0",
    "naïve café Ærø ſtraße 한국어 텍스트 русский-текст e\u0301\u0302 ｶﾀｶﾅ 👩‍👧 ﷺ",
    "㐀北京㐀大学 龦龧中国鿿 \U00020000国\U0002a6df \uf900\ufa0e金子 甲㐂乙 北京\U00020000a-b γ射线 〇 々",
    "\x1c\x1d\x85\u2028\r\n\r\t\v a\x00b 中\x00文\r\r\n\n\r北京\r\n大学\ufeff\uffff中国\uffff\U0010ffff",
    "龘靐齉 爩麤灪 犇猋骉 鱻羴 魑魅魍魉 龢龤 龥鿕 鿕鿕鿕",
    "結婚的和尚未結婚的 乒乓球拍卖完了 下雨天留客天留我不留 他说的确实在理 南京市长江大桥",
    "中华人民 中华人民共和 侵华日军南京大屠杀遇难同胞纪念 第九届全国人民代表大会常务委员",
]
ODD = [
    *("gpt-4", "gpt-4.5", "c++", "1.5b", "a.b", "x_y", "-a", "中-国", "5g手机", "3.5", "1-2-3", "1-2", "t恤", "a1"),
    # Beginnings of words, words without a frequency, single characters, and some that contain each other.
    *("中华人民共", "奥萨贝尔", "劳动防护", "的", "鿕", "a", "北京大学生", "北京大学", "大学生活动", "学生活"),
]
MIXED_RUNS = st.text("a1.-_%+#&cATBG超中北京大学国㐀\U00020000鿿店号的 ，\r\n", max_size=24)
RARE_HAN = st.text(st.characters(min_codepoint=0x9E00, max_codepoint=0xA000), max_size=12)
ANY = st.text(max_size=40)
HAN = range(0x4E00, 0x9FD6)
SEPARATOR = "，"
"""Ends every word: what is put together with it is cut as if it were alone."""


@pytest.fixture(scope="module", autouse=True)
def _dictionary_is_parsed_once() -> Iterator[None]:
    """Every reference gets a copy: to parse jieba's dictionary takes a second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba  # noqa: PLC0415  # as the reference imports it
    parse = jieba.Tokenizer.gen_pfdict

    @cache
    def parsed(name: str) -> tuple[dict[str, int], int]:
        with Path(name).open("rb") as file:
            frequencies, total = parse(file)
        return frequencies, total

    def copied(file: IO[bytes]) -> tuple[dict[str, int], int]:
        file.close()
        frequencies, total = parsed(file.name)
        return dict(frequencies), total

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jieba.Tokenizer, "gen_pfdict", staticmethod(copied))
        yield


@pytest.fixture(scope="module")
def jieba_tokenizer() -> JiebaTokenizer:
    """The reference."""
    return JiebaTokenizer()


@pytest.fixture(scope="module")
def rust_tokenizer() -> RustTokenizer:
    """Its equal, for what would take the reference too long."""
    return RustTokenizer()


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The IDF table of the jieba package."""
    return load_lexicon()


@pytest.fixture(scope="module")
def known(lexicon: Lexicon, jieba_tokenizer: JiebaTokenizer) -> list[str]:
    """All words of the dictionary and of the IDF table."""
    frequencies: dict[str, int] = jieba_tokenizer._tokenizer.FREQ
    return sorted(lexicon.idf.keys() | {word for word, frequency in frequencies.items() if frequency})


def assert_cut_alike(text: str, reference: Tokenizer, own: Sequence[tuple[str, int]] = ()) -> None:
    """Both find the same words; tell the first difference only, as texts are long."""
    ours, theirs = dupwatch_core.cut(text, list(own)), reference.cut(text)
    if ours == theirs:
        return
    pairs = itertools.zip_longest(ours, theirs)
    place = next(number for number, (our, their) in enumerate(pairs) if our != their)
    nearby = slice(max(0, place - 3), place + 5)
    pytest.fail(f"{ours[nearby]} is {theirs[nearby]} to the reference")


def all_strings(alphabet: str, length: int) -> str:
    """All strings of fewer than ``length`` of these characters, and of those that have as many the drawn ones."""
    sizes = (itertools.product(alphabet, repeat=size) for size in range(1, length))
    longest = drawn([*itertools.product(alphabet, repeat=length)], 4)
    return SEPARATOR.join("".join(characters) for characters in itertools.chain(*sizes, longest))


@pytest.mark.parametrize("text", [*TEXTS.values(), *NASTY])
def test_texts_are_cut_alike(text: str, jieba_tokenizer: JiebaTokenizer) -> None:
    """Self-written texts in several scripts and nasty runs, raw and normalised."""
    for form in (text, normalise(text)):
        assert_cut_alike(form, jieba_tokenizer)


@examples(1_000)
@given(text=MIXED_RUNS | RARE_HAN | ANY)
def test_random_runs_are_cut_alike(text: str, jieba_tokenizer: JiebaTokenizer) -> None:
    """Random strings from nasty alphabets; put together the words are the string again."""
    assert_cut_alike(text, jieba_tokenizer)
    assert "".join(dupwatch_core.cut(text)) == text


@pytest.mark.parametrize(
    ("alphabet", "length"),
    [
        ("a1.-_%", 5),
        ("c+#&a1.-", 4),
        ("AT&cB超", 5),
        ("a1.中北-", 5),
        ("\r\n \x1c\x85中a", 4),
        ("北京市大学生活", 5),
        ("的鿕鿔中国a", 5),
        ("㐀\U00020000鿖北京.1", 4),
    ],
)
def test_every_small_run_is_cut_alike(alphabet: str, length: int, jieba_tokenizer: JiebaTokenizer) -> None:
    """All strings up to a few characters, over what jieba has special cases for."""
    assert_cut_alike(all_strings(alphabet, length), jieba_tokenizer)


def test_every_code_point_is_cut_alike(jieba_tokenizer: JiebaTokenizer, rust_tokenizer: RustTokenizer) -> None:
    """Every character between letters and ideographs: the reference cuts a sixteenth, its equal all."""
    for start in drawn(range(0, sys.maxunicode, 0x8000), 6):
        codes = [code for code in range(start, start + 0x8000) if not 0xD800 <= code < 0xE000]
        assert_cut_alike("".join(f"a{chr(code)}中{chr(code)}" for code in codes), rust_tokenizer)
        assert_cut_alike("".join(f"a{chr(code)}1中{chr(code)}国" for code in codes[::16]), jieba_tokenizer)


def test_every_known_word_is_cut_alike(
    known: list[str], jieba_tokenizer: JiebaTokenizer, rust_tokenizer: RustTokenizer
) -> None:
    """All words of the dictionary and of the IDF table, each alone: the reference cuts some, its equal all."""
    assert_cut_alike(SEPARATOR.join(known), rust_tokenizer)
    assert_cut_alike(SEPARATOR.join(drawn(known[::8], 4)), jieba_tokenizer)


def test_words_that_overlap_are_cut_alike(
    known: list[str], jieba_tokenizer: JiebaTokenizer, rust_tokenizer: RustTokenizer
) -> None:
    """Words and ends of words one after the other, which can be cut in many ways."""
    rng = random.Random(19)
    for number in range(6):
        words = [
            word[rng.randint(0, len(word) - 1) :] if rng.random() < 0.3 else word
            for word in rng.choices(known, k=60_000)
        ]
        ends = sorted(rng.sample(range(len(words)), 15_000))
        text = SEPARATOR.join("".join(words[start:end]) for start, end in itertools.pairwise(ends))
        assert_cut_alike(text, rust_tokenizer if number else jieba_tokenizer)


def test_random_ideographs_are_cut_alike(jieba_tokenizer: JiebaTokenizer, rust_tokenizer: RustTokenizer) -> None:
    """Random ideographs, known to the model or not, in short and long runs: ties on its way fall alike."""
    rng = random.Random(5)
    for size, runs in drawn([(2, 20_000), (3, 20_000), (5, 20_000), (14, 10_000), (500, 200)], 3):
        text = SEPARATOR.join("".join(map(chr, rng.choices(HAN, k=size))) for _ in range(runs))
        assert_cut_alike(text, rust_tokenizer)
        assert_cut_alike(text[:40_000], jieba_tokenizer)


@pytest.mark.parametrize("part", EVERY_PART)
def test_development_feed_is_cut_alike(
    part: int, jieba_tokenizer: JiebaTokenizer, rust_tokenizer: RustTokenizer
) -> None:
    """Real articles in Chinese, English and Japanese, without exception."""
    for number, article in enumerate(dev_part(part)):
        text = normalise(article["body"])
        assert_cut_alike(text, rust_tokenizer if number % 24 else jieba_tokenizer)


@pytest.mark.parametrize(
    "text",
    drawn(
        [
            "好" * 1_000_000,
            "鿕" * 1_000_000,
            "中华人民" * 250_000,
            "a" * 1_000_000,
            "1." * 500_000,
            "c+" * 500_000,
            "，" * 1_000_000,
            "\r\n" * 500_000,
            "a 中" * 333_333,
        ],
        3,
    ),
    ids=lambda text: ascii(text[:4]),
)
def test_longest_texts_are_cut_alike(text: str, rust_tokenizer: RustTokenizer) -> None:
    """A million characters of one kind, in one run or in many."""
    assert_cut_alike(text, rust_tokenizer)


@pytest.mark.parametrize("seed", drawn(range(12), 6))
def test_own_words_are_cut_alike(seed: int, jieba_tokenizer: JiebaTokenizer) -> None:
    """Words from real texts and odd ones, of random and often equal frequencies, and without."""
    rng = random.Random(seed)
    texts = [normalise(article["body"])[:1_000] for article in dev_sample(600, seed)]
    words = set(rng.sample(ODD, 12))
    for text in rng.sample(texts, 10):
        start = rng.randrange(max(1, len(text) - 8))
        words |= set(text[start : start + rng.randint(1, 6)].split()[:1])
    own = [OwnWord(word, rng.choice([None, 1, 3, 50, 2_000, 10**6])) for word in sorted(words)]
    reference = JiebaTokenizer(own)
    pieces = ["a", "1", ".", "-", "x", "中", "国", "北京", "大学", "生活", " ", "%", "㐂", *words]
    runs = ["".join(rng.choices(pieces, k=rng.randint(2, 9))) for _ in range(3_000)]
    assert_cut_alike(SEPARATOR.join([*texts, *runs]), reference, with_frequencies(own, jieba_tokenizer))


def test_ties_between_own_words_fall_alike() -> None:
    """Cuts that are exactly as likely, as among words of equal frequencies, are decided alike to the last digit."""
    own = [("n", 1), ("r", 10**6), ("nt", 3), ("t", 1), ("p", 50), ("e", 1), ("i", 50), ("h", 50), ("en", 3)]
    reference = JiebaTokenizer([OwnWord(word, frequency) for word, frequency in own])
    rng = random.Random(3)
    runs = ["entry", "enter", "entries", *("".join(rng.choices("entriphsy", k=8)) for _ in range(share_of(20_000)))]
    assert_cut_alike(SEPARATOR.join(runs), reference, own)


def test_own_words_change_the_total_as_in_the_reference() -> None:
    """The last frequency of a word counts, a known word's own no longer, and those of 0 are refused."""
    own = [("图书馆", 7), ("B超", 10**9), ("B超", 5), ("石墨烯", 3), ("石墨烯", 10**9), ("中华人民共", 1)]
    reference = JiebaTokenizer([OwnWord(word, frequency) for word, frequency in own])
    assert_cut_alike(all_strings("图书馆B超石墨烯", 4), reference, own)
    with pytest.raises(ValueError, match="at least 1"):
        dupwatch_core.cut("石墨烯", [("石墨烯", 0)])


def test_numbers_are_those_of_known_words(known: list[str]) -> None:
    """Words of two and more characters come with their number, however they were found, if jieba knows them.

    One is of the dictionary, but no text is ever cut into it.
    """
    numbers = {word: dupwatch_core.number(word) for word in known if CUT_WHOLE.fullmatch(word)}
    assert len(set(numbers.values()) - {None}) == len(numbers)
    assert dupwatch_core.number("γ射线") is None
    rng = random.Random(7)
    articles = [normalise(article["body"]) for article in dev_sample(60)]
    texts = [*articles, *NASTY, "".join(rng.choices(known, k=20_000)), "".join(map(chr, rng.choices(HAN, k=20_000)))]
    own = [("劳动防护", 5), ("石墨烯电池", 5), ("中华人民共", 5), ("c++", 7)]
    for text, own_words in itertools.product([*texts, "劳动防护石墨烯电池中华人民共c++"], ([], own)):
        for word, number in dupwatch_core.cut_numbered(text, own_words):
            assert number == (numbers.get(word) if len(word) > 1 else None), word


def test_idf_is_that_of_the_table(lexicon: Lexicon, known: list[str]) -> None:
    """Every word has the IDF of jieba's table, and others have none."""
    assert {word: dupwatch_core.idf(word) for word in known} == {word: lexicon.idf.get(word) for word in known}
    assert sum(word not in lexicon.idf for word in known) > 0
    for word in ["", "a", "中华人民共", "北京\uffff", "\uffff", "北\uffff京", "鿕鿕", "北京大学的", "\U0010ffff" * 3]:
        assert word not in lexicon.idf
        assert dupwatch_core.number(word) is dupwatch_core.idf(word) is None


def test_median_and_mean_are_those_of_python(lexicon: Lexicon) -> None:
    """Both to the last bit."""
    assert lexicon.median_idf == dupwatch_core.MEDIAN_IDF
    assert math.fsum(lexicon.idf.values()) / len(lexicon.idf) == dupwatch_core.MEAN_IDF


def test_digest_is_that_of_the_installed_jieba() -> None:
    """A core that was built with another jieba can be told from one that was not."""
    assert _jieba_hasher(_jieba_folder()).digest() == dupwatch_core.JIEBA_DIGEST
