"""Anchors, by which texts with a common stretch are found, and samples, which measure it, against a plain reference."""

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import Fingerprinter, Lexicon, Scheme, parts
from consumer.fingerprint import shingles as shingles_module
from consumer.fingerprint.parts import (
    ANCHORS_LOOKED_UP,
    ANCHORS_POSTED,
    NEIGHBOURS,
    SAMPLE_MAX,
    SAMPLED_ONE_IN,
    parts_batch,
    shares,
    shares_of_many,
    unpacked_anchors,
    unpacked_sample,
)
from consumer.fingerprint.secret import Secret
from consumer.fingerprint.shingles import (
    LETTERS_SHINGLE_CJK,
    LETTERS_SHINGLE_OTHER,
    LETTERS_STRETCH_CJK,
    LETTERS_STRETCH_OTHER,
    STRETCH_CJK,
    STRETCH_OTHER,
    of_letters,
)
from consumer.workers.word_files import load_lexicon
from tests.dev_feed import dev_sample
from tests.examples import drawn, examples
from tests.fixtures.fingerprint import keyed
from tests.processor_time import within_processor_s

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
NONE_COMMON = np.zeros(0, dtype=np.uint32)
TEXTS = st.lists(st.text("ab 1_中文字あ，.\n", max_size=120) | st.text(max_size=60), max_size=5)
LANGUAGES = ("", "zh", "en")


def _mix(value: int) -> int:
    value ^= value >> 30
    value = value * 0xBF58476D1CE4E5B9 & MASK
    value ^= value >> 27
    value = value * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def _hash(characters: str) -> int:
    polynomial = 0
    for character in characters:
        polynomial = polynomial * GOLDEN + ord(character) & MASK
    return _mix(polynomial + len(characters) & MASK)


def _spaced(text: str) -> str:
    words = "".join(char if char.isalnum() or char == "_" else " " for char in text)
    return " ".join(word for word in words.split(" ") if word)


def _hashes(words: str, cjk: int, other: int) -> dict[int, int]:
    """The hash of what begins at each character at which it fits."""
    hashes = {}
    for start, char in enumerate(words):
        deciding = words[start + 1] if char == " " else char
        length = cjk if ord(deciding) >= 0x2E80 else other
        if start + length <= len(words):
            hashes[start] = _hash(words[start : start + length])
    return hashes


def _anchors(text: str) -> list[int]:
    """The anchors by their definition."""
    return _chosen(_hashes(_spaced(text), STRETCH_CJK, STRETCH_OTHER))


