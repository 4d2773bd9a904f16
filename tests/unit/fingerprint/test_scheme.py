"""What a scheme's digest is over."""

import json
from dataclasses import replace
from typing import Any

import pytest

from consumer.fingerprint import Lexicon, Scheme, SketchLayout

LEXICON = Lexicon(idf={}, median_idf=1.0, stop_words=frozenset(), digest=b"a lexicon")


@pytest.mark.parametrize(
    "other",
    [
        Scheme(keywords_max=22),
        Scheme(short_keywords_max=8),
        Scheme(sketch=SketchLayout(bands=8, band_minima=5)),
    ],
)
def test_other_parameters_have_another_digest(other: Scheme) -> None:
    """Each parameter of a scheme is in its digest."""
    assert other.digest(LEXICON) != Scheme().digest(LEXICON)


def test_other_lexicon_has_another_digest() -> None:
    """Another dictionary, IDF table or stop word list is another scheme."""
    assert Scheme().digest(replace(LEXICON, digest=b"another")) != Scheme().digest(LEXICON)


def test_digest_is_repeatable_hexadecimal() -> None:
    """A digest is 32 hexadecimal digits, the same for an equal scheme."""
    digest = Scheme().digest(LEXICON)
    assert len(bytes.fromhex(digest)) == 16
    assert Scheme(name="jieba-tfidf/1").digest(LEXICON) == digest


def test_description_is_plain_data() -> None:
    """The description can be written as JSON for a person to read and compare."""
    assert json.loads(json.dumps(Scheme().describe())) == Scheme().describe()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "unknown/1"}, "no scheme 'unknown/1'"),
        ({"bits": 128}, "64 bits, not of 128"),
        ({"keywords_max": 0}, "from 1 on"),
        ({"short_keywords_max": -1}, "from 0 on"),
    ],
)
def test_refused_schemes(fields: dict[str, Any], reason: str) -> None:
    """A scheme that no engine computes is refused."""
    with pytest.raises(ValueError, match=reason):
        Scheme(**fields)
