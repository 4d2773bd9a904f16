"""The engine against the parts it is made of."""

import hashlib
import json
import pickle
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consumer.fingerprint.engine as engine_module
import consumer.fingerprint.summing as summing_module
from consumer.fingerprint import (
    Fingerprinter,
    Fingerprints,
    KnownShingles,
    Lexicon,
    RustTokenizer,
    Scheme,
    TextKind,
    fnv1a_64,
    normalise,
    simhash,
    sketch_batch,
)
from consumer.workers.word_files import load_lexicon
from tests.dev_feed import dev_sample
from tests.examples import examples
from tests.unit.fingerprint.weighing import weigh

TEXTS: list[str] = list(
    json.loads(
        (Path(__file__).parents[2] / "fixtures" / "fingerprint" / "texts.json").read_text(encoding="utf-8")
    ).values()
)
ARRAYS = ("codes", "sketches", "one_bits", "bands", "kinds", "text_digests")
LEXICON = load_lexicon()
SCHEME = Scheme("jieba-tfidf/1")
ENGINE = Fingerprinter(SCHEME, LEXICON, keywords_kept=None)
SENTENCES = st.sampled_from(
    ["新馆共有四层，", "the wing cost 4.2 million. ", "入園料は無料です。", "SHA-256 ", "藏书很多"]
)
ANY_TEXT = st.lists(SENTENCES | st.text(max_size=20), max_size=12).map("".join)


def _assert_equal(actual: Fingerprints, other: Fingerprints) -> None:
    for name in ARRAYS:
        assert np.array_equal(getattr(actual, name), getattr(other, name)), name
    assert actual.keywords == other.keywords


def _reference_code(text: str, keywords_max: int | None = None) -> int:
    keywords = weigh(RustTokenizer().cut(normalise(text)), LEXICON, keywords_max)
    return simhash([(fnv1a_64(word.encode()), round(weight * 2**20) / 2**20) for word, weight in keywords])


@examples(60)
@given(st.lists(ANY_TEXT, max_size=4))
def test_equals_the_reference(texts: list[str]) -> None:
    """A fingerprint is the reference's over words, weights rounded to 2**-20 and hashes, bit for bit."""
    fingerprints = ENGINE.fingerprint(texts)
    assert fingerprints.codes[:, 0].tolist() == [_reference_code(text) for text in texts]
    assert fingerprints.keywords == tuple(weigh(RustTokenizer().cut(normalise(text)), LEXICON) for text in texts)


def test_equals_the_reference_on_the_development_feed() -> None:
    """The same on real articles."""
    bodies = [article["body"] for article in dev_sample(61)]
    assert ENGINE.fingerprint(bodies).codes[:, 0].tolist() == [_reference_code(body) for body in bodies]


@pytest.mark.parametrize("keywords_max", [1, 5, 22, 10_000])
def test_keywords_max_counts_the_heaviest_only(lexicon: Lexicon, keywords_max: int) -> None:
    """With a limit the fingerprint is of the heaviest keywords, ties by code points, and kinds count all of them."""
    fingerprints = Fingerprinter(Scheme("jieba-tfidf/1", keywords_max=keywords_max), lexicon).fingerprint(TEXTS)
    assert fingerprints.codes[:, 0].tolist() == [_reference_code(text, keywords_max) for text in TEXTS]
    assert np.array_equal(fingerprints.kinds, ENGINE.fingerprint(TEXTS).kinds)
    assert max(map(len, fingerprints.keywords)) <= keywords_max


def test_keywords_kept_are_the_heaviest(lexicon: Lexicon) -> None:
    """What goes along as evidence are the first of all keywords, and it changes nothing else."""
    few = Fingerprinter(SCHEME, lexicon, keywords_kept=6).fingerprint(TEXTS)
    full = ENGINE.fingerprint(TEXTS)
    assert few.keywords == tuple(keywords[:6] for keywords in full.keywords)
    for name in ARRAYS:
        assert np.array_equal(getattr(few, name), getattr(full, name))


