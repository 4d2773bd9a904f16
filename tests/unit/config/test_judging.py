"""Every setting that decides verdicts is taken from the configuration: for a run, and for a command on a store."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import combinations
from typing import Any, Final

import pytest

from consumer.config import judging
from consumer.config.judging import configured_scheme, configured_settings, requested_settings, with_stored_settings
from consumer.config.loading import load_config
from consumer.config.sections.judge import FingerprintSection, JudgeSection
from consumer.fingerprint import Scheme, SketchLayout
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.model.errors import ConfigError

SECTIONS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "plan": {"judge": {"plan": "16x28"}},
    "max_distance": {"judge": {"max_distance": 2}},
    "reach": {"judge": {"reach": 9}},
    "one_bits_distance_max": {"judge": {"one_bits_distance_max": 20}},
    "verify": {"judge": {"verify": False, "lane1": False}},
    "similarity_min": {"judge": {"similarity_min": 0.8}},
    "facts_shared_min": {"judge": {"facts_shared_min": 0.5}},
    "facts_revision": {"judge": {"facts_revision": 1}},
    "slot_conflicts_max": {"judge": {"slot_conflicts_max": 0}},
    "lane1": {"judge": {"lane1": False}},
    "window_ms": {"judge": {"window_s": 60}},
    "verifications_max": {"judge": {"verifications_max": 2_000}},
    "stretches_max": {"judge": {"stretches_max": 0}},
    "extractor": {"source": {"body_format": "article", "extractor": "precise"}},
    "sources": {"rules": {"wire": {"flag": "never"}}},
    "scheme.name": {"fingerprint": {"scheme": "md5-64/1"}},
    "scheme.keywords_max": {"fingerprint": {"keywords_max": 20}},
    "scheme.short_keywords_max": {"fingerprint": {"short_keywords_max": 5}},
    "scheme.decorations": {"fingerprint": {"scheme": "jieba-tfidf/3", "decorations": False}},
    "scheme.facts": {"rules": {"wire": {"facts_shared_min": 0.5}}},
    "scheme.slots": {"rules": {"wire": {"facts": "slots"}}},
    "scheme.sketch.bands": {"fingerprint": {"bands": 8}},
    "scheme.sketch.band_minima": {"fingerprint": {"band_minima": 2}},
}
"""A configuration that changes each field, by the field's place."""
FIXED: Final = {"scheme_digest", "scheme.sketch.bins", "scheme.sketch.sketch_bits", "scheme.sketch.one_bits"}
"""The digest follows from the scheme and the dictionaries; the others have one possible value."""
DEFAULT: Final = configured_settings(load_config(None, {}), Scheme(), "digest")


def value_at(settings: JudgeSettings, place: str) -> object:
    """Return the value of a field, or of a field within the scheme."""
    value: object = settings
    for name in place.split("."):
        value = getattr(value, name)
    return value


def test_every_field_has_a_configuration_here() -> None:
    """A setting that is added to the judge, the scheme or the sketch needs a line above."""
    places = {field.name for field in fields(JudgeSettings)} - {"scheme"}
    places |= {f"scheme.{field.name}" for field in fields(Scheme)} - {"scheme.sketch"}
    places |= {f"scheme.sketch.{field.name}" for field in fields(SketchLayout)}
    assert places == SECTIONS.keys() | FIXED


def test_every_option_is_a_field() -> None:
    """An option that changes no field decides nothing: the dictionaries are in the digest, engines agree.

    What is remembered of texts beyond the window, and parts, are said, and decide nothing. ``profile`` and ``facts``
    stand for others.
    """
    options = {
        option
        for sections in SECTIONS.values()
        for name, section in sections.items()
        if name not in {"rules", "source"}
        for option in section
    }
    assert options == (JudgeSection.model_fields.keys() | FingerprintSection.model_fields.keys()) - {
        "profile",
        "facts",
        "postings_watch",
        "seen_days",
        "parts",
        "dictionary",
        "stop_words",
        "idf",
        "secret_file",
        "engine",
    }


@pytest.mark.parametrize(("place", "sections"), SECTIONS.items())
def test_each_setting_reaches_runs_and_commands(place: str, sections: Mapping[str, Any]) -> None:
    """A run judges by it, and a command that it is given to compares by it instead of ignoring it."""
    config = load_config(None, sections)
    run = configured_settings(config, configured_scheme(config), "digest")
    assert value_at(run, place) != value_at(DEFAULT, place)
    assert requested_settings(config, DEFAULT) == run


def test_what_is_not_requested_stays_as_in_the_store() -> None:
    """Defaults of the configuration do not replace the settings of a store."""
    sections = {"judge": {"plan": "16x28", "reach": 8, "window_s": 60}, "rules": {"wire": {"flag": "never"}}}
    config = load_config(None, sections)
    stored = configured_settings(config, configured_scheme(config), "digest")
    requested = requested_settings(load_config(None, {"judge": {"reach": 7}}), stored)
    assert (requested.reach, requested.plan, requested.window_ms) == (7, stored.plan, 60_000)
    assert requested.sources == {"wire": SourceRule(flag="never")}


@pytest.mark.parametrize("sections", SECTIONS.values(), ids=SECTIONS)
def test_what_is_not_named_is_as_in_the_store(sections: Mapping[str, Any]) -> None:
    """All of a run's settings, and what else follows from them; a setting that is named stays."""
    of_store = load_config(None, sections)
    stored = configured_settings(of_store, configured_scheme(of_store), "digest")
    config = with_stored_settings(load_config(None, {}), stored)
    assert configured_settings(config, configured_scheme(config), "digest") == stored
    assert config.lifetime_s == of_store.lifetime_s
    named = with_stored_settings(
        load_config(None, {"judge": {"reach": 6}, "fingerprint": {"bands": 5}, "rules": {}}), stored
    )
    assert (named.judge.reach, named.fingerprint.bands, named.rules) == (6, 5, {})


