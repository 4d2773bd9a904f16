"""The frozen facts of the schemes: stored fingerprints depend on every one of them."""

import json
from typing import Any

import pytest

from consumer.fingerprint import Lexicon
from tests.fixtures.fingerprint.make import FOLDER, facts

NAMES = ("jieba-tfidf/1", "jieba-tfidf/3")
FROZEN: dict[str, dict[str, Any]] = {
    name: json.loads((FOLDER / f"{name.replace('/', '-')}.json").read_text(encoding="utf-8")) for name in NAMES
}
ADVICE = (
    "a fingerprint is not what it was: stores that hold such fingerprints would be misread. Either undo the change or "
    "bump the scheme's version, and only then print the fixture anew with make.py"
)


@pytest.fixture(scope="module")
def computed(lexicon: Lexicon) -> dict[str, dict[str, Any]]:
    """What the code makes of the texts now."""
    return {name: facts(lexicon, name) for name in NAMES}


@pytest.mark.parametrize("scheme", NAMES)
@pytest.mark.parametrize("text", FROZEN["jieba-tfidf/1"]["texts"])
def test_every_step_is_as_frozen(scheme: str, text: str, computed: dict[str, dict[str, Any]]) -> None:
    """Each text has its frozen normal form, keywords, fingerprint, keys, minima and sketch."""
    assert computed[scheme]["texts"][text] == FROZEN[scheme]["texts"][text], ADVICE


@pytest.mark.parametrize("scheme", NAMES)
def test_digest_is_as_frozen(scheme: str, computed: dict[str, dict[str, Any]]) -> None:
    """The scheme has its frozen name and digest, and the fixture has all the texts."""
    now, frozen = computed[scheme], FROZEN[scheme]
    assert (now["scheme"], now["digest"]) == (frozen["scheme"], frozen["digest"]), ADVICE
    assert list(now["texts"]) == list(frozen["texts"])


@pytest.mark.parametrize("scheme", NAMES)
def test_equal_forms_have_equal_facts(scheme: str) -> None:
    """The frozen facts themselves say that an invisible character changes nothing."""
    texts = FROZEN[scheme]["texts"]
    assert texts["short"] == texts["short, other form"]
