"""The compiled engine gives the same bytes as the one in Python."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import SCHEME_NAMES, Fingerprinter, Lexicon, Scheme, Secret, SketchLayout
from consumer.fingerprint.compiled import CompiledFingerprinter
from consumer.fingerprint.facts import NUMERALS
from consumer.fingerprint.slots import _COUNTED, _LANGUAGES, _TIMES_OF_DAY
from consumer.workers.word_files import load_lexicon
from tests.dev_feed import EVERY_PART, dev_part
from tests.examples import drawn, examples, share_of
from tests.unit.core.comparing import LANGUAGES, PIECES, assert_equal, assert_same, engines, known, written

ANY_TEXT = (
    st.lists(st.sampled_from(PIECES) | st.text(st.characters(), max_size=12), max_size=30).map("".join).map(known)
)
DEFAULTS = (*(Scheme(f"jieba-tfidf/{number}", facts=True) for number in (1, 2, 3)), Scheme("jieba-tfidf/3", slots=True))
SCHEMES = (
    *(Scheme(name, facts=True) for name in SCHEME_NAMES),
    Scheme("jieba-tfidf/1", keywords_max=5, short_keywords_max=2),
    Scheme("jieba-tfidf/2", keywords_max=1, facts=True, sketch=SketchLayout(bands=9, band_minima=5)),
    Scheme("jieba-tfidf/2", sketch=SketchLayout(bands=0)),
    Scheme("jieba-tfidf/3", slots=True),
    Scheme("jieba-tfidf/3", keywords_max=4, decorations=False, sketch=SketchLayout(bands=9, band_minima=5)),
)

HOSTILE = MappingProxyType({
    "U+FDFA": "ﷺ" * 60_000,
    "one character": "好" * 300_000,
    "one word": "a" * 1_000_000,
    "marks": "e\u0301" * 200_000,
    "only marks": "\u0301" * 300_000,
    "words": "a b " * 200_000,
    "traditional": "軟體" * 100_000,
    "figures": "1, " * 100_000,
    "slots": "会议9月在北京" * 40_000,
})  # fmt: skip


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The words of the jieba package."""
    return load_lexicon()


@pytest.mark.parametrize("scheme", drawn(SCHEMES, 5), ids=str)
def test_equal_on_written_texts(scheme: Scheme) -> None:
    """Every scheme, with facts, with few keywords, and with other layouts of the sketch."""
    folder = Path(__file__).parents[2] / "fixtures" / "fingerprint"
    texts = list(json.loads((folder / "texts.json").read_text(encoding="utf-8")).values())
    texts += [*written(), "", " ", "的", "字", "x", "_", "\u0301", *PIECES, "".join(PIECES)]
    assert_same(scheme, texts, [LANGUAGES[number % len(LANGUAGES)] for number in range(len(texts))])


def test_equal_on_everything_that_fills_a_slot(lexicon: Lexicon) -> None:
    """Both engines list times of day, languages and units themselves, and read names from jieba's tags."""
    listed = [*_TIMES_OF_DAY.split(), *(f"{name}{kind}" for name in _LANGUAGES.split() for kind in "文语")]
    numerals = [f"{numeral}{unit}" for numeral in NUMERALS for unit in f"{_COUNTED}个"]
    words = drawn(sorted(lexicon.idf.keys() | lexicon.names())[::40], 10)
    texts = [f"昨天在{value}举行" for value in (*listed, *numerals, *words)]
    assert_same(Scheme("jieba-tfidf/3", slots=True), texts)
    reference, _ = engines(Scheme("jieba-tfidf/3", slots=True))
    assert all(reference.slots(f"昨天在{value}举行") for value in listed)


@pytest.mark.parametrize("part", EVERY_PART)
@pytest.mark.parametrize("scheme", drawn([*DEFAULTS, Scheme("multiply-xor-utf16-128/1", facts=True)], 5), ids=str)
def test_equal_on_the_development_feed(scheme: Scheme, part: int) -> None:
    """Real articles, with the languages that they declare."""
    articles = dev_part(part)
    bodies = [article["body"] for article in articles]
    assert_same(scheme, bodies, [article.get("lang", "") for article in articles])


@examples(300)
@given(st.lists(st.tuples(ANY_TEXT, st.sampled_from(LANGUAGES)), max_size=6), st.sampled_from(SCHEMES))
def test_equal_on_generated_texts(texts: list[tuple[str, str]], scheme: Scheme) -> None:
    """Mixed scripts, marks, surrogates, invisible characters, digits with points, long words."""
    assert_same(scheme, [text for text, _ in texts], [language for _, language in texts])