def reading(**source: object) -> JudgeSettings:
    """Return the settings that a new store gets with these options of ``[source]``."""
    return configured_settings(load_config(None, {"source": source}), Scheme(), "digest")


@pytest.mark.parametrize(
    ("source", "extractor"),
    [
        ({"body_format": "article"}, "fast/2"),
        ({"body_format": "article", "reader_revision": 1}, "fast/1"),
        ({"body_format": "article", "extractor": "precise"}, "precise/2"),
        ({"body_format": "article", "extractor": "precise", "reader_revision": 1}, "precise/1"),
        ({"body_format": "html", "extractor": "precise"}, "html/2"),
    ],
)
def test_settings_name_how_bodies_are_read(source: Mapping[str, object], extractor: str) -> None:
    """With the revision, which decides what text a body has."""
    assert json.loads(reading(**source).encode())["extractor"] == extractor


@pytest.mark.parametrize("source", [{"extractor": "precise"}, {"reader_revision": 1}, {"body_format": "html"}])
def test_text_and_html_of_revision_1_are_not_named(source: Mapping[str, object]) -> None:
    """Settings keep the bytes that they had before there were revisions."""
    assert reading(**{**source, "reader_revision": 1}).encode() == DEFAULT.encode()
    assert "extractor" not in json.loads(DEFAULT.encode())


def read_on(stored: JudgeSettings, **source: object) -> str:
    """Return how bodies are read with a store where these options are named, for runs and for commands."""
    config = load_config(None, {"source": source})
    assert requested_settings(config, stored) == configured_settings(
        with_stored_settings(config, stored), Scheme(), "digest"
    )
    return with_stored_settings(config, stored).source.body_form


@pytest.mark.parametrize("revision", [1, 2])
def test_pages_are_read_as_the_store_has_them(revision: int) -> None:
    """A format, an extractor or a revision that is named stays, and what it does not say comes from the store."""
    named = {"body_format": "article", "extractor": "precise", "reader_revision": revision}
    stored = reading(**named)
    every = [dict(zip(names, map(named.get, names), strict=True)) for names in ((), *combinations(named, 1))]
    assert {read_on(stored, **source) for source in every} == {f"precise/{revision}"}
    assert read_on(stored, extractor="fast") == f"fast/{revision}"
    assert read_on(stored, reader_revision=3 - revision) == f"precise/{3 - revision}"
    assert read_on(stored, body_format="html") == f"html/{revision}"
    assert with_stored_settings(load_config(None, {"source": {"url": "x"}}), stored).source.url == "x"


def test_html_is_read_as_the_store_has_it() -> None:
    """One that was made before there were revisions goes on with the first, whether it had HTML or text."""
    assert read_on(reading(body_format="html")) == "html/2"
    assert read_on(reading(body_format="html"), body_format="text") == "text"
    older = reading(body_format="html", reader_revision=1)
    assert read_on(older, body_format="html") == "html/1"
    assert read_on(older, body_format="html", reader_revision=2) == "html/2"
    assert read_on(older) == "text"
    assert with_stored_settings(load_config(None, {}), older).source == load_config(None, {}).source


@pytest.mark.parametrize("extractor", ["clever/1", "fast/3", "html/3"])
def test_a_form_that_is_still_to_come_is_left_to_the_store(extractor: str) -> None:
    """It refuses the run; nothing is guessed."""
    later = replace(reading(), extractor=extractor)
    assert with_stored_settings(load_config(None, {}), later).source.body_form == "text"
    assert requested_settings(load_config(None, {}), later) == later


def test_a_configuration_that_contradicts_its_store_is_an_error() -> None:
    """As one that contradicts itself."""
    plain = load_config(None, SECTIONS["verify"])
    stored = configured_settings(plain, configured_scheme(plain), "digest")
    with pytest.raises(ValueError, match="lane1 looks up by sketches"):
        with_stored_settings(load_config(None, {"judge": {"lane1": True}}), stored)


def test_a_field_without_an_option_is_an_error_at_once() -> None:
    """It would keep its default whatever is configured, and nobody would notice."""
    with pytest.raises(TypeError, match="FingerprintSection has no option for facts, name, sketch, slots of Scheme"):
        judging._options(Scheme, frozenset(), FingerprintSection)


@pytest.mark.parametrize(("scheme", "similarity_min"), [("jieba-tfidf/2", 0.75), ("jieba-tfidf/3", 0.73)])
def test_the_scheme_has_a_default_threshold(scheme: str, similarity_min: float) -> None:
    """Where none is named, the threshold is the scheme's, and a named one goes before it."""
    named = Scheme(name=scheme)
    config = load_config(None, {"fingerprint": {"scheme": scheme}})
    assert configured_settings(config, named, "digest").similarity_min == similarity_min
    config = load_config(None, {"fingerprint": {"scheme": scheme}, "judge": {"similarity_min": 0.9}})
    assert configured_settings(config, named, "digest").similarity_min == 0.9


def test_a_rule_is_stricter_than_the_threshold_of_the_scheme() -> None:
    """A rule between the thresholds of two schemes is refused with the stricter one alone."""
    rules = {"wire": {"similarity_min": 0.74}}
    load_config(None, {"fingerprint": {"scheme": "jieba-tfidf/3"}, "rules": rules})
    with pytest.raises(ConfigError, match=r"can only be stricter: at least 0\.75"):
        load_config(None, {"fingerprint": {"scheme": "jieba-tfidf/2"}, "rules": rules})
