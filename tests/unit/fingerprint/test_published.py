"""The schemes against facts that were computed without this code, and against their second implementation."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import (
    SCHEME_NAMES,
    Fingerprinter,
    JiebaTokenizer,
    Lexicon,
    RustTokenizer,
    Scheme,
    TextKind,
    fingerprint_number,
    simhash,
)
from consumer.fingerprint.published_hashes import code_points, hashlittle2, jenkins_64, multiply_xor, utf16_units
from consumer.workers.word_files import load_lexicon
from tests.dev_feed import dev_sample
from tests.examples import drawn
from tests.fixtures.fingerprint import second
from tests.fixtures.fingerprint.second_forms import second_forms

FOLDER = Path(second.__file__).parent
FACTS: dict[str, Any] = json.loads((FOLDER / "published.json").read_text(encoding="utf-8"))
FROZEN: dict[str, Any] = json.loads((FOLDER / "schemes.json").read_text(encoding="utf-8"))
TEXTS: dict[str, str] = json.loads((FOLDER / "texts.json").read_text(encoding="utf-8"))
UNITS = {"code points": code_points, "utf-16 units": utf16_units}
HASHES = {name: Scheme(name=name).definition.hashing.hash for name in SCHEME_NAMES}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("fact", FACTS["multiply-xor"], ids=lambda fact: f"{fact['bits']} {fact['tokens'][0]}")
def test_multiply_xor_of_tokens(fact: dict[str, Any], units: str) -> None:
    """Unweighted tokens have the published fingerprints, over code points and over UTF-16 units, ties being ones."""
    features = [(multiply_xor(UNITS[units](token), fact["bits"]), 1.0) for token in fact["tokens"]]
    assert simhash(features, fact["bits"], tie=True) == int(fact[units], 16)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("fact", FACTS["multiply-xor of one token"], ids=lambda fact: f"{fact['bits']} {fact['token']}")
def test_multiply_xor_of_one_token(fact: dict[str, Any], units: str) -> None:
    """A token alone has the published hash."""
    assert multiply_xor(UNITS[units](fact["token"]), fact["bits"]) == int(fact[units], 16)


def test_multiply_xor_of_nothing() -> None:
    """The empty string hashes to 0."""
    assert multiply_xor([], 128) == 0


@pytest.mark.parametrize("fact", FACTS["jenkins"], ids=lambda fact: fact["text"])
def test_jenkins(fact: dict[str, str]) -> None:
    """Texts have the hashes that lookup3 gives them, the empty one too."""
    assert jenkins_64(fact["text"]) == int(fact["hash"])


@pytest.mark.parametrize(
    ("primary", "secondary", "hashed"),
    [(0, 0, (0x17770551, 0xCE7226E6)), (0, 1, (0xE3607CAE, 0xBD371DE4)), (1, 0, (0xCD628161, 0x6CBEA4B3))],
)
def test_jenkins_initial_values(primary: int, secondary: int, hashed: tuple[int, int]) -> None:
    """Both initial values are used as in the driver that comes with lookup3.c."""
    assert hashlittle2(b"Four score and seven years ago", primary, secondary) == hashed


@pytest.mark.parametrize("fact", FACTS["md5"], ids=lambda fact: fact["text"])
def test_md5(fact: dict[str, str]) -> None:
    """Texts have the published MD5, and its leading half for 64 bits."""
    assert HASHES["md5-128/1"](fact["text"]) == int(fact["hash"], 16)
    assert HASHES["md5-64/1"](fact["text"]) == int(fact["hash"][:16], 16)


def test_sha1_has_the_value_of_its_standard() -> None:
    """The leading bits of SHA-1 are those of the example in FIPS 180."""
    assert HASHES["sha1-128/1"]("abc") == 0xA9993E364706816ABA3E25717850C26C
    assert HASHES["sha1-64/1"]("abc") == 0xA9993E364706816A


@pytest.mark.parametrize("fact", FACTS["weighted"], ids=lambda fact: fact["hash"])
def test_weighted_keywords(fact: dict[str, Any]) -> None:
    """Published keywords with their weights have the published fingerprints."""
    function = HASHES[{"jenkins": "jenkins-64/1", "fnv-1a 64": "jieba-tfidf/1"}[fact["hash"]]]
    assert f"{simhash([(function(word), weight) for word, weight in fact['keywords']]):016x}" == fact["fingerprint"]


@pytest.fixture(scope="module")
def published_lexicon(tmp_path_factory: pytest.TempPathFactory) -> Lexicon:
    """A table in which unknown words weigh what they weigh in the published system's, and its word 白富美."""
    dictionary = tmp_path_factory.mktemp("own") / "words.txt"
    dictionary.write_text("白富美\n", encoding="utf-8")
    return load_lexicon(dictionary, None, FOLDER / "published-idf.txt")


