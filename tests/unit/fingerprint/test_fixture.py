"""The frozen facts of the scheme: stored fingerprints depend on every one of them."""

import json
from typing import Any

import pytest

from consumer.fingerprint import Lexicon
from tests.fixtures.fingerprint.make import FOLDER, facts

FROZEN: dict[str, Any] = json.loads((FOLDER / "jieba-tfidf-1.json").read_text(encoding="utf-8"))
ADVICE = (
    "a fingerprint of jieba-tfidf/1 is not what it was: stores that hold such fingerprints would be misread. "
    "Either undo the change or bump the scheme's version, and only then print the fixture anew with make.py"
)


@pytest.fixture(scope="module")
def computed(lexicon: Lexicon) -> dict[str, Any]:
    """What the code makes of the texts now."""
    return facts(lexicon)


@pytest.mark.parametrize("name", FROZEN["texts"])
def test_every_step_is_as_frozen(name: str, computed: dict[str, Any]) -> None:
    """Each text has its frozen normal form, keywords, fingerprint, keys, minima and sketch."""
    assert computed["texts"][name] == FROZEN["texts"][name], ADVICE


def test_digest_is_as_frozen(computed: dict[str, Any]) -> None:
    """The scheme has its frozen name and digest, and the fixture has all the texts."""
    assert (computed["scheme"], computed["digest"]) == (FROZEN["scheme"], FROZEN["digest"]), ADVICE
    assert list(computed["texts"]) == list(FROZEN["texts"])


def test_equal_forms_have_equal_facts() -> None:
    """The frozen facts themselves say that an invisible character changes nothing."""
    assert FROZEN["texts"]["short"] == FROZEN["texts"]["short, other form"]
