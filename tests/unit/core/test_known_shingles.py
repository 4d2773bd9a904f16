"""The compiled engine finds the same smallest and known shingles as the one in Python."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import dupwatch_core as core
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import (
    KNOWN_SHINGLES_MAX,
    PUBLISHED_SECRET,
    Fingerprinter,
    KnownShingles,
    Scheme,
    Secret,
    unpacked_shingles,
)
from consumer.fingerprint.compiled import CompiledFingerprinter
from consumer.fingerprint.shingles import WORDS, hashed_chunks, of_letters
from consumer.workers.word_files import load_lexicon
from tests.examples import examples
from tests.unit.core.comparing import LANGUAGES, PIECES, assert_equal, engines, known, written

NAMES = ("jieba-tfidf/1", "jieba-tfidf/2", "jieba-tfidf/3")
ANY_TEXT = (
    st.lists(st.sampled_from(PIECES) | st.text(st.characters(), max_size=12), max_size=30).map("".join).map(known)
)


@cache
def with_a_secret() -> tuple[Fingerprinter, CompiledFingerprinter]:
    """Both engines with keyed shingles, and neither with sketches."""
    scheme, secret = Scheme(NAMES[-1]), Secret(bytes(range(32)))
    reference = Fingerprinter(scheme, load_lexicon(), sketched=False, secret=secret)
    return reference, CompiledFingerprinter(scheme, load_lexicon(), sketched=False, secret=secret)


def set_of(packed: Sequence[bytes]) -> KnownShingles:
    """The set of all packed hashes."""
    return KnownShingles(unpacked_shingles(b"".join(packed)))


def assert_same(
    both: tuple[Fingerprinter, CompiledFingerprinter], texts: Sequence[str], languages: Sequence[str]
) -> None:
    """Both find the same smallest shingles, and where those of every second text stand."""
    reference, compiled = both
    smallest = reference.smallest_shingles(texts, languages)
    assert compiled.smallest_shingles(texts, languages) == smallest
    known = set_of(smallest[::2])
    found = compiled.fingerprint(texts, languages, known)
    assert_equal(found, reference.fingerprint(texts, languages, known))
    for own, packed in zip(smallest[::2], found.known_shingles[::2], strict=True):
        assert np.isin(unpacked_shingles(own), unpacked_shingles(packed)).all()


@examples(120)
@given(st.lists(st.tuples(ANY_TEXT, st.sampled_from(LANGUAGES)), max_size=5), st.sampled_from((*NAMES, "keyed")))
def test_shingles_are_pythons(texts: list[tuple[str, str]], name: str) -> None:
    """Mixed scripts, marks, surrogates; of words and of letters, with published hashes and keyed ones."""
    both = with_a_secret() if name == "keyed" else engines(Scheme(name, facts=True))
    assert_same(both, [text for text, _ in texts], [language for _, language in texts])


@pytest.mark.parametrize("name", [NAMES[1], "keyed"])
def test_shingles_of_written_and_long_texts_are_pythons(name: str) -> None:
    """Among them is one that Python cuts in pieces."""
    both = with_a_secret() if name == "keyed" else engines(Scheme(name, facts=True))
    rng = random.Random(23)
    long = "字".join((*rng.choices(PIECES, k=1_500), "字" * (1 << 16), *rng.choices(PIECES, k=500)))
    texts = [*written()[:4], long, "", "，", "字"]
    assert_same(both, texts, rng.choices(LANGUAGES, k=len(texts)))


@pytest.mark.parametrize("name", NAMES[1:])
def test_the_same_are_kept_of_too_many(name: str) -> None:
    """A text with more known shingles than are kept, and with each of them twice."""
    reference, compiled = engines(Scheme(name, facts=True))
    text = "".join(chr(0x4E00 + number * number % 20_011) for number in range(7_000)) * 2
    shingling = WORDS if name == "jieba-tfidf/2" else of_letters(PUBLISHED_SECRET.hash_key)
    folded = reference._forms([text]).shingled
    known = KnownShingles(np.concatenate([chunk.hashes for chunk in hashed_chunks(folded, None, shingling)]))
    assert len(known.hashes()) > KNOWN_SHINGLES_MAX
    (found,) = compiled.fingerprint([text], None, known).known_shingles
    assert (found,) == reference.fingerprint([text], None, known).known_shingles
    assert unpacked_shingles(found).tolist() == known.hashes()[:KNOWN_SHINGLES_MAX].tolist()


@pytest.mark.parametrize("sketched", [True, False])
@pytest.mark.parametrize("parts", [True, False])
def test_known_shingles_are_the_same_whatever_else_is_wanted(sketched: bool, parts: bool) -> None:  # noqa: FBT001
    """Sketches, anchors and samples, and each without the others."""
    compiled = CompiledFingerprinter(Scheme(), load_lexicon(), sketched=sketched, parts=parts)
    texts = [*written()[:6], ""]
    known = set_of(compiled.smallest_shingles(texts[::2]))
    reference = Fingerprinter(Scheme(), load_lexicon(), sketched=sketched, parts=parts)
    assert_equal(compiled.fingerprint(texts, None, known), reference.fingerprint(texts, None, known))
    assert_equal(compiled.fingerprint(texts), reference.fingerprint(texts))


def test_threads_share_a_set() -> None:
    """Each gets what it would get alone, and the compiled form is built once."""
    _, compiled = engines(Scheme(NAMES[-1], facts=True))
    texts = written()[:24]
    known = set_of(compiled.smallest_shingles(texts[::2]))
    expected = [compiled.fingerprint([text], None, known).known_shingles for text in texts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: compiled.fingerprint([text], None, known).known_shingles, texts))
    assert found == expected


def test_parts_are_one_set() -> None:
    """Overlapping ones, an empty one, and one that is smaller than all of the other's."""
    reference, compiled = engines(Scheme(NAMES[-1], facts=True))
    texts = written()[:24]
    hashes = set_of(compiled.smallest_shingles(texts)).hashes()
    for parts in ([hashes[:40], hashes[:0], hashes[30:]], [hashes[:9], hashes[9:]], [hashes[:0]], []):
        known = KnownShingles(*parts)
        found = compiled.fingerprint(texts, None, known).known_shingles
        assert found == reference.fingerprint(texts, None, known).known_shingles
        assert any(found) == any(map(len, parts))


def test_the_core_refuses_what_it_could_not_search() -> None:
    """Hashes that do not ascend, and half a hash."""
    numbers = np.array([1, 7, 7], dtype="<u8").tobytes()
    core.KnownShingles([numbers, b""])
    for part in (numbers[::-1], numbers[:-1]):
        with pytest.raises(ValueError, match="hashes have 8 bytes each, and ascend"):
            core.KnownShingles([numbers, part])
