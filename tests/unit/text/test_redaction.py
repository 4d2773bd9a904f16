"""What is a secret, by name, form or memory, and that nothing else is touched."""

import logging

import pytest

from consumer.model.hooks import Hooks, Outage
from consumer.telemetry.health import Health
from consumer.telemetry.logs import JsonFormatter, TextFormatter
from consumer.text.redaction import (
    HIDDEN,
    is_secret,
    redacted,
    remember,
    remember_settings,
    without_arguments,
    without_credentials,
)
from tests.unit.kafka.library import settings_of_library

SECRET = "c4nary/väl=ue+'x"


def test_names_of_secrets() -> None:
    """Every setting of librdkafka and of the registry's client that holds one; none that people have to see."""
    hidden = {setting.name for setting in settings_of_library() if is_secret(setting.name)}
    assert {
        "sasl.password",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
    } <= hidden
    assert not hidden & {"sasl.username", "sasl.mechanism", "ssl.ca.location", "client.id", "linger.ms", "debug"}
    assert all(map(is_secret, ("basic.auth.user.info", "bearer.auth.token", "bearer.auth.client.secret", "password")))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:pw@host:1/x", "http://*****@host:1/x"),
        ("http://user:p@w@host", "http://*****@host"),
        ("http://user:p/w?#@host/", "http://*****@host/"),
        ("at https://token@host, again", "at https://*****@host, again"),
        ("kafka://a:1,u:p@b:2/t", "kafka://*****@b:2/t"),
        ("http://h/p?api_key=abc&x=1", "http://h/p?api_key=*****&x=1"),
        ("http://h/?X-Amz-Signature=abc", "http://h/?X-Amz-Signature=*****"),
        ("{'Authorization': 'Basic dTpw'}", "{'Authorization': 'Basic *****'}"),
        ("authorization=Bearer abc.def", "authorization=Bearer *****"),
        (f"no such file: dupwatch_{'0a' * 32}", "no such file: *****"),
        (f"'dupwatch_{'0a' * 9}… was cut", "'*****… was cut"),
    ],
)
def test_what_has_the_form_of_a_secret(text: str, shown: str) -> None:
    """Wherever it stands in a text."""
    assert without_credentials(text) == redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kafka://h:1,h:2/topic: Topic authorization failed",
        "http://host:9464/flags/ab",
        "https://example.com/a?page=2&id=x",
        "write to a@example.com",
        "source.url=feed.jsonl: token",
        "dupwatch_articles_total, dupwatch_0052",
    ],
)
def test_what_stays(text: str) -> None:
    """Places, addresses and words that only look alike."""
    assert redacted(text) == text


@pytest.mark.parametrize("form", [SECRET, repr(SECRET), "c4nary%2Fv%C3%A4l%3Due%2B%27x", r"c4nary/v\u00e4l=ue+'x"])
def test_what_was_read_as_a_secret(form: str) -> None:
    """It is known in the ways in which messages write it; short ones are parts of words and are not looked for."""
    assert SECRET in redacted(f"before {SECRET} after")
    remember(SECRET)
    remember("feed")
    assert redacted(f"before {form} after feed").replace('"', "") == f"before {HIDDEN} after feed"


def test_parts_of_secrets() -> None:
    """A password behind its user, the pair in a header, the lines of a key, what a list of options holds."""
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END PRIVATE KEY-----"
    remember_settings(
        {
            "basic.auth.user.info": "reader:hunter2222",
            "ssl.key.pem": key,
            "sasl.oauthbearer.config": "principal=feeding scope=topsecretscope",
            "proxy": "http://me:proxypass@h:1",
            "client.id": "not-a-secret",
        }
    )
    for text in ("hunter2222", "cmVhZGVyOmh1bnRlcjIyMjI=", "MIIEvQIBADANBgkqhkiG9w0", "topsecretscope", "proxypass"):
        assert redacted(f"<{text}>") == f"<{HIDDEN}>"
    assert redacted("not-a-secret") == "not-a-secret"


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_logs_have_no_secrets(formatter: logging.Formatter) -> None:
    """Not in messages, librdkafka's among them, nor in fields, errors and stacks."""
    remember("hunter2222")
    error = OSError("http://u:p4ssword@h refused hunter2222")
    line = "SASL [rdkafka#producer-1] [thrd:http://u:p4ssword@h]: hunter2222 was refused"
    record = logging.LogRecord("dupwatch.kafka", logging.ERROR, "", 0, "%s", (line,), (OSError, error, None))
    record.proxy, record.several = "http://u:p4ssword@h", ["hunter2222"]
    formatted = formatter.format(record)
    assert "was refused" in formatted
    assert "p4ssword" not in formatted
    assert "hunter2222" not in formatted


def test_why_a_run_is_not_ready_has_no_secrets() -> None:
    """Whatever the store, the brokers or the registry had to say."""
    health = Health()
    remember("hunter2222")
    Hooks(health).report(Outage("source", "registry", "the registry at http://u:p4ssword@h refuses hunter2222"))
    assert health.unready_reasons()[0] == "source: the registry at http://*****@h refuses *****"


@pytest.mark.parametrize(
    ("arguments", "text", "shown"),
    [
        (("run", "a.password=x y"), "extra (a.password=x y)", "extra (a.password=*****)"),
        (("run", "--set", "a.token", "abc"), "extra (abc)", "extra (*****)"),
        (("run", "--password-file", "/run/file"), "no (/run/file)", "no (/run/file)"),
        (("show", "name=1"), "extra (name=1)", "extra (name=1)"),
        (("run", "http:/u:secret@h"), "no file http:/u:secret@h", "no file http:/*****@h"),
        (("run", "lmdb:/data/a@b"), "no store lmdb:/data/a@b", "no store lmdb:/data/a@b"),
    ],
)
def test_quoted_arguments(arguments: tuple[str, ...], text: str, shown: str) -> None:
    """A value by the name before it, alone or joined to it; not the file that an option names."""
    assert without_arguments(text, arguments) == shown
