"""The configuration: its layers in rising order, and errors that name the setting."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from consumer.config.config import Config
from consumer.config.loading import load_config, plain_pydantic_message
from consumer.config.printing import flatten
from consumer.model.errors import ConfigError
from consumer.wiring.components import scheme_of


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore what the person who runs the tests has configured."""
    for name in [name for name in os.environ if name.upper().startswith("DUPWATCH_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """The path of the configuration that a test writes."""
    return tmp_path / "dupwatch.toml"


def test_each_layer_overrides_the_one_before(toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File over default, environment over file, command line over environment; setting by setting."""
    toml.write_text("workers = 1\n[judge]\nreach = 7\nsimilarity_min = 0.8\nwindow_s = 60\n")
    monkeypatch.setenv("DUPWATCH_JUDGE__SIMILARITY_MIN", "0.85")
    monkeypatch.setenv("DUPWATCH_JUDGE__WINDOW_S", "61")
    judge = load_config(toml, {"judge": {"window_s": 62}}).judge
    assert (judge.reach, judge.similarity_min, judge.window_s, judge.max_distance) == (7, 0.85, 62, 3)
    assert load_config(toml, {}).workers == 1


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"judge": {"mood": 1}}, "unknown setting judge.mood"),
        ({"mood": 1}, "unknown setting mood"),
        ({"rules": {"wire": {"flags": "never"}}}, "unknown setting rules.wire.flags;"),
        ({"source": {"fields": {"bodi": "x"}}}, "unknown setting source.fields.bodi; did you mean source.fields.body?"),
        ({"source": {"fields": {"body": ""}}}, "source.fields.body: must have at least 1 character"),
        ({"banks": {"url": "a\0b"}}, "it contains a NUL character"),
        (
            {"source": {"fields": "body"}},
            "source.fields: this is a section; set one of its settings, source.fields.NAME (it is 'body')",
        ),
        ({"judge": 3}, "judge: this is a section; set one of its settings, judge.NAME (it is 3)"),
        ({"rules": {"wire": {"facts_shared_min": 2}}}, "rules.wire.facts_shared_min: must be at most 1"),
        ({"rules": {"wire": {"max_distance": 129}}}, "rules.wire.max_distance: must be at most"),
        ({"judge": {"reach": 129}}, "judge.reach"),
        ({"judge": {"similarity_min": 1.1}}, "judge.similarity_min"),
        ({"judge": {"max_distance": 5, "reach": 4}}, "reach 4 is less than max_distance 5"),
        ({"judge": {"verify": False}}, "set lane1 = false"),
        ({"banks": {"busy_share": 0}}, "banks.busy_share: must be greater than 0"),
        ({"banks": {"busy_share": 0.001, "busy_articles_min": 999}}, "is less than one article, so the first match of"),
        ({"store": {"url": "redis:here"}}, "store.url: write it as memory:, lmdb:PATH or hbase://HOST:PORT"),
        ({"store": {"url": "hbase://gateway:9090"}}, "store.url: write it as memory:, lmdb:PATH or hbase://HOST:PORT"),
        ({"store": {"hbase": {"connections_max": 0}}}, "store.hbase.connections_max"),
        ({"store": {"hbase": {"tls_ca": "ca.pem"}}}, "have no effect without tls = true"),
        ({"store": {"hbase": {"tls": True, "tls_key": "a.key"}}}, "tls_key has no effect without tls_certificate"),
        ({"source": {"batch_records_max": 0}}, "source.batch_records_max"),
        ({"sink": {"emit": "some"}}, "sink.emit"),
        ({"workers": -1}, "workers"),
        ({"rules": {"wire": {"max_distance": 2}}}, "rules.wire.max_distance has no effect"),
        ({"rules": {"wire": {"similarity_min": 0.5}}}, "rules.wire.similarity_min can only be stricter"),
        ({"rules": {"wire": {"flag": "perhaps"}}}, "rules.wire.flag"),
        ({"rules": {"wire": {"never_with": "mirror"}}}, "rules.wire.never_with: must be a list (it is 'mirror')"),
        ({"rules": {"wire": {"never_with": [1]}}}, "rules.wire.never_with.0: must be a valid string"),
        ({"rules": {"wire": {"never_with": ["a", "wire"]}}}, "never_with names the source itself; set within_source"),
        ({"rules": {"wire": {"never_with": [f"{n}" for n in range(101)]}}}, "never_with: must have at most 100 items"),
        ({"judge": {"facts_shared_min": 1.1}}, "judge.facts_shared_min"),
        ({"judge": {"verify": False, "lane1": False, "facts_shared_min": 0.8}}, "facts_shared_min has no effect"),
        (
            {"judge": {"verify": False, "lane1": False}, "rules": {"wire": {"facts_shared_min": 0.8}}},
            "rules.wire.facts_shared_min has no effect",
        ),
        (
            {"judge": {"facts_shared_min": 0.8}, "rules": {"wire": {"facts_shared_min": 0.7}}},
            "rules.wire.facts_shared_min can only be stricter: at least 0.8",
        ),
        (
            {"judge": {"verify": False, "lane1": False}, "rules": {"wire": {"similarity_min": 0.9}}},
            "rules.wire.similarity_min has no effect",
        ),
        (
            {"judge": {"verify": False, "lane1": False}, "rules": {"wire": {"max_distance": 4}}},
            "rules.wire.max_distance can only be stricter",
        ),
    ],
)
def test_an_error_names_the_setting(overrides: Mapping[str, Any], message: str) -> None:
    """In a sentence for people."""
    with pytest.raises(ConfigError) as error:
        load_config(None, overrides)
    assert message in str(error.value)


