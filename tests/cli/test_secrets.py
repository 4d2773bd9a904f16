"""The value of a secret setting is never printed, logged or served."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.config.config import Config
from consumer.config.printing import flatten
from consumer.text.redaction import is_secret
from tests.cli.command import Command, Outcome, wait_for
from tests.cli.test_service import brokers, send, serving
from tests.examples import drawn
from tests.unit.kafka.library import settings_of_library

__all__ = ["brokers"]

CANARY = "c4nary-Zq9x7"
URL = f"http://user:{CANARY}@127.0.0.1:1/x?access_token={CANARY}"
NOWHERE = "kafka://127.0.0.1:1/t"
TOPICS = ("--source", NOWHERE, "--sink", NOWHERE)
SETTINGS = [name for name, _ in flatten(Config()) if not name.startswith("rules.")]
CLIENT_SECRETS = [
    f'kafka.{section}={{"{name}"="{CANARY}"}}'
    for name in (setting.name for setting in settings_of_library())
    if is_secret(name)
    for section in ("client", "consumer", "producer")
]
OTHERS = [
    f'registry.client={{"proxy"="{URL}"}}',
    f'registry.client={{"basic.auth.user.info"="u:{CANARY}"}}',
    f'registry.client={{"bearer.auth.token"="{CANARY}"}}',
    f'registry={{url="{URL}"}}',
    f'http={{user="u",password="{CANARY}"}}',
    f'http={{password="{CANARY}"}}',
    # By mistake.
    f"kafka.client=sasl.password={CANARY}",
    f"kafka=sasl.password={CANARY}",
    f"registry.client={CANARY}",
    f'kafka.client={{"sasl.password"=["{CANARY}"]}}',
    f'kafka.client={{"sasl.passwort"="{CANARY}"}}',
    f'kafka.client={{"security.protocol"="{URL}"}}',
    f'kafka.client={{"linger.ms"="{URL}"}}',
    f"kafka.client.'sasl.password={CANARY}",
    f"kafka sasl.password={CANARY}",
]


MISTAKES = [
    ("run", f"registry.client.proxy={URL}"),
    ("run", URL),
    ("run", f"kafka.client.sasl.password={CANARY}"),
    ("run", "kafka.client.sasl.password=abc"),
    ("run", f"kafka.client.sasl.password:{CANARY}"),
    ("run", "--set", "kafka.client.sasl.password", CANARY),
    ("run", "--set", f"kafka.client.sasl.password:{CANARY}"),
    ("run", "--sett", f"kafka.client.sasl.password={CANARY}"),
    ("run", f"--set=kafka.client.sasl.password:{CANARY}"),
    ("run", f"--kafka.client.sasl.password={CANARY}"),
    ("run", "--workers", f"http.password={CANARY}"),
    ("run", "--config", f"http://user:{CANARY}@host/file"),
    (f"kafka.client.sasl.password={CANARY}",),
    (f"--http.password={CANARY}", "run"),
    ("store", f"kafka.client.sasl.password={CANARY}"),
    ("store", "stats", f"kafka.client.sasl.password={CANARY}"),
    ("store", "stats", "--json", f"https://user:{CANARY}@host/"),
    ("top", "--interval", f"http.password={CANARY}"),
    ("config", "show", f"http.password={CANARY}"),
    ("config", "check", f"http.password:{CANARY}"),
    ("dead-letters", "list", f"http.password={CANARY}"),
    ("dead-letters", "show", "1", f"kafka.client.sasl.password={CANARY}"),
    ("evaluate", "feed", "--pairs", "x", f"http.password={CANARY}"),
]


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_a_secret_in_a_wrong_argument_is_not_shown(dupwatch: Command, arguments: tuple[str, ...]) -> None:
    """Neither in Typer's usage errors nor in dupwatch's own."""
    ended = dupwatch(*arguments)
    assert ended.code == 2
    assert unseen(ended), ended
    assert "=abc" not in ended.err


def test_what_is_no_secret_is_quoted_in_a_usage_error(dupwatch: Command) -> None:
    """The superfluous argument is quoted, and a setting is named."""
    assert "(articles.jsonl)" in dupwatch("run", "articles.jsonl").err
    assert "kafka.client.linger.ms=5" in dupwatch("run", "kafka.client.linger.ms=5").err
    assert "kafka.client.sasl.password=*****" in dupwatch("run", f"kafka.client.sasl.password={CANARY}").err


def unseen(ended: Outcome) -> bool:
    """Return whether the secret is missing from all output."""
    return CANARY not in ended.out.decode() + ended.err


@pytest.mark.parametrize("setting", drawn([*(f"{name}={URL}" for name in SETTINGS), *CLIENT_SECRETS, *OTHERS], 3))
def test_a_secret_in_a_setting_is_not_shown(dupwatch: Command, setting: str) -> None:
    """Neither by config show nor in the message that rejects the setting."""
    for command in (("config", "show"), ("config", "check")):
        ended = dupwatch(*command, "--set", f"source.url={NOWHERE}", "--set", f"sink.url={NOWHERE}", "--set", setting)
        assert unseen(ended), ended


@pytest.mark.parametrize(
    "setting",
    [
        *OTHERS[:4],
        f"source.url=kafka://u:{CANARY}@127.0.0.1:1/t",
        f"store.url=hbase://u:{CANARY}@127.0.0.1:1/n",
        f"tracing.endpoint={URL}",
        f'kafka.client={{"security.protocol"="SASL_PLAINTEXT","sasl.mechanism"="PLAIN","sasl.password"="{CANARY}"}}',
        f'kafka.client={{"security.protocol"="SSL","ssl.key.pem"="{CANARY}"}}',
        f'kafka.client={{"security.protocol"="SSL","ssl.keystore.location"="/nowhere","ssl.keystore.password"="{CANARY}"}}',
    ],
)
def test_doctor_does_not_tell_a_secret(dupwatch: Command, setting: str) -> None:
    """Neither as text nor as JSON."""
    assert unseen(dupwatch("doctor", *TOPICS, "--json", "--set", setting))


@pytest.mark.parametrize("command", [("config", "check"), ("doctor", "--json"), ("run",)])
@pytest.mark.parametrize("section", ["client", "consumer", "producer"])
@pytest.mark.parametrize("name", ["sasl.pasword", "debug", "security.protocol", "sasl.password=x"])
def test_what_librdkafka_refuses_is_told_without_its_value(
    dupwatch: Command, command: tuple[str, ...], section: str, name: str
) -> None:
    """Nobody knows that it is a secret: the name is misspelt, or that of a setting beside it."""
    given = f'kafka.{section}={{"{name}"="{CANARY}"}}'
    ended = dupwatch(*command, "--set", f"source.url={NOWHERE}", "--set", f"sink.url={NOWHERE}", "--set", given)
    assert ended.code == 2
    assert f"[kafka.{section}] {name.partition('=')[0]}" in ended.out.decode() + ended.err
    assert unseen(ended), ended


def test_a_registry_that_cannot_be_reached_is_told_without_its_credentials(dupwatch: Command, tmp_path: Path) -> None:
    """Also through a proxy with credentials, or with those from a file: the client's own messages quote the URL."""
    (tmp_path / "user").write_text(f"reader:{CANARY}")
    settings = (
        "kafka.value_format=avro",
        "registry.url=http://127.0.0.1:1",
        f'registry.client={{"proxy"="{URL}"}}',
        f'registry.secret_files={{"basic.auth.user.info"="{tmp_path / "user"}"}}',
    )
    ended = dupwatch("doctor", *TOPICS, *(part for setting in settings for part in ("--set", setting)))
    assert "schema registry" in ended.out.decode()
    assert unseen(ended), ended


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_a_check_quotes_is_told_without_secrets(
    dupwatch: Command, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    """Whatever a server or a library reports."""

    def refuse(*_: object) -> Iterator[object]:
        raise OSError(f"{URL} refuses {CANARY}")

    monkeypatch.setattr("consumer.doctor.examination.check_descriptors", refuse)
    variables = {"DUPWATCH_HTTP__USER": "u", "DUPWATCH_HTTP__PASSWORD": CANARY}
    ended = dupwatch("doctor", "--source", "feed.jsonl", *form, **variables)
    assert "refuses *****" in ended.out.decode()
    assert unseen(ended), ended


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_defect_is_told_without_secrets(dupwatch: Command, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Whatever its traceback quotes."""

    def fail(*_: object) -> Iterator[object]:
        raise RuntimeError(f"cannot use {URL} with {CANARY}")

    monkeypatch.setattr("consumer.cli.operations.config.flatten", fail)
    variables = {"DUPWATCH_HTTP__USER": "u", "DUPWATCH_HTTP__PASSWORD": CANARY, "DUPWATCH_LOG__FORMAT": form}
    ended = dupwatch("config", "show", **variables)
    assert ended.code == 1
    assert "RuntimeError" in ended.err
    assert unseen(ended), ended


def test_a_secret_that_a_run_uses_is_in_none_of_its_outputs(brokers: str, tmp_path: Path) -> None:
    """Log, health pages, flags and metrics of a consumer whose registry, collector and pages have credentials."""
    settings = (
        "kafka.value_format=avro",
        "registry.url=http://127.0.0.1:1",
        f'registry.client={{"proxy"="{URL}","basic.auth.user.info"="reader:{CANARY}"}}',
        "tracing.enabled=true",
        f"tracing.endpoint={URL}",
        "log.level=debug",
        'kafka.client={"debug"="security,conf","sasl.password"="' + CANARY + '"}',
    )
    more = [part for setting in settings for part in ("--set", setting)]
    with serving(brokers, "-", tmp_path, *more, stdout=subprocess.DEVNULL) as service:
        send(brokers, tmp_path, ("a", b"\0\0\0\0\1x"))
        wait_for(lambda: "registry" in service.page("/readyz")[1] or service.process.poll() is not None)
        pages = {path: service.page(path)[1] for path in ("/readyz", "/healthz", "/flags.json", "/metrics", "/")}
        assert "does not answer as a schema registry" in json.loads(pages["/readyz"])["reasons"][0]
        assert service.stop() == 0, service.log.read_text()
    output = service.log.read_text() + "".join(pages.values())
    assert CANARY not in output
