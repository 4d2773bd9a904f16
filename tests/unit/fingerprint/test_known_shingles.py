"""The smallest shingles of texts and sets of known ones, against sets of Python."""

import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import (
    KNOWN_SHINGLES_MAX,
    SHINGLES_KEPT,
    Fingerprinter,
    KnownShingles,
    Lexicon,
    Scheme,
    Secret,
    held_hashes,
    join_batches,
    unpacked_shingles,
)
from consumer.fingerprint import shingles as shingles_module
from consumer.fingerprint.known_shingles import SmallestShingles, smallest_shingles
from consumer.fingerprint.shingles import WORDS, Shingling, hashed_chunks, of_letters
from tests.examples import examples

LETTERS = of_letters(Secret(bytes(range(32))).hash_key)
SHINGLINGS = (WORDS, LETTERS)
TEXTS = st.lists(st.text("ab 1_中文字あ，.\n", max_size=120) | st.text(max_size=60), max_size=5)
HASHES = st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 9), max_size=60)


@pytest.fixture(scope="module", params=["jieba-tfidf/2", "jieba-tfidf/3"])
def engine(request: pytest.FixtureRequest, lexicon: Lexicon) -> Fingerprinter:
    """An engine for words with published hashes, and one for letters with keyed ones; neither makes sketches."""
    return Fingerprinter(Scheme(request.param), lexicon, sketched=False, secret=Secret(bytes(range(32))))


def _shingles(text: str, shingling: Shingling = WORDS, language: str = "") -> list[int]:
    """The distinct hashes of a text's shingles, ascending."""
    return sorted({value for chunk in hashed_chunks([text], [language], shingling) for value in chunk.hashes.tolist()})


def _known_shingles(texts: list[str], known: KnownShingles, shingling: Shingling = WORDS) -> tuple[bytes, ...]:
    hits = SmallestShingles(KNOWN_SHINGLES_MAX, known)
    for chunk in hashed_chunks(texts, None, shingling):
        hits.add(chunk)
    return hits.packed()


def _numbers(packed: tuple[bytes, ...]) -> list[list[int]]:
    return [unpacked_shingles(hashes).tolist() for hashes in packed]


def _set_of(hashes: list[int]) -> KnownShingles:
    return KnownShingles(np.array(hashes, dtype=np.uint64))


def _words(rng: random.Random, characters: int) -> str:
    text = ""
    while len(text) < characters:
        text += "".join(rng.choices("abcdefghijklmnoprstu新馆共有四层藏书", k=rng.randrange(2, 9))) + rng.choice(" ，")
    return text


@examples(200)
@given(TEXTS, st.sampled_from(SHINGLINGS), st.sampled_from(["", "zh", "en"]))
def test_the_smallest_are_those_of_all(texts: list[str], shingling: Shingling, language: str) -> None:
    """Distinct and ascending, at most so many, whatever the rest of the batch is."""
    found = smallest_shingles(texts, [language] * len(texts), shingling)
    declared = language if shingling.spaced else ""
    assert _numbers(found) == [_shingles(text, shingling, declared)[:SHINGLES_KEPT] for text in texts]


@examples(200)
@given(TEXTS, st.sampled_from(SHINGLINGS), HASHES, st.integers(1, 5))
def test_known_ones_are_those_in_the_set(
    texts: list[str], shingling: Shingling, others: list[int], one_in: int
) -> None:
    """Every shingle that the set has, and no other one."""
    all_shingles = [_shingles(text, shingling) for text in texts]
    chosen = [value for shingles in all_shingles for value in shingles[::one_in]] + others
    found = _known_shingles(texts, _set_of(chosen * 2), shingling)
    assert _numbers(found) == [sorted({*shingles} & {*chosen}) for shingles in all_shingles]


@examples(60)
@given(st.lists(st.text("ab1 _中文あ，. ", max_size=200), min_size=1, max_size=3), st.integers(1, 40))
def test_pieces_of_any_length_give_the_whole(texts: list[str], piece: int) -> None:
    """A text that is worked on in pieces has the shingles that it has in one."""
    known = _set_of([value for text in texts for value in _shingles(text)[::3]])
    whole = smallest_shingles(texts), _known_shingles(texts, known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shingles_module, "_CHUNK_CHARACTERS", piece)
        assert (smallest_shingles(texts), _known_shingles(texts, known)) == whole


def test_of_many_the_smallest_stay() -> None:
    """A text with more known shingles than are kept is cut."""
    text = "".join(chr(random.Random(3).randrange(0x4E00, 0x9FA5) + number % 90) for number in range(2_000))
    text += " ".join(f"{number:x}" for number in range(3_000))
    shingles = _shingles(text)
    assert len(shingles) > KNOWN_SHINGLES_MAX
    (found,) = _numbers(_known_shingles([text], _set_of(shingles)))
    assert found == shingles[:KNOWN_SHINGLES_MAX]


