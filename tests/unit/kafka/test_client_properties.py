"""The table of librdkafka's settings: complete, in force for both clients, and the page that is made from it."""

from pathlib import Path
from typing import Any

import pytest

from consumer.kafka.client_properties import ALIASES, PROPERTIES, Between, Refused
from consumer.kafka.client_settings import KafkaOptions, admin_settings, consumer_settings, producer_settings
from consumer.kafka.client_settings_page import page
from consumer.model.errors import ConfigError
from tests.unit.kafka.library import settings_of_library

Given = str | int
ROOT = Path(__file__).parents[3]
REFUSED = [name for name in (*PROPERTIES, *ALIASES) if isinstance(PROPERTIES[ALIASES.get(name, name)].rule, Refused)]
BOUNDED = [(setting.name, setting.rule) for setting in PROPERTIES.values() if isinstance(setting.rule, Between)]


def test_the_table_has_what_the_library_has() -> None:
    """Each setting once, for the clients that have it, under one name: what a new library brings fails here."""
    documented = settings_of_library()
    assert {setting.name for setting in documented} == PROPERTIES.keys() | ALIASES.keys()
    assert not PROPERTIES.keys() & ALIASES.keys()
    for setting in documented:
        assert PROPERTIES[ALIASES.get(setting.name, setting.name)].side == setting.side, setting
        if setting.alias_of is not None:
            assert ALIASES.get(setting.name, setting.name) == ALIASES.get(setting.alias_of, setting.alias_of)


@pytest.mark.parametrize("section", ["client", "consumer", "producer", "secret_files"])
def test_what_is_refused_is_refused_everywhere(section: str, tmp_path: Path) -> None:
    """Under each of its names, in each section, and as the content of a file, whichever client is made."""
    (tmp_path / "value").write_text("1")
    value = str(tmp_path / "value") if section == "secret_files" else 1
    for name in REFUSED:
        given: dict[str, Any] = {section: {name: value}}
        options = KafkaOptions(**given)
        with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
            consumer_settings("h:1", options)
        with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
            producer_settings("h:1", options, transactional=False)


def test_bounds_hold() -> None:
    """Numbers and texts of numbers; the ends are inside."""
    for name, rule in BOUNDED:
        for value in (rule.low, rule.high, str(rule.low), str(rule.high)):
            admin_settings("h:1", KafkaOptions(client={name: value}))
        for bad in (rule.low - 1, rule.high + 1, f"{rule.high + 1}", 0.5, True, "long", ""):
            with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
                admin_settings("h:1", KafkaOptions(client={name: bad}))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("partitioner", "murmur2_random", "random"),
        ("metadata.recovery.strategy", "REBOOTSTRAP", "none"),
        ("allow.auto.create.topics", False, True),
        ("enable.ssl.certificate.verification", True, False),
        ("enable.ssl.certificate.verification", "true", "f"),
        ("sasl.kerberos.keytab", "/etc/feed.keytab", 'x"; touch /tmp/y; "'),
    ],
)
def test_words_that_break_a_promise_are_refused(name: str, good: Given, bad: Given) -> None:
    """The others are passed on as they were written."""
    assert producer_settings("h:1", KafkaOptions(client={name: good}), transactional=False)[name] == good
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        consumer_settings("h:1", KafkaOptions(client={name: bad}))


@pytest.mark.parametrize("name", ["securty.protocol", "topic.message.timeout.ms", "default.topic.config", "on_commit"])
def test_an_unknown_name_is_refused(name: str) -> None:
    """Misspelt, of a newer library, or of confluent-kafka's own that the library does not list."""
    with pytest.raises(ConfigError, match="unknown setting"):
        consumer_settings("h:1", KafkaOptions(client={name: "x"}))


def test_each_client_gets_what_it_has() -> None:
    """What stands in [kafka.client] goes where it means something; in a section of its own it has to belong there."""
    options = KafkaOptions(client={"fetch.min.bytes": 2, "batch.size": 3, "client.id": "a", "security.protocol": "ssl"})
    both: dict[str, Any] = {"client.id": "a", "security.protocol": "ssl"}
    reading, writing = consumer_settings("h:1", options), producer_settings("h:1", options, transactional=False)
    assert reading.items() >= (both | {"fetch.min.bytes": 2}).items()
    assert writing.items() >= (both | {"batch.size": 3}).items()
    assert "batch.size" not in reading
    assert "fetch.min.bytes" not in writing
    assert admin_settings("h:1", options) == both | {"bootstrap.servers": "h:1"}
    with pytest.raises(ConfigError, match=r"move it to \[kafka.consumer\]"):
        producer_settings("h:1", KafkaOptions(producer={"fetch.min.bytes": 2}), transactional=False)


def test_another_name_goes_before_the_default_of_ours() -> None:
    """Given under an alias it takes the place of what dupwatch would set; given under both it is one too many."""
    written = producer_settings("h:1", KafkaOptions(client={"queue.buffering.max.ms": 7}), transactional=False)
    assert written["linger.ms"] == 7
    assert "queue.buffering.max.ms" not in written
    with pytest.raises(ConfigError, match="another name"):
        admin_settings("h:1", KafkaOptions(client={"linger.ms": 1, "queue.buffering.max.ms": 2}))


def test_the_page_is_made_from_the_table() -> None:
    """It is what ``python -m consumer.kafka.client_settings_page`` writes today."""
    assert (ROOT / "docs" / "client_settings.md").read_text() == page()
