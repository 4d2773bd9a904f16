"""Fingerprints and comparisons of texts alone."""

import random

import pytest

import dupwatch
from consumer.fingerprint import Fingerprinter, Scheme
from consumer.workers.word_files import load_lexicon
from tests.cli.command import text

GREEK = " ".join("".join(random.Random(seed).choices("αβγδεζηθικλμνξοπρστυφχψω", k=7)) for seed in range(60))
"""Letters that jieba has no words for."""


@pytest.mark.parametrize(
    ("body", "kind"),
    [(text(1), "long"), ("Ferry terminal.", "short"), ("", "empty"), (GREEK, "shingled")],
)
def test_a_fingerprint_is_that_of_the_scheme(body: str, kind: str) -> None:
    """With its keywords, and how the text is matched."""
    expected = Fingerprinter(Scheme(), load_lexicon()).fingerprint([body], [""])
    found = dupwatch.fingerprint(body)
    assert (found.code, found.bits, found.scheme) == (int(expected.codes[0, 0]), 64, "jieba-tfidf/3")
    assert (found.keywords, found.kind) == (expected.keywords[0], kind)


def test_a_distance_is_counted_within_one_scheme() -> None:
    """Fingerprints of two schemes say nothing of each other."""
    one, other = dupwatch.fingerprint(text(1)), dupwatch.fingerprint(text(2))
    assert one.distance(other) == (one.code ^ other.code).bit_count() > 3
    with pytest.raises(ValueError, match="cannot be compared"):
        one.distance(dupwatch.Fingerprint(1, 128, "md5-128/1", "long", ()))


def test_texts_are_compared_as_the_judge_does() -> None:
    """In either order, whatever languages the texts declare."""
    near = dupwatch.compare(text(1), f"{text(1)} too")
    assert near.near
    assert near == dupwatch.compare(f"{text(1)} too", text(1))
    assert near.similarity is not None
    assert near.similarity > 0.9
    assert len(near.shared_keywords) > 5
    assert not dupwatch.compare(text(1), text(2)).near
    assert near == dupwatch.compare(text(1), f"{text(1)} too", lang_a="zh", lang_b="en")
    spaced = dupwatch.compare(text(1), " ".join(text(1)))
    assert (spaced.near, spaced.similarity) == (True, 1.0)
    assert dupwatch.compare("Ships leave", "ships-leave").near
    assert not dupwatch.compare("Ships leave at 3.5", "Ships leave at 35").near
    assert dupwatch.compare("", "").similarity is None