@pytest.mark.parametrize("scheme", drawn(DEFAULTS, 2), ids=str)
def test_equal_on_many_random_texts(scheme: Scheme) -> None:
    """Thousands of texts, put together from the pieces at random and from all of Unicode."""
    rng = random.Random(19)
    texts = []
    for _ in range(share_of(4_000)):
        pieces = rng.choices(PIECES, k=rng.randrange(25))
        pieces += (chr(rng.randrange(0x110000)) for _ in range(rng.randrange(4)))
        rng.shuffle(pieces)
        texts.append(known("".join(pieces)))
    assert_same(scheme, texts, rng.choices(LANGUAGES, k=len(texts)))


@pytest.mark.parametrize("name", drawn([*HOSTILE], 3))
def test_equal_on_hostile_texts(name: str) -> None:
    """Texts of the greatest length, of one kind."""
    for scheme in drawn(DEFAULTS, 4):
        assert_same(scheme, [HOSTILE[name], "后面还有一篇。"])


def test_equal_with_all_keywords_and_without_sketches_and_parts(lexicon: Lexicon) -> None:
    """Whatever of the results is wanted."""
    texts = [*written(), "", "short"]
    reference, compiled = engines(Scheme(), None)
    assert_equal(compiled.fingerprint(texts), reference.fingerprint(texts))
    for sketched, parts in ((False, False), (False, True), (True, False)):
        ours = CompiledFingerprinter(Scheme(), lexicon, sketched=sketched, parts=parts)
        theirs = Fingerprinter(Scheme(), lexicon, sketched=sketched, parts=parts)
        assert_equal(ours.fingerprint(texts), theirs.fingerprint(texts))


@pytest.mark.parametrize("scheme", drawn([*DEFAULTS, Scheme("jenkins-64/1", facts=True)], 5), ids=str)
def test_equal_with_own_words(tmp_path: Path, scheme: Scheme) -> None:
    """The user's dictionary, stop words and table of frequencies."""
    own = {
        "dictionary": "苍浦地铁\n藏书很多 50 n\n软体开发 7\nAT&T 3\n新馆 9000000\n",
        "stop_words": "公里\n的\nSHA\n滑鼠\n",
        "idf": "公里 3.5\n机场 8.25\n软体 2\n苍浦地铁 12.5\n",
    }
    for file, content in own.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    texts = [*written(), *PIECES, "苍浦地铁5号线，藏书很多很多，軟體開發與滑鼠，AT&T 新馆。The SHA 公里"]
    for wanted in ([*own], *drawn([["dictionary"], ["stop_words"], ["idf"]], 3)):
        lexicon = load_lexicon(**{file: tmp_path / file for file in wanted})
        compiled = CompiledFingerprinter(scheme, lexicon).fingerprint(texts)
        assert_equal(compiled, Fingerprinter(scheme, lexicon).fingerprint(texts))


@pytest.mark.parametrize("name", ["jieba-tfidf/2", "jieba-tfidf/3"])
def test_the_secret_is_that_of_both_engines(name: str, lexicon: Lexicon) -> None:
    """Both key shingles with it where the scheme does, and anchors and samples too; fingerprints stay."""
    scheme, texts = Scheme(name), [*written(), "", "short", "！？"]
    published = Fingerprinter(scheme, lexicon, parts=True).fingerprint(texts)
    secret = Secret(bytes(range(32)))
    found = Fingerprinter(scheme, lexicon, parts=True, secret=secret).fingerprint(texts)
    assert_equal(CompiledFingerprinter(scheme, lexicon, parts=True, secret=secret).fingerprint(texts), found)
    np.testing.assert_array_equal(found.codes, published.codes)
    has_many_shingles = np.count_nonzero(found.sketches, axis=1) > 20
    for field in ("sketches", "one_bits", "bands"):
        is_same = (getattr(found, field) == getattr(published, field)).reshape(len(texts), -1).all(axis=1)
        assert is_same.all() if name == "jieba-tfidf/2" else not is_same[has_many_shingles].any(), field
    assert (found.samples == published.samples) is (name == "jieba-tfidf/2")
    assert (found.anchors == published.anchors) is (name == "jieba-tfidf/2")


def test_threads_share_an_engine() -> None:
    """Each gets what it would get alone."""
    reference, compiled = engines(Scheme())
    batches = [[text, "".join(PIECES)] * 20 for text in written()[:24]]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(compiled.fingerprint, batches))
    for batch, ours in zip(batches, found, strict=True):
        assert_equal(ours, reference.fingerprint(batch))


def test_refuses_weights_that_cannot_be_summed() -> None:
    """Both engines say the same."""
    scheme, lexicon = Scheme("jieba-tfidf/1"), load_lexicon()
    heavy = replace(lexicon, table=lambda: lexicon.table()._replace(median=float(1 << 31)), own_table=True)
    for engine in (Fingerprinter(scheme, heavy), CompiledFingerprinter(scheme, heavy)):
        with pytest.raises(ValueError, match=r"2\*\*32 or more"):
            engine.fingerprint(["qwertyuiop asdfghjkl zxcvbnm"])
