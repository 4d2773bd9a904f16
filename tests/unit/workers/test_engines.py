"""Which engine computes fingerprints, and why."""

from importlib import metadata
from types import SimpleNamespace

import pytest

from consumer.fingerprint import Fingerprinter, Lexicon, Scheme, compiled
from consumer.model.errors import ConfigError
from consumer.workers.engines import chosen_engine, new_engine
from consumer.workers.word_files import load_lexicon

NAMES = ("jieba-tfidf/1", "jieba-tfidf/2")


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The words of the jieba package."""
    return load_lexicon()


def core_of(lexicon: Lexicon, **changes: object) -> SimpleNamespace:
    """What an installed core says of itself."""
    facts = {
        "REVISION": compiled.REVISION,
        "JIEBA_DIGEST": lexicon.jieba_digest,
        "CHINESE_DIGEST": lexicon.chinese().digest,
    }
    return SimpleNamespace(**facts | changes)


@pytest.mark.parametrize("name", NAMES)
def test_a_core_that_fits_is_used(monkeypatch: pytest.MonkeyPatch, lexicon: Lexicon, name: str) -> None:
    """And named with its version."""
    monkeypatch.setattr(compiled, "_core", lambda: core_of(lexicon))
    monkeypatch.setattr(metadata, "version", lambda package: f"7.7 of {package}")
    for wanted in ("auto", "compiled"):
        chosen = chosen_engine(wanted, Scheme(name), lexicon)
        assert chosen.description == "compiled (dupwatch-core 7.7 of dupwatch-core)"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"REVISION": compiled.REVISION + 1}, "revision"),
        ({"JIEBA_DIGEST": b"other"}, "another version of jieba"),
        ({"CHINESE_DIGEST": b"other"}, "other tables of Chinese characters"),
    ],
)
def test_a_core_that_does_not_fit_is_not_used(
    monkeypatch: pytest.MonkeyPatch, lexicon: Lexicon, changes: dict[str, object], why: str
) -> None:
    """It would compute other fingerprints. The reason is said; whoever asked for it is refused."""
    monkeypatch.setattr(compiled, "_core", lambda: core_of(lexicon, **changes))
    chosen = chosen_engine("auto", Scheme(), lexicon)
    assert chosen.name == "python"
    assert why in chosen.description
    assert "build it again" in chosen.description
    with pytest.raises(ConfigError, match="in a checkout, run make core"):
        chosen_engine("compiled", Scheme(), lexicon)
    with pytest.raises(ValueError, match=why):
        compiled.CompiledFingerprinter(Scheme(), lexicon)


def test_other_tables_matter_only_where_they_are_used(monkeypatch: pytest.MonkeyPatch, lexicon: Lexicon) -> None:
    """The first scheme folds nothing."""
    monkeypatch.setattr(compiled, "_core", lambda: core_of(lexicon, CHINESE_DIGEST=b"other"))
    assert compiled.core_obstacle(Scheme("jieba-tfidf/1"), lexicon) is None


def test_without_a_core_python_computes(monkeypatch: pytest.MonkeyPatch, lexicon: Lexicon) -> None:
    """As if it had been asked for."""
    monkeypatch.setattr(compiled, "_core", lambda: None)
    assert chosen_engine("auto", Scheme(), lexicon).description == "python (dupwatch-core is not installed)"
    assert compiled.core_version() is None
    with pytest.raises(ConfigError, match="dupwatch-core is not installed"):
        chosen_engine("compiled", Scheme(), lexicon)


def test_python_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, lexicon: Lexicon) -> None:
    """Also where a core is installed."""
    monkeypatch.setattr(compiled, "_core", lambda: core_of(lexicon))
    chosen = chosen_engine("python", Scheme(), lexicon)
    assert chosen.description == "python (fingerprint.engine selects it)"
    engine = new_engine(chosen.name, Scheme(), lexicon, sketched=False, parts=False)
    assert isinstance(engine, Fingerprinter)
    assert engine.fingerprint(["text"]).sketches.shape == (1, 0)
