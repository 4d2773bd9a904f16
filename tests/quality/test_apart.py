"""Texts that differ in little and say another thing stay apart, in every script and also inside short sentences."""

import unicodedata

from benchmarks.quality.judging import judged
from tests.quality.apart_pairs import PAIRS, SENTENCES


def test_there_are_three_hundred_pairs_in_twelve_scripts() -> None:
    """The texts of each pair differ, and are each the other's only one."""
    pairs = [frozenset(pair) for of_script in PAIRS.values() for pair in of_script]
    assert len(PAIRS.keys() - {"signs"}) == 12
    assert len(set(pairs)) == len(pairs) >= 300
    assert {len(pair) for pair in pairs} == {2}


def test_short_texts_that_differ_stay_apart() -> None:
    """None of them is flagged, for the other one of its pair or for any."""
    texts = {_composed(text) for of_script in PAIRS.values() for pair in of_script for text in pair}
    assert _flagged(texts) == []


def test_they_stay_apart_inside_sentences() -> None:
    """A sentence with one is not flagged for the same with another."""
    sentences = {
        _composed(SENTENCES[script].format(text)) for script, pairs in PAIRS.items() for pair in pairs for text in pair
    }
    assert _flagged(sentences) == []


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _flagged(texts: set[str]) -> list[tuple[str, str]]:
    ordered = sorted(texts)
    return [
        (text, ordered[int(verdict.duplicate_of)])
        for text, verdict in zip(ordered, judged(ordered), strict=True)
        if verdict.duplicate_of is not None
    ]