def test_a_text_stands_in_a_longer_one(engine: Fingerprinter) -> None:
    """All of its smallest shingles stand there, and about half of them where half of the text does."""
    rng = random.Random(11)
    texts = [_words(rng, 400) for _ in range(12)]
    around = [(_words(rng, 500), _words(rng, 300)) for _ in texts]
    smallest = engine.smallest_shingles(texts)
    known = KnownShingles(unpacked_shingles(b"".join(smallest)))
    whole = [f"{before}{text}{after}" for text, (before, after) in zip(texts, around, strict=True)]
    half = [f"{before}{text[:200]}{after}" for text, (before, after) in zip(texts, around, strict=True)]
    none = ["".join(both) for both in around]
    found = engine.fingerprint([*whole, *half, *none], None, known).known_shingles
    assert [len(packed) for packed in smallest] == [8 * SHINGLES_KEPT] * 12
    assert found[:12] == smallest
    assert 0.42 < np.mean([len(packed) / 8 / SHINGLES_KEPT for packed in found[12:24]]) < 0.54
    assert found[24:] == (b"",) * 12


def test_results_are_independent_of_the_batch(engine: Fingerprinter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the engine too, which cuts batches and joins the results."""
    rng = random.Random(17)
    texts = [*(_words(rng, rng.randrange(1, 400)) for _ in range(8)), "", "，", "字"]
    languages = ["", "zh", "en"] * 3 + ["", "zh"]
    smallest = engine.smallest_shingles(texts, languages)
    known = KnownShingles(np.concatenate([unpacked_shingles(packed) for packed in smallest[::2]]))
    whole = engine.fingerprint(texts, languages, known)
    assert whole.known_shingles[::2] == smallest[::2]
    assert (smallest[8], smallest[9], len(smallest[10])) == (b"", b"", 8)
    alone = [engine.fingerprint([text], [language], known) for text, language in zip(texts, languages, strict=True)]
    assert join_batches(alone).known_shingles == whole.known_shingles
    monkeypatch.setattr("consumer.fingerprint.engine.CHUNK_CHARACTERS_MAX", 300)
    assert engine.smallest_shingles(texts, languages) == smallest
    assert engine.fingerprint(texts, languages, known).known_shingles == whole.known_shingles


def test_nothing_is_looked_for_without_a_set(engine: Fingerprinter) -> None:
    """With an empty set there is a field for each text; all other fields are the same."""
    texts = ["the harbour council opened a terminal", ""]
    without, with_empty = engine.fingerprint(texts), engine.fingerprint(texts, None, _set_of([]))
    assert without.known_shingles == ()
    assert with_empty.known_shingles == (b"", b"")
    assert np.array_equal(without.codes, with_empty.codes)
    assert (without.keywords, without.sketches.shape) == (with_empty.keywords, with_empty.sketches.shape)


@given(HASHES, HASHES)
def test_a_set_is_one_of_numbers(hashes: list[int], others: list[int]) -> None:
    """Duplicates count once, and a pickled set is the same."""
    known = _set_of(hashes + hashes[::2])
    for one in (known, pickle.loads(pickle.dumps(known))):
        assert one.hashes().tolist() == sorted({*hashes})
        asked = np.array(hashes + others, dtype=np.uint64)
        assert one.contains(asked).tolist() == [value in {*hashes} for value in asked.tolist()]


def test_a_set_is_immutable() -> None:
    """Neither the array that it was built from nor the one that it shows changes it."""
    hashes = np.array([5, 3], dtype=np.uint64)
    known = KnownShingles(hashes)
    hashes[:] = 7
    known.hashes()[0] = 1
    assert known.hashes().tolist() == [3, 5]


@pytest.mark.parametrize("hashes", [np.array([1]), np.array([1.0])])
def test_a_set_is_of_unsigned_integers(hashes: npt.NDArray[np.uint64]) -> None:
    """Other numbers would become other hashes."""
    with pytest.raises(TypeError, match="Cannot cast"):
        KnownShingles(hashes)


def test_the_compiled_form_is_built_once() -> None:
    """However many threads ask for it; a pickled set builds its own."""
    built = []

    def build(parts: list[bytes]) -> object:
        built.append([np.frombuffer(part, dtype="<u8").tolist() for part in parts])
        return object()

    known = _set_of([9, 2, 9])
    with ThreadPoolExecutor(4) as pool:
        forms = list(pool.map(lambda _: known.compiled(build), range(8)))
    assert len({*map(id, forms)}) == 1
    assert built == [[[2, 9, 9]]]
    assert pickle.loads(pickle.dumps(known)).compiled(build) is not forms[0]
    assert built == [[[2, 9, 9]], [[2, 9]]]


def test_held_hashes_are_not_copied() -> None:
    """A bank has millions of hashes, which its items have already. Parts count as one set."""
    first, second = held_hashes(np.array([9, 2], dtype=np.uint64)), np.array([2, 5], dtype=np.uint64)
    assert held_hashes(first) is first
    known = KnownShingles(first, second)
    given: list[bytes] = []
    known.compiled(given.extend)
    assert np.shares_memory(np.frombuffer(given[0], "<u8"), first)
    assert given[1] == np.array([2, 5], dtype="<u8").tobytes()
    assert known.hashes().tolist() == [2, 5, 9]


def test_some_of_held_hashes_are_a_set_of_their_own() -> None:
    """They lie in the bytes of all."""
    hashes = held_hashes(np.array([1, 3, 5, 7], dtype=np.uint64))
    for some in (hashes[1:], hashes[::2], hashes[::-1], np.frombuffer(hashes.tobytes(), "<u8", offset=8)):
        given: list[bytes] = []
        KnownShingles(some).compiled(given.extend)
        assert np.frombuffer(given[0], "<u8").tolist() == sorted(some.tolist())
