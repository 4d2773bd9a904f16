"""What a scheme's digest covers, and the parts that its definition brings along."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from typing_extensions import override

from consumer.fingerprint import (
    SCHEME_NAMES,
    Fingerprinter,
    IdfTable,
    Lexicon,
    OwnWord,
    Scheme,
    SketchLayout,
    Tokenizer,
)
from consumer.fingerprint import scheme as scheme_module
from consumer.fingerprint.definitions import DEFINITIONS, WordSplitting
from consumer.workers.word_files import load_lexicon

LEXICON = Lexicon(lambda: IdfTable({}, 1.0), stop_words=frozenset(), digest=b"a lexicon")


@pytest.mark.parametrize(
    "other",
    [
        Scheme("jieba-tfidf/1", keywords_max=22),
        Scheme("jieba-tfidf/1", short_keywords_max=8),
        Scheme("jieba-tfidf/1", sketch=SketchLayout(bands=8, band_minima=5)),
    ],
)
def test_other_parameters_have_another_digest(other: Scheme) -> None:
    """Each parameter of a scheme is in its digest."""
    assert other.digest(LEXICON) != Scheme("jieba-tfidf/1").digest(LEXICON)


def test_decorations_are_a_parameter_of_schemes_of_letters() -> None:
    """With a digest of its own; others are as they were before there was one."""
    assert Scheme("jieba-tfidf/3", decorations=False).digest(LEXICON) != Scheme("jieba-tfidf/3").digest(LEXICON)
    assert "decorations" not in Scheme("jieba-tfidf/2").parameters()


@pytest.mark.parametrize("table", ["letters", "decorations"])
def test_tables_of_letters_are_in_the_digest(table: str) -> None:
    """Those of decorations only where these are left out."""
    real, letters, whole = load_lexicon(), Scheme("jieba-tfidf/3"), Scheme("jieba-tfidf/3", decorations=False)
    other = replace(real, **{table: getattr(LEXICON, table)})
    assert other.digest == real.digest
    assert letters.digest(other) != letters.digest(real)
    assert (whole.digest(other) != whole.digest(real)) is (table == "letters")
    assert Scheme("jieba-tfidf/2").digest(other) == Scheme("jieba-tfidf/2").digest(real)


def test_no_two_schemes_have_one_digest() -> None:
    """Each name has a digest of its own, with everything else equal."""
    assert len({Scheme(name=name).digest(LEXICON) for name in SCHEME_NAMES}) == len(SCHEME_NAMES)


@pytest.mark.parametrize("name", SCHEME_NAMES)
def test_all_of_a_definition_is_described(name: str) -> None:
    """The description says everything that the definition of a scheme consists of, and the name says the width."""
    scheme, description = Scheme(name=name), json.dumps(Scheme(name=name).describe())
    definition = scheme.definition
    for part in (definition.splitting, definition.filtering, definition.weighting, definition.hashing):
        assert json.dumps(part.described)[1:-1] in description
    assert ("as written" in str(scheme.describe()["tokenizer"])) == ("as written" in definition.split_form.described)
    assert (">= 0" in description) is definition.tie
    assert scheme.bits == (128 if "-128/" in name else 64)


class _Spaces(Tokenizer):
    """Splits at spaces, except around the lexicon's own words."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.own_words = {own.word for own in lexicon.own_words}

    @override
    def cut(self, text: str) -> list[str]:
        return [text] if text in self.own_words else text.split()

    @override
    def count(self, text: str) -> Counter[str]:
        return Counter(self.cut(text))


def test_a_definition_brings_its_own_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheme for another script is one definition: its tokenizer splits, knows own words, and is in the digest."""
    jieba = DEFINITIONS["jieba-tfidf/1"]
    spaces = jieba._replace(splitting=WordSplitting(_Spaces, "split at spaces"))
    monkeypatch.setattr(scheme_module, "DEFINITIONS", {**DEFINITIONS, "spaces/1": spaces})
    lexicon = replace(LEXICON, own_words=(OwnWord("新馆 四层", None),))
    fingerprinter = Fingerprinter(Scheme(name="spaces/1"), lexicon)
    assert fingerprinter.words("新馆共有四层 新馆共有") == {"新馆共有四层", "新馆共有"}
    assert fingerprinter.words("新馆 四层") == {"新馆 四层"}
    assert Scheme(name="spaces/1").describe()["tokenizer"] == "split at spaces"
    renamed = dict(Scheme(name="spaces/1").describe(), scheme="jieba-tfidf/1")
    differing = {part for part, described in Scheme("jieba-tfidf/1").describe().items() if renamed[part] != described}
    assert differing == {"tokenizer"}


def test_other_lexicon_has_another_digest() -> None:
    """Another dictionary, IDF table or stop word list is another scheme."""
    assert Scheme("jieba-tfidf/1").digest(replace(LEXICON, digest=b"another")) != Scheme("jieba-tfidf/1").digest(
        LEXICON
    )


def test_digest_is_repeatable_hexadecimal() -> None:
    """A digest is 32 hexadecimal digits, the same for an equal scheme."""
    digest = Scheme("jieba-tfidf/1").digest(LEXICON)
    assert len(bytes.fromhex(digest)) == 16
    assert Scheme(name="jieba-tfidf/1").digest(LEXICON) == digest


@pytest.mark.parametrize("name", SCHEME_NAMES)
def test_description_is_plain_data(name: str) -> None:
    """The description can be written as JSON for a person to read and compare."""
    described = Scheme(name=name).describe()
    assert json.loads(json.dumps(described)) == described


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "unknown/1"}, "unknown scheme 'unknown/1'"),
        ({"keywords_max": 0}, "at least 1"),
        ({"short_keywords_max": -1}, "at least 0"),
        ({"name": "jieba-tfidf/2", "decorations": False}, "decorations = false has no effect with jieba-tfidf/2"),
    ],
)
def test_refused_schemes(fields: dict[str, Any], reason: str) -> None:
    """A scheme that no engine computes is refused."""
    with pytest.raises(ValueError, match=reason):
        Scheme(**fields)