@pytest.mark.parametrize("url", ["memory:", "lmdb:a place\nof two lines", "hbase://a:9090,b.example:9091/feed"])
def test_a_store_url_of_each_kind_is_accepted(url: str) -> None:
    """Unchanged."""
    assert load_config(None, {"store": {"url": url}}).store.url == url


def test_all_errors_are_reported_at_once() -> None:
    """Nobody corrects one setting to learn of the next."""
    with pytest.raises(ConfigError, match=r"judge\.reach.*; .*workers") as error:
        load_config(None, {"judge": {"reach": "far"}, "workers": -1})
    assert str(error.value).count(";") == 1


@pytest.mark.parametrize("name", ["DUPWATCH_JUGDE__REACH", "DUPWATCH_REACH", "dupwatch_jugde__reach"])
def test_a_variable_of_an_unknown_section_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a misspelt variable would be ignored silently."""
    monkeypatch.setenv(name, "3")
    with pytest.raises(ConfigError, match=name):
        load_config(None, {})


def test_a_variable_of_an_unknown_setting_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the name of the setting."""
    monkeypatch.setenv("DUPWATCH_JUDGE__REACHH", "3")
    with pytest.raises(ConfigError, match=r"judge\.reachh"):
        load_config(None, {})


def test_ranks_are_set_by_the_names_of_sources(toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With dots in them or not, in a file or as a map; a name in the name of a variable would lose its capitals."""
    toml.write_text("[console.authority]\nXinhua = 10\npeople.com.cn = -5\n", encoding="utf-8")
    config = load_config(toml, {})
    assert config.console.authority == {"Xinhua": 10, "people.com.cn": -5}
    assert [each for each in flatten(config) if "authority" in each[0]] == [
        ("console.authority.Xinhua", "10"),
        ('console.authority."people.com.cn"', "-5"),
    ]
    monkeypatch.setenv("DUPWATCH_CONSOLE__AUTHORITY", '{"Xinhua" = 3}')
    assert load_config(None, {}).console.authority == {"Xinhua": 3}
    with pytest.raises(ConfigError, match="at most 1000"):
        load_config(None, {"console": {"authority": {"Xinhua": 1001}}})
    monkeypatch.setenv("DUPWATCH_CONSOLE__AUTHORITY__XINHUA", "3")
    with pytest.raises(ConfigError, match="lose the capital letters"):
        load_config(None, {})


@pytest.mark.parametrize("content", [b"[judge\n", b"\xff\xfe", b"judge = 1\njudge = 2\n", b"judge = " + b"[" * 50_000])
def test_a_file_that_is_not_toml_is_an_error(toml: Path, content: bytes) -> None:
    """With its name."""
    toml.write_bytes(content)
    with pytest.raises(ConfigError, match=r"dupwatch\.toml is not valid TOML"):
        load_config(toml, {})


@pytest.mark.parametrize("value", ["[" * 50_000, '{"a": ' * 50_000])
def test_a_variable_that_is_nested_too_deep_is_an_error(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """With its name, and without a traceback."""
    monkeypatch.setenv("DUPWATCH_KAFKA__CLIENT", value)
    with pytest.raises(ConfigError, match="DUPWATCH_KAFKA__CLIENT cannot be parsed"):
        load_config(None, {})


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """A misspelt name must not select the defaults."""
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "missing.toml", {})


def test_the_printed_configuration_can_be_read_back(toml: Path) -> None:
    """Every setting by its dotted name; unusual names of sources are quoted."""
    rules = {"新华 网": {"flag": "never"}, "plain": {"similarity_min": 0.9}}
    config = load_config(None, {"rules": rules, "judge": {"reach": 9}})
    shown = dict(flatten(config))
    assert shown["judge.reach"] == "9"
    toml.write_text("".join(f"{name} = {value}\n" for name, value in shown.items() if value), encoding="utf-8")
    assert load_config(toml, {}).model_dump() == config.model_dump()


@pytest.mark.parametrize(
    ("overrides", "facts"),
    [
        ({}, False),
        ({"rules": {"wire": {"flag": "never", "facts_shared_min": 0}}}, False),
        ({"judge": {"facts_shared_min": 0.8}}, True),
        ({"rules": {"wire": {"facts_shared_min": 0.8}, "blog": {}}}, True),
    ],
)
def test_facts_are_extracted_where_a_guard_needs_them(overrides: Mapping[str, Any], *, facts: bool) -> None:
    """One source is enough: its articles are compared with those of all others. By default no guard is set."""
    config = load_config(None, overrides)
    assert scheme_of(config).facts is facts
    assert dict(flatten(config))["judge.facts_shared_min"] == str(config.judge.facts_shared_min)


def test_sections_derived_from_code_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting at a time, as in sections that are declared in the configuration."""
    monkeypatch.setenv("DUPWATCH_SOURCE__FIELDS__BODY", "content.text")
    fields = load_config(None, {}).source.fields
    assert (fields.body, fields.id) == ("content.text", "id")


def test_a_version_is_kept_for_the_window_and_the_slack() -> None:
    """Tables, topics, sweeps and migrations all go by this."""
    assert load_config(None, {"judge": {"window_s": 100}, "store": {"slack_s": 20}}).lifetime_s == 120


def test_the_defaults_are_valid_and_frozen() -> None:
    """A run without any configuration judges by them."""
    config = load_config(None, {})
    assert dict(flatten(config)) == dict(flatten(Config()))
    with pytest.raises(ValueError, match="frozen"):
        config.workers = 3


def test_an_error_names_the_file_or_variable_that_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value from the command line needs no origin: the user has just typed it."""
    path = tmp_path / "feed.toml"
    path.write_text('[judge]\nsimilarity_min = "high"\nwindow = 1\n')
    monkeypatch.setenv("DUPWATCH_SOURCE__BATCH_RECORDS_MAX", "many")
    with pytest.raises(ConfigError) as caught:
        load_config(path, {"sink": {"emit": "some"}})
    found = str(caught.value)
    assert f"judge.similarity_min: must be a number (it is 'high', from {path})" in found
    assert f"unknown setting judge.window (from {path});" in found
    assert "from the environment variable DUPWATCH_SOURCE__BATCH_RECORDS_MAX)" in found
    assert "sink.emit: must be 'duplicates', 'all' or 'none' (it is 'some')" in found


def test_no_message_shows_a_pattern() -> None:
    """Settings that are checked by a pattern say in words what they must look like."""
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(Config.model_json_schema())))
    assert patterns
    for pattern in map(json.loads, patterns):
        assert "pattern" not in plain_pydantic_message(f"String should match pattern '{pattern}'"), pattern
