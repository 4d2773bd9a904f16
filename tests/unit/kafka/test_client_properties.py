"""Which properties of librdkafka a user may set: ours to refuse and to bound, the library's to know."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, Producer

from consumer.kafka.client_properties import ALIASES, RULES, ChoiceLimit, PatternLimit, PropertyRule, RangeLimit
from consumer.kafka.client_settings import KafkaOptions, admin_settings, consumer_settings, producer_settings
from consumer.kafka.clients import refusal
from consumer.model.errors import ConfigError
from tests.unit.kafka.library import settings_of_library

Given = str | int
HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parents[2] / "docs" / "operate" / "client_settings.md"
REFUSED: Final = [
    name for name in (*RULES, *ALIASES) if (rule := RULES.get(ALIASES.get(name, name))) and rule.limits is None
]
BOUNDED: Final = [(name, rule.limits) for name, rule in RULES.items() if isinstance(rule.limits, RangeLimit)]
OF_LIBRARY: Final = [setting.name for setting in settings_of_library()]
SECRET: Final = "c4nary"


def test_every_property_of_the_library_was_reviewed() -> None:
    """A newer library may have one that breaks a promise: refuse or bound it, or add it to the list as harmless."""
    assert sorted(OF_LIBRARY) == (HERE / "reviewed_properties.txt").read_text().split()


def test_the_table_knows_the_other_names_of_the_library() -> None:
    """An alias that is missing here would be a way around a rule."""
    aliases = {setting.name: setting.alias_of for setting in settings_of_library() if setting.alias_of is not None}
    for alias, name in aliases.items():
        assert ALIASES.get(alias, alias) == ALIASES.get(name, name), alias
    assert ALIASES.keys() | {ALIASES[alias] for alias in ALIASES} <= set(OF_LIBRARY)


@pytest.mark.parametrize("section", ["client", "consumer", "producer", "secret_files"])
def test_what_is_refused_is_refused_everywhere(section: str, tmp_path: Path) -> None:
    """Under each of its names, in each section, and as the content of a file, whichever client is made."""
    (tmp_path / "value").write_text("1")
    value = str(tmp_path / "value") if section == "secret_files" else 1
    for name in REFUSED:
        given: dict[str, Any] = {section: {name: value}}
        options = KafkaOptions(**given)
        refused = rf"^\[kafka\.{section}\] {re.escape(name)} cannot be set: .* Remove it"
        with pytest.raises(ConfigError, match=refused):
            consumer_settings("h:1", options)
        with pytest.raises(ConfigError, match=refused):
            producer_settings("h:1", options, transactional=False)
        with pytest.raises(ConfigError, match=refused):
            admin_settings("h:1", options)


def test_bounds_hold() -> None:
    """Numbers and texts of numbers; the ends are inside. librdkafka reads "0x10" and "010" as other numbers."""
    for name, limits in BOUNDED:
        for value in (limits.low, limits.high, str(limits.low), str(limits.high)):
            admin_settings("h:1", KafkaOptions(client={name: value}))
        zero = f"0{limits.high}"
        for bad in (limits.low - 1, limits.high + 1, f"{limits.high + 1}", 0.5, True, "long", "", zero, "0x7fff", " 9"):
            with pytest.raises(ConfigError, match=rf"^\[kafka\.client\] {re.escape(name)} is "):
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
        ("sasl.kerberos.principal", "feed/host@REALM", "$(id)"),
        ("sasl.kerberos.service.name", "kafka", "a b"),
    ],
)
def test_words_that_break_a_promise_are_refused(name: str, good: Given, bad: Given) -> None:
    """The others are passed on as they were written."""
    assert producer_settings("h:1", KafkaOptions(client={name: good}), transactional=False)[name] == good
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        consumer_settings("h:1", KafkaOptions(client={name: bad}))


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in OF_LIBRARY if "_" in name and name not in {"log_level", "enabled_events"}),
        *("oauth_cb", "on_commit", "on_delivery", "enable_sasl_queue", "ut_handle_ProduceResponse"),
        *("acks\0", "acks ", "Acks", "", "sasl.password=c4nary", "\ud800"),
    ],
)
def test_a_name_of_another_form_is_refused(name: str) -> None:
    """Callbacks, and names that librdkafka would cut, of which no more is shown than looks like a name."""
    with pytest.raises(ConfigError, match="only lower-case letters, digits and dots") as refused:
        consumer_settings("h:1", KafkaOptions(client={name: "c4nary"}))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("name", ["test.mock.num.brokers", "test.mock.broker.rtt", "logger", "default.topic.config"])
def test_what_the_library_does_not_document_is_refused(name: str) -> None:
    """It accepts a cluster in memory in place of the brokers; its binding has names of its own."""
    assert name not in OF_LIBRARY
    assert name in REFUSED


def test_a_rule_cannot_be_avoided_by_a_prefix() -> None:
    """Since topic.acks is another name of acks to librdkafka; the few names that begin like this are still known."""
    for name in ("topic.acks", "topic.message.timeout.ms", "topic.partitioner", "topic.compression.codec"):
        with pytest.raises(ConfigError, match=r"remove topic\. from the name"):
            producer_settings("h:1", KafkaOptions(client={name: "1"}), transactional=False)
    assert admin_settings("h:1", KafkaOptions(client={"topic.metadata.refresh.sparse": "true"}))


def test_the_library_refuses_what_it_does_not_know() -> None:
    """Misspelt, or of Java: the error names section and property, and says what to do."""
    for section in ("client", "consumer", "producer"):
        given: dict[str, Any] = {section: {"securty.protocol": "ssl"}}
        message = rf"^\[kafka\.{section}\] securty\.protocol: librdkafka \S+ has no such property; correct the name"
        with pytest.raises(ConfigError, match=message):
            admin_settings("h:1", KafkaOptions(**given))


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("linger.ms", -5, "write one from 0 to 900000"),
        ("linger.ms", SECRET, "correct it"),
        ("debug", f"security,{SECRET}", "correct it"),
        ("security.protocol", SECRET, "correct it"),
        ("compression.codec", SECRET, "correct it"),
        ("enable.random.seed", SECRET, "correct it"),
        ("sasl.jaas.config", SECRET, "correct it"),
    ],
)
def test_the_library_refuses_values(name: str, value: Given, remedy: str) -> None:
    """The error has the name as it was written, and not the value, which librdkafka repeats."""
    with pytest.raises(ConfigError, match=rf"^\[kafka\.producer\] {name}: librdkafka does not accept .*{remedy}") as it:
        consumer_settings("h:1", KafkaOptions(producer={name: value}))
    assert SECRET not in str(it.value)
    assert (it.value.__cause__, it.value.__context__) == (None, None)


@pytest.mark.parametrize("name", ["sasl.passwort", "sasl.pasword", "ssl.key.pass", "security.protocol"])
def test_a_refused_value_is_not_repeated(name: str, tmp_path: Path) -> None:
    """However short, from the configuration or from a file: neither in the error nor in one that it was raised for."""
    (tmp_path / "secret").write_text("hunt2")
    for options in (
        KafkaOptions(client={name: "hunt2"}),
        KafkaOptions(secret_files={name: str(tmp_path / "secret")}),
    ):
        with pytest.raises(ConfigError, match=re.escape(name)) as refused:
            admin_settings("h:1", options)
        assert "hunt2" not in str(refused.value)
        assert refused.value.__context__ is None


def test_what_is_accepted_is_passed_on_with_its_type() -> None:
    """Also values that the binding compares with other properties: the client decides about those."""
    given: dict[str, str | int | float | bool] = {
        "client.id": "a",
        "fetch.min.bytes": 2,
        "enable.random.seed": False,
        "socket.max.fails": "3",
        "log_level": 5,
        "ssl.ca.location": "/nowhere/ca.pem",
        "sasl.password": "hunter2",
        "sasl.oauthbearer.metadata.authentication.type": "aws_iam",
    }
    expected = {**given, "bootstrap.servers": "h:1"}
    assert admin_settings("h:1", KafkaOptions(client=given)) == expected
    assert list(map(type, expected.values())) == [*map(type, given.values()), str]


def test_a_name_without_a_rule_is_one_that_the_library_has() -> None:
    """What is asked first is the property, and then the one that no library has: or nothing would be checked."""
    assert refusal("client.id", "a") is None
    for settings, wrong in (
        ({"no.such": "", "nor.this": ""}, "no.such"),
        ({"nor.this": "", "no.such": ""}, "nor.this"),
    ):
        with pytest.raises(KafkaException, match=wrong):
            Producer(settings)


def test_a_section_of_its_own_comes_before_the_shared_one(tmp_path: Path) -> None:
    """And a secret from a file before both."""
    (tmp_path / "secret").write_text("from a file\n")
    options = KafkaOptions(
        client={"linger.ms": 1, "batch.size": 3},
        producer={"linger.ms": 2, "sasl.password": "written"},
        secret_files={"sasl.password": str(tmp_path / "secret")},
    )
    written = producer_settings("h:1", options, transactional=False)
    assert (written["linger.ms"], written["batch.size"], written["sasl.password"]) == (2, 3, "from a file")
    assert consumer_settings("h:1", options)["linger.ms"] == 1


def test_another_name_goes_before_the_default_of_ours() -> None:
    """Given under an alias it takes the place of what dupwatch would set; given under both it is one too many."""
    written = producer_settings("h:1", KafkaOptions(client={"queue.buffering.max.ms": 7}), transactional=False)
    assert written["linger.ms"] == 7
    assert "queue.buffering.max.ms" not in written
    with pytest.raises(ConfigError, match="another name"):
        admin_settings("h:1", KafkaOptions(client={"linger.ms": 1, "queue.buffering.max.ms": 2}))


@pytest.mark.parametrize("refused", [True, False])
def test_the_page_is_the_table(*, refused: bool) -> None:
    """Each rule has a row, and there are no others; the failure shows the row to write."""
    title = "## Refused" if refused else "## Bounded"
    shown = [line for line in PAGE.read_text().split(title)[1].split("\n## ")[0].splitlines() if line.startswith("| `")]
    assert shown == list(_rows(refused=refused))


def _rows(*, refused: bool) -> Iterator[str]:
    grouped: dict[PropertyRule, list[str]] = {}
    for name, rule in RULES.items():
        if (rule.limits is None) == refused:
            also = [f"`{alias}`" for alias, other in ALIASES.items() if other == name]
            grouped.setdefault(rule, []).append(f"`{name}`" + (f" (also {', '.join(also)})" if also else ""))
    for rule, names in grouped.items():
        yield f"| {', '.join(names)} | {_described(rule)}{rule.reason} |"


def _described(rule: PropertyRule) -> str:
    match rule.limits:
        case RangeLimit(low, high):
            return f"{low:,} to {high:,} | "
        case ChoiceLimit(words):
            return f"{', '.join(f'`{word}`' for word in words)} | "
        case PatternLimit(_, described):
            return f"{described} | "
        case None:
            return ""