@examples(60)
@given(st.lists(ANY_TEXT, max_size=6), st.integers(0, 6))
def test_independent_of_the_batch(texts: list[str], cut: int) -> None:
    """Any cut of a batch gives the same arrays, bit for bit."""
    whole = ENGINE.fingerprint(texts)
    first, second = ENGINE.fingerprint(texts[:cut]), ENGINE.fingerprint(texts[cut:])
    for name in ARRAYS:
        assert np.array_equal(getattr(whole, name), np.concatenate((getattr(first, name), getattr(second, name))))
    assert whole.keywords == first.keywords + second.keywords


def test_independent_of_what_was_met_before(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words remembered, and words forgotten because the table was full, change nothing."""
    monkeypatch.setattr(engine_module, "WORDS_REMEMBERED_MAX", 50)
    forgetful = Fingerprinter(SCHEME, lexicon, keywords_kept=None)
    for _ in range(3):
        for text in TEXTS:
            _assert_equal(forgetful.fingerprint([text]), ENGINE.fingerprint([text]))
    assert len(forgetful._word_table) < 50 + max(len(Counter(RustTokenizer().cut(text))) for text in TEXTS)


@given(st.sampled_from(TEXTS[:5]), st.integers(0, 150), st.sampled_from("\u200b\u00ad\ufeff\u2060\ufe0f"))
def test_invisible_characters_change_nothing(text: str, place: int, invisible: str) -> None:
    """An invisible character anywhere, other case, and full-width forms give equal results throughout."""
    full_width = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text.upper())
    tricked = full_width[:place] + invisible + full_width[place:]
    _assert_equal(ENGINE.fingerprint([tricked]), ENGINE.fingerprint([text.upper()]))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", TextKind.EMPTY),
        ("是 的！ a", TextKind.EMPTY),
        ("今天的火车晚点了", TextKind.SHORT),
        ("alpha beta gamma delta epsilon zeta eta eta eta", TextKind.SHORT),
        ("alpha beta gamma delta epsilon zeta eta theta", TextKind.LONG),
    ],
)
def test_kinds(text: str, kind: TextKind) -> None:
    """No keyword is empty, up to seven different ones are short, more are long."""
    assert ENGINE.fingerprint([text]).kinds.tolist() == [kind]


def test_text_digest_is_of_the_normalised_text() -> None:
    """The text digest is the BLAKE2b of 128 bits over the normalised text in UTF-8."""
    fingerprints = ENGINE.fingerprint([" Ａ\u200b 今天 "])
    assert fingerprints.text_digests[0].tobytes() == hashlib.blake2b("a 今天".encode(), digest_size=16).digest()


def test_sketches_are_of_the_normalised_text() -> None:
    """Sketch, one-bit minima and bands are those of `sketch_batch` over the normalised texts."""
    fingerprints = ENGINE.fingerprint(TEXTS)
    sketched = sketch_batch([normalise(text) for text in TEXTS], SCHEME.sketch)
    assert np.array_equal(fingerprints.sketches, sketched.sketches)
    assert np.array_equal(fingerprints.one_bits, sketched.one_bits)
    assert np.array_equal(fingerprints.bands, sketched.bands)


@pytest.mark.parametrize("texts", [[], TEXTS])
def test_shapes_and_types(texts: list[str]) -> None:
    """Arrays have the promised shapes and types, for no text at all too, and survive pickling."""
    fingerprints = pickle.loads(pickle.dumps(ENGINE.fingerprint(texts)))
    n = len(texts)
    assert len(fingerprints) == len(fingerprints.keywords) == n
    assert {name: (getattr(fingerprints, name).shape, getattr(fingerprints, name).dtype.name) for name in ARRAYS} == {
        "codes": ((n, 1), "uint64"),
        "sketches": ((n, 256), "uint8"),
        "one_bits": ((n,), "uint64"),
        "bands": ((n, 4), "uint64"),
        "kinds": ((n,), "uint8"),
        "text_digests": ((n, 16), "uint8"),
    }


def test_scheme_pickles() -> None:
    """A scheme crosses to a worker process as it is."""
    scheme = Scheme("jieba-tfidf/1", keywords_max=22)
    assert pickle.loads(pickle.dumps(scheme)) == scheme
    assert Fingerprinter(scheme, LEXICON).scheme is scheme


def test_many_words_at_once(lexicon: Lexicon) -> None:
    """A text with more different words than the table begins with has the reference's fingerprint."""
    text = " ".join(f"word{number}" for number in range(9_000))
    assert Fingerprinter(SCHEME, lexicon).fingerprint([text]).codes[:, 0].tolist() == [_reference_code(text)]


def test_endless_words_are_no_evidence(lexicon: Lexicon) -> None:
    """A word of more than 64 characters counts but is not kept as evidence; the next heaviest takes its place."""
    longest, endless = "x" * 64, "y" * 65
    text = f"{endless} {endless} {endless} {longest} {longest} museum"
    fingerprints = Fingerprinter(SCHEME, lexicon, keywords_kept=2).fingerprint([text])
    assert [word for word, _ in fingerprints.keywords[0]] == [longest, "museum"]
    assert fingerprints.codes[:, 0].tolist() == [_reference_code(text)]
    assert [word for word, _ in ENGINE.fingerprint([text]).keywords[0]] == [longest, "museum"]


def test_characters_remembered_are_limited(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few but endless words make the engine forget its words too, and change no fingerprint."""
    monkeypatch.setattr(engine_module, "CHARACTERS_REMEMBERED_MAX", 1_000)
    engine = Fingerprinter(SCHEME, lexicon)
    for letter in "abc":
        text = letter * 1_500
        assert engine.fingerprint([text]).codes[:, 0].tolist() == [_reference_code(text)]
        assert (len(engine._word_table), engine._word_table.characters) == (1, 1_500)


def test_without_sketches_all_else_is_the_same(lexicon: Lexicon) -> None:
    """Where nothing is decided by sketches none are made, and fingerprints, kinds and keywords do not change."""
    whole = Fingerprinter(SCHEME, lexicon).fingerprint(TEXTS)
    bare = Fingerprinter(SCHEME, lexicon, sketched=False).fingerprint(TEXTS)
    assert bare.sketches.shape == (len(TEXTS), 0)
    assert not bare.one_bits.any()
    assert not bare.bands.any()
    for name in ("codes", "kinds", "text_digests"):
        assert np.array_equal(getattr(bare, name), getattr(whole, name))
    assert bare.keywords == whole.keywords


def test_a_batch_is_worked_on_in_chunks(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which change nothing; and no chunk has more characters than it may, but for a text that is alone."""
    texts, languages = TEXTS[:20], ["", "zh", "en", "ja"] * 5
    engine = Fingerprinter(Scheme("jieba-tfidf/1", facts=True), lexicon)
    whole = engine.fingerprint(texts, languages)
    seen: list[list[str]] = []
    original = engine._fingerprint

    def fingerprint(some: list[str], declared: list[str], known: KnownShingles | None) -> Fingerprints:
        seen.append(list(some))
        return original(some, declared, known)

    monkeypatch.setattr(engine, "_fingerprint", fingerprint)
    for characters in (1, 100, 1_000):
        seen.clear()
        monkeypatch.setattr(engine_module, "CHUNK_CHARACTERS_MAX", characters)
        chunked = engine.fingerprint(texts, languages)
        _assert_equal(chunked, whole)
        assert (chunked.facts, chunked.keyword_counts.tolist()) == (whole.facts, whole.keyword_counts.tolist())
        assert [text for some in seen for text in some] == texts
        assert all(len(some) == 1 or sum(map(len, some)) <= characters for some in seen)


def test_a_text_of_many_words_is_summed_in_pieces(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit of a feature takes 8 bytes when it is summed: 500 bytes for each word, were they summed at once."""
    whole = Fingerprinter(SCHEME, lexicon).fingerprint(TEXTS)
    monkeypatch.setattr(summing_module, "_PIECE_FEATURES", 3)
    _assert_equal(Fingerprinter(SCHEME, lexicon).fingerprint(TEXTS), whole)
    monkeypatch.undo()
    hashes = np.arange(200_000, dtype=np.uint64).reshape(-1, 1)
    tracemalloc.start()
    try:
        summing_module.fingerprint_batch(hashes, np.ones(len(hashes)), np.array([0, len(hashes)]))
        assert tracemalloc.get_traced_memory()[1] < 25 << 20
    finally:
        tracemalloc.stop()