def _chosen(stretches: dict[int, int]) -> list[int]:
    end = max(stretches, default=-1) + 1
    candidates = {}
    for place, own in stretches.items():
        near = [other for other in range(place - NEIGHBOURS, place + NEIGHBOURS + 1) if other in stretches]
        if all((own, place) < (stretches[other], other) for other in near if other != place):
            candidates[place] = own
    ranked = []
    for place, own in candidates.items():
        smaller = [abs(other - place) for other, value in candidates.items() if (value, other) < (own, place)]
        ranked.append((-min([place + 1, end - place, *smaller]), own))
    count_max = min(max((end + 61) // 62, 8), 16)
    return list(dict.fromkeys(value for _, value in sorted(ranked)))[:count_max]


def _sample(text: str, language: str = "") -> list[int]:
    """The sample by its definition."""
    words = _spaced(text)
    lengths = {"": (5, 9), "zh": (5, 5), "en": (9, 9)}[language]
    return _sampled(set(_hashes(words, *lengths).values()) or ({_hash(words)} if words else set()))


def _sampled(shingles: set[int]) -> list[int]:
    return sorted({_mix(value) >> 32 for value in shingles if value % SAMPLED_ONE_IN == 0})[:SAMPLE_MAX]


def _random_text(rng: random.Random, characters: int, alphabet: str = "") -> str:
    if alphabet:
        return "".join(rng.choices(alphabet, k=characters))
    return "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(characters))


def _words(rng: random.Random, characters: int) -> str:
    text = ""
    while len(text) < characters:
        text += "".join(rng.choices("abcdefghijklmnoprstu", k=rng.randrange(2, 9))) + " "
    return text[:characters]


def _anchors_of(*texts: str) -> list[list[int]]:
    return [unpacked_anchors(packed).tolist() for packed in parts_batch(texts).anchors]


def _samples_of(*texts: str) -> list[np.ndarray]:
    return [unpacked_sample(packed) for packed in parts_batch(texts).samples]


@examples(300)
@given(TEXTS, st.sampled_from(LANGUAGES))
def test_parts_equal_the_reference(texts: list[str], language: str) -> None:
    """Any texts, also when several share a batch: same anchors in the same order, same samples."""
    found = parts_batch(texts, [language] * len(texts))
    assert [unpacked_anchors(packed).tolist() for packed in found.anchors] == [_anchors(text) for text in texts]
    assert [unpacked_sample(packed).tolist() for packed in found.samples] == [_sample(text, language) for text in texts]


def test_long_and_repeated_texts_equal_the_reference() -> None:
    """Texts with hundreds of candidates, with periods shorter and longer than a neighbourhood, and all in one batch."""
    rng = random.Random(7)
    texts = [_words(rng, 4_000), _random_text(rng, 3_000), _random_text(rng, 3_000, "ab ，字"), "字" * 2_000]
    texts += ["a " * 2_000, _words(rng, 90) * 30, _random_text(rng, 300) * 4, _words(rng, 11_000)]
    found = parts_batch(texts)
    assert [unpacked_anchors(packed).tolist() for packed in found.anchors] == [_anchors(text) for text in texts]
    assert [unpacked_sample(packed).tolist() for packed in found.samples] == [_sample(text) for text in texts]


@examples(100)
@given(
    st.lists(st.lists(st.text("ab1 _中文あ，. ", max_size=90), max_size=4).map("".join), min_size=1, max_size=3),
    st.integers(1, 40),
)
def test_pieces_of_any_length_give_the_whole(texts: list[str], piece: int) -> None:
    """A text cut into pieces, however short and wherever spaces fall, has the parts that it has in one."""
    whole = parts_batch(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shingles_module, "_CHUNK_CHARACTERS", piece)
        assert parts_batch(texts) == whole


@pytest.mark.parametrize("alphabet", ["", "abcdefghij ", "字文中国。，", "ab 字，"])
def test_every_place_of_a_cut_gives_the_whole(alphabet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts have some dozen candidates, in pieces: each is decided on once, with all its neighbours."""
    rng = random.Random(22)
    texts = [_random_text(rng, length, alphabet) for length in (150, 400, 700) for _ in range(6)]
    whole = parts_batch(texts)
    for piece in drawn(range(65, 149, 3), 2):
        monkeypatch.setattr(shingles_module, "_CHUNK_CHARACTERS", piece)
        assert parts_batch(texts) == whole


def test_a_text_of_several_chunks_equals_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts longer than three chunks, between others: also those that are mostly gaps, or begin with one."""
    rng = random.Random(21)
    long = _random_text(rng, 210_000, "abcdefgh 中文字，. ")
    gaps = "!" * 70_000 + _words(rng, 66_000) + " " * 70_000 + "。，" + _random_text(rng, 90_000)
    texts = ["a short text before", long, gaps, "the same long line again and again, " * 4_000, "a short text after"]
    cut = parts_batch(texts)
    monkeypatch.setattr(shingles_module, "_CHUNK_CHARACTERS", 1 << 30)
    assert parts_batch(texts) == cut


@pytest.mark.parametrize("kind", ["Latin", "CJK"])
def test_texts_with_a_common_stretch_share_an_anchor(kind: str) -> None:
    """400 characters, wherever they stand in two texts of 1,000: one that is looked up is posted by the other."""
    rng = random.Random(5)
    write = _words if kind == "Latin" else _random_text
    missed = 0
    for _ in range(150):
        shared = write(rng, 400)
        cuts = [rng.randrange(601) for _ in range(2)]
        texts = [f"{write(rng, cut)} {shared} {write(rng, 600 - cut)}" for cut in cuts]
        posted, other = _anchors_of(*texts)
        missed += not set(posted) & set(other[:ANCHORS_LOOKED_UP])
    assert missed <= 2


def test_halves_share_an_anchor_however_long_the_text_is() -> None:
    """The half of a text of up to 20,000 characters, whose 16 anchors are then 1,200 characters apart."""
    rng = random.Random(6)
    missed = 0
    for number in range(90):
        whole = _words(rng, (1_000, 5_000, 20_000)[number % 3])
        start = rng.randrange(len(whole) // 2)
        posted, half = _anchors_of(whole, whole[start : start + len(whole) // 2])
        missed += not set(posted) & set(half[:ANCHORS_LOOKED_UP])
    assert missed <= 1


def test_anchors_spread_over_the_text() -> None:
    """Those looked up leave no third of a text without one, those posted no fifth."""
    rng = random.Random(8)
    for _ in range(15):
        text = _spaced(_words(rng, 3_000))
        places = {value: place for place, value in _hashes(text, STRETCH_CJK, STRETCH_OTHER).items()}
        for count, gap_max in ((ANCHORS_LOOKED_UP, len(text) / 3), (ANCHORS_POSTED, len(text) / 5)):
            chosen = sorted(places[anchor] for anchor in _anchors_of(text)[0][:count])
            assert max(np.diff([0, *chosen, len(text)])) < gap_max


def test_what_stands_around_a_stretch_does_not_change_its_hashes() -> None:
    """A Chinese paragraph has its anchors in an English page, too, and an English one in a Chinese page."""
    rng = random.Random(9)
    for write, around in ((_random_text, _words), (_words, _random_text)):
        shared = write(rng, 400)
        alone, within = _anchors_of(shared, f"{around(rng, 700)} {shared} {around(rng, 700)}")
        assert len(set(alone) & set(within)) >= 3


def test_punctuation_and_declared_language_do_not_count() -> None:
    """Runs of other than word characters are one space; the language has no say in anchors."""
    rng = random.Random(10)
    text = _words(rng, 500) + _random_text(rng, 300)
    marked = f"(({text.replace(' ', ' -- ')}。"
    found = parts_batch([text, marked, text], ["", "", "zh"])
    assert found.anchors[0] == found.anchors[1] == found.anchors[2]
    assert found.samples[0] == found.samples[1] != found.samples[2]


def test_numbers_of_anchors_and_hashes_are_limited() -> None:
    """To 16 and 1,024, fewer of short texts; one too short for a stretch has no anchor, one without words nothing."""
    rng = random.Random(11)
    found = parts_batch([_words(rng, 60_000), "short", "，。!", "", "字" * STRETCH_CJK, "字" * (STRETCH_CJK - 1)])
    assert [len(anchors) // 8 for anchors in found.anchors] == [ANCHORS_POSTED, 0, 0, 0, 1, 0]
    shorter = parts_batch([_words(rng, 1_100), _words(rng, 640), _words(rng, 500), _words(rng, 300)])
    assert [len(anchors) // 8 for anchors in shorter.anchors] == [
        ANCHORS_POSTED,
        10,
        ANCHORS_LOOKED_UP,
        ANCHORS_LOOKED_UP,
    ]
    assert len(found.samples[0]) == 4 * SAMPLE_MAX
    assert found.samples[2:4] == (b"", b"")
    sample = unpacked_sample(found.samples[0]).astype(np.int64)
    assert (np.diff(sample) > 0).all()


def test_a_usual_article_has_a_sample_of_700_bytes() -> None:
    """One of 1,400 characters, give or take what chance does."""
    rng = random.Random(12)
    found = parts_batch([_random_text(rng, 1_400) for _ in range(40)])
    assert np.mean([len(sample) for sample in found.samples]) == pytest.approx(700, rel=0.05)


@pytest.mark.parametrize(
    "text",
    [
        "字" * 1_000_000,
        "a " * 500_000,
        " " * 1_000_000,
        "，。" * 500_000,
        "the same sentence. " * 52_000,
        "a1b2c3 " * 140_000,
    ],
    ids=["one character", "words", "spaces", "punctuation", "a sentence", "a period"],
)
def test_hostile_texts_have_few_anchors_and_take_bounded_time(text: str) -> None:
    """What is identical within a text is one anchor; a million characters take a moment."""
    with within_processor_s(3):
        (anchors,), (sample,) = parts_batch([text])
    distinct = unpacked_anchors(anchors).tolist()
    assert len(distinct) == len(set(distinct)) <= 3
    assert len(sample) <= 4 * 8


@pytest.mark.parametrize(
    ("hashes", "reaches"),
    [
        ([5, 5, 1], [201, 100, 100]),
        ([1, 2, 3], [201, 100, 100]),
        ([3, 2, 1], [100, 301, 100]),
        ([2, 3, 1], [201, 100, 100]),
        ([3, 1, 2], [100, 301, 100]),
    ],
)
def test_reaches_are_to_the_nearest_smaller_one_or_an_end(hashes: list[int], reaches: list[int]) -> None:
    """The same hash counts as smaller where it stands before, and not where it stands behind."""
    found = parts._reaches([200, 300, 900], hashes, 1_000)
    assert sorted(zip(*found, strict=True)) == sorted(zip(reaches, hashes, strict=True))


def test_hostile_text_whose_candidates_rise_and_fall() -> None:
    """Reaches take one pass, whatever the order of hashes: rising, falling, equal, and in both directions."""
    count = 200_000
    for hashes in (range(count), range(count, 0, -1), [7] * count, [*range(count // 2), *range(count // 2, 0, -1)]):
        with within_processor_s(3):
            parts._reaches(range(0, 9 * count, 9), list(hashes), 9 * count)


def test_a_long_text_takes_little_memory() -> None:
    """A million characters take 40 MB at most, mainly for what may be anchors: one stretch in seventeen."""
    text = _words(random.Random(13), 100_000) * 10
    parts_batch(["the tables are built"])
    tracemalloc.start()
    try:
        parts_batch([text])
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 40_000_000


@pytest.mark.parametrize(("own", "other"), [(400, 400), (400, 4_000), (4_000, 400), (20_000, 3_000)])
def test_shares_are_estimated_without_bias(own: int, other: int) -> None:
    """Over 40 pairs with 400 common characters the mean is right, and single ones miss by what the sample allows."""
    rng = random.Random(own + other)
    estimates, exact = [], []
    for _ in range(40):
        shared = _random_text(rng, 400)
        a, b = _samples_of(shared + _random_text(rng, own), _random_text(rng, other) + shared)
        estimates.append(shares(a, b, NONE_COMMON))
        exact.append((396 / (396 + own), 396 / (396 + other)))
    errors = np.array(estimates) - np.array(exact)
    hashes = np.minimum([(400 + own) / 8, (400 + other) / 8], SAMPLE_MAX)
    if own >= 8 * SAMPLE_MAX:
        hashes[1] = hashes[0] / ((400 + own) / (400 + other))
    allowed = np.sqrt(np.array(exact[0]) * (1 - np.array(exact[0])) / hashes)
    assert (np.abs(errors.mean(axis=0)) < 4 * allowed / np.sqrt(40)).all()
    assert (errors.std(axis=0) < 1.5 * allowed).all()


def test_shares_of_what_is_known() -> None:
    """Containment in both directions, nothing in common, and nothing at all."""
    a, b, c = (np.array(values, dtype=np.uint32) for values in ([1, 2, 3, 4], [3, 4, 5, 6, 7, 8, 9, 10], []))
    assert shares(a, b, NONE_COMMON) == (0.5, 0.25)
    assert shares(b, a, NONE_COMMON) == (0.25, 0.5)
    assert shares(a, a, NONE_COMMON) == (1.0, 1.0)
    assert shares(a, c, NONE_COMMON) == shares(c, c, NONE_COMMON) == (0.0, 0.0)


def test_common_hashes_do_not_count() -> None:
    """Neither as shared, nor in what shares are of."""
    a, b = np.array([1, 2, 3, 4], dtype=np.uint32), np.array([3, 4, 5, 6], dtype=np.uint32)
    common = np.array([0, 3, 6, 9], dtype=np.uint32)
    assert shares(a, b, common) == (1 / 3, 1 / 2)
    assert shares(a, b, a) == (0.0, 0.0)


def test_cut_samples_are_compared_up_to_where_both_are_known() -> None:
    """A long text that has a short one whole: the share of the short one is 1, although most of its hashes are cut."""
    rng = random.Random(14)
    short = _random_text(rng, 1_500)
    long = _random_text(rng, 40_000) + short
    a, b = _samples_of(short, long)
    assert len(b) == SAMPLE_MAX
    of_short, of_long = shares(a, b, NONE_COMMON)
    assert of_short == 1.0
    assert of_long == pytest.approx(1_500 / 41_500, abs=0.02)


def test_many_are_compared_as_each_alone() -> None:
    """Empty and cut samples among them."""
    rng = random.Random(15)
    texts = [_words(rng, length) for length in (800, 30_000, 0, 40, 2_000)]
    own = texts[0] + texts[4][:900]
    this, *those = _samples_of(own, *texts)
    common = this[::7]
    found = shares_of_many(this, those, common)
    assert [*zip(found.of_this.tolist(), found.of_that.tolist(), strict=True)] == [
        shares(this, that, common) for that in those
    ]
    assert found.shared[2] == 0
    assert found.shared[0] > 50
    nobody = shares_of_many(this, [], common)
    assert [len(field) for field in nobody] == [0, 0, 0]


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The words of the jieba package."""
    return load_lexicon()


def test_the_engine_has_parts_if_asked(lexicon: Lexicon) -> None:
    """Of the text that is compared, with sketches or without; nothing otherwise, and the rest is the same."""
    texts, languages = ["軟體與滑鼠，" * 30, "", _words(random.Random(16), 900)], ["zh-TW", "", "en"]
    asked = Fingerprinter(Scheme("jieba-tfidf/2"), lexicon, parts=True).fingerprint(texts, languages)
    plain = Fingerprinter(Scheme("jieba-tfidf/2"), lexicon).fingerprint(texts, languages)
    bare = Fingerprinter(Scheme("jieba-tfidf/2"), lexicon, sketched=False, parts=True).fingerprint(texts, languages)
    assert (plain.anchors, plain.samples) == ((), ())
    assert (asked.anchors, asked.samples) == (bare.anchors, bare.samples)
    assert np.array_equal(asked.sketches, plain.sketches)
    assert np.array_equal(asked.codes, plain.codes)
    assert (asked.anchors[0], asked.samples[0]) == tuple(
        field[0] for field in parts_batch(["软件与鼠标," * 30], ["zh-TW"])
    )
    assert asked.anchors[1] == asked.samples[1] == b""


def test_batches_are_joined(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text has its own parts, whichever chunk of the engine it is in."""
    rng = random.Random(17)
    texts = [_words(rng, rng.randrange(600)) for _ in range(9)]
    engine = Fingerprinter(Scheme("jieba-tfidf/1"), lexicon, parts=True)
    whole = engine.fingerprint(texts)
    monkeypatch.setattr("consumer.fingerprint.engine.CHUNK_CHARACTERS_MAX", 500)
    cut = engine.fingerprint(texts)
    assert (cut.anchors, cut.samples) == (whole.anchors, whole.samples)
    assert len(cut.anchors) == len(cut.samples) == len(texts)


def test_halves_in_the_development_feed_share_an_anchor() -> None:
    """Real text repeats itself: of articles of 800 characters and more, both halves in turn."""
    bodies = [article["body"].casefold() for article in dev_sample(11) if len(article["body"]) >= 900]
    halves = [body[len(body) // 2 :] if number % 2 else body[: len(body) // 2] for number, body in enumerate(bodies)]
    whole, alone = _anchors_of(*bodies), _anchors_of(*halves)
    missed = sum(not set(posted) & set(half[:ANCHORS_LOOKED_UP]) for posted, half in zip(whole, alone, strict=True))
    assert len(bodies) > 250
    assert missed <= 2


@pytest.mark.parametrize("chunk", [None, 100])
def test_parts_of_letters_equal_the_reference(chunk: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anchors and samples of letters are keyed as their sketches are, and those of long texts come in pieces."""
    rng = random.Random(21)
    texts = [_random_text(rng, length, "ab1中文") for length in (0, 3, 20, 27, 28, 60, 400)]
    texts += [_random_text(rng, length, "abcdefghijk") for length in (28, 300)] + [_random_text(rng, 300)]
    if chunk:
        monkeypatch.setattr(shingles_module, "_CHUNK_CHARACTERS", chunk)
    secret = Secret(bytes(range(32)))
    found = parts_batch(texts, ["en"] * len(texts), of_letters(secret.hash_key))
    key = keyed.key_of(secret.content)
    for number, text in enumerate(texts):
        stretches = {
            place: keyed.hash_of(piece, key)
            for place, piece in keyed.pieces(text, LETTERS_STRETCH_CJK, LETTERS_STRETCH_OTHER)
        }
        shingles = keyed.shingles(text, LETTERS_SHINGLE_CJK, LETTERS_SHINGLE_OTHER)
        assert unpacked_anchors(found.anchors[number]).tolist() == _chosen(stretches)
        expected = _sampled({keyed.hash_of(shingle, key) for shingle in shingles})
        assert unpacked_sample(found.samples[number]).tolist() == expected