def test_published_sample_end_to_end(published_lexicon: Lexicon) -> None:
    """The published text has the published keywords, weights and fingerprint, and the same with one of them twice."""
    text = FACTS["published keywords"]["text"]
    fingerprints = Fingerprinter(Scheme(name="jenkins-64/1", keywords_max=5), published_lexicon).fingerprint(
        [text, f"{text[:-1]}，加薪。"]
    )
    published = {word: pytest.approx(weight) for word, weight in FACTS["published keywords"]["keywords"]}
    assert dict(fingerprints.keywords[0]) == published
    assert dict(fingerprints.keywords[1])["加薪"] == pytest.approx(2 * 10.6426)
    expected = next(fact["fingerprint"] for fact in FACTS["weighted"] if fact["hash"] == "jenkins")
    assert [f"{fingerprint_number(code):016x}" for code in fingerprints.codes] == [expected, expected]


@pytest.mark.parametrize("name", SCHEME_NAMES)
@given(word=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_hashes_are_those_of_the_second_implementation(name: str, word: str) -> None:
    """Any word has one hash in both implementations of a scheme."""
    assert HASHES[name](word) == second.SECOND[name].hash(word)


@pytest.mark.parametrize("name", SCHEME_NAMES)
def test_fingerprints_are_as_frozen(name: str, lexicon: Lexicon) -> None:
    """Each text has the frozen fingerprint, made by the second implementation, and the scheme its frozen digest."""
    scheme = Scheme(name=name)
    fingerprints = Fingerprinter(scheme, lexicon).fingerprint(list(TEXTS.values()))
    codes = {
        title: f"{fingerprint_number(code):0{scheme.bits // 4}x}"
        for title, code in zip(TEXTS, fingerprints.codes, strict=True)
    }
    assert codes == FROZEN[name]["texts"]
    assert scheme.digest(lexicon) == FROZEN[name]["digest"]
    assert fingerprints.codes.shape == (len(TEXTS), scheme.bits // 64)


@pytest.mark.parametrize("name", drawn(SCHEME_NAMES, 2))
def test_real_articles_agree(name: str, lexicon: Lexicon, jieba_tokenizer: JiebaTokenizer) -> None:
    """Articles of the development feed have the second implementation's keywords, and its fingerprints."""
    bodies = [article["body"][:400] for article in dev_sample(1223)]
    fingerprints = Fingerprinter(Scheme(name=name), lexicon, RustTokenizer(), keywords_kept=None).fingerprint(bodies)
    other = second.SECOND[name]
    for number, body in enumerate(bodies):
        forms = second_forms(name, body, lexicon)
        weighted = second.keywords(other, jieba_tokenizer.cut(forms.words), lexicon.idf, lexicon.stop_words)
        assert list(fingerprints.keywords[number]) == weighted
        is_short = forms.is_short(name, len(weighted))
        expected = second.fingerprint(other, weighted, forms.compared, is_short=is_short)
        assert fingerprint_number(fingerprints.codes[number]) == expected


@pytest.mark.parametrize("name", SCHEME_NAMES)
@pytest.mark.parametrize("keywords_max", [None, 3])
def test_breakdown_is_of_the_fingerprint(name: str, keywords_max: int | None, lexicon: Lexicon) -> None:
    """The breakdown of a text leads to the fingerprint that the engine computes."""
    engine = Fingerprinter(Scheme(name=name, keywords_max=keywords_max), lexicon, keywords_kept=None)
    fingerprints = engine.fingerprint(list(TEXTS.values()))
    for number, text in enumerate(TEXTS.values()):
        breakdown = engine.breakdown(text)
        assert breakdown.fingerprint == fingerprint_number(fingerprints.codes[number])
        counted = tuple((word.word, word.weight) for word in breakdown.words)
        # Without keywords there may be evidence of another kind.
        assert counted == (fingerprints.keywords[number] if fingerprints.keyword_counts[number] else ())
        assert [word.hash for word in breakdown.words] == [HASHES[name](word.word) for word in breakdown.words]
        assert int(breakdown.kind) == fingerprints.kinds[number]
        signs = [total > 0 or (engine.scheme.definition.tie and total == 0) for total in breakdown.sums]
        is_short = engine.scheme.definition.compares_letters and breakdown.kind is TextKind.SHORT
        if not is_short and (counted or not engine.scheme.definition.every_script):
            assert breakdown.fingerprint == int("".join(str(int(sign)) for sign in signs), 2)


def test_published_schemes_read_the_text_as_written(lexicon: Lexicon) -> None:
    """A published scheme keeps capitals as its system does; ours folds them; neither fails on a lone surrogate."""
    shouted, text = "RAILWAY TIMETABLE \ud800 图书馆", "railway timetable \ud800 图书馆"
    for name in ("md5-64/1", "multiply-xor-128/1"):
        codes = Fingerprinter(Scheme(name=name), lexicon).fingerprint([shouted, text]).codes
        assert codes[0].tolist() != codes[1].tolist()
    codes = Fingerprinter(Scheme(name="hyperplanes-64/1"), lexicon).fingerprint([shouted, text]).codes
    assert codes[0].tolist() == codes[1].tolist()
