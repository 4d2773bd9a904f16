"""The settings of pages and log: contradictions are refused, and no password is shown."""

from pathlib import Path
from typing import Any

import pytest

from consumer.config.loading import load_config
from consumer.config.printing import flatten
from consumer.model.errors import ConfigError
from consumer.text.redaction import HIDDEN


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"user": "ops"}, "user needs password"),
        ({"password": "x"}, "user needs password"),
        ({"user": "ops", "password": "x", "password_file": "y"}, "both set"),
        ({"user": "o:s", "password": "x"}, "no colon"),
        ({"tls_key": "x"}, "tls_certificate"),
        ({"flags": -1}, "at least 0"),
        ({"flags": 501}, "at most 500"),
    ],
)
def test_contradictions_are_refused(settings: dict[str, Any], complaint: str) -> None:
    """With a sentence that says why, and without the password."""
    with pytest.raises(ConfigError, match=complaint) as error:
        load_config(None, {"http": settings})
    assert "'x'" not in str(error.value)


def test_the_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it was set; the name of its file is shown."""
    monkeypatch.setenv("DUPWATCH_HTTP__PASSWORD", "s3cret")
    shown = dict(flatten(load_config(None, {"http": {"user": "ops"}})))
    assert shown["http.password"] == HIDDEN
    assert "s3cret" not in str(shown)
    monkeypatch.delenv("DUPWATCH_HTTP__PASSWORD")
    shown = dict(flatten(load_config(None, {"http": {"user": "ops", "password_file": "/run/p"}})))
    assert shown["http.password_file"] == '"/run/p"'
    assert shown["http.password"] is None


@pytest.mark.parametrize(("name", "value"), [("format", "yaml"), ("level", "loud")])
def test_unknown_log_settings_are_refused(name: str, value: str, tmp_path: Path) -> None:
    """An unknown format or level is an error like any other."""
    path = tmp_path / "dupwatch.toml"
    path.write_text(f'[log]\n{name} = "{value}"\n')
    with pytest.raises(ConfigError, match=f"log.{name}"):
        load_config(path, {})


@pytest.mark.parametrize(
    ("url", "used"),
    [
        ("https://console.example", "https://console.example"),
        ("https://console.example/", "https://console.example"),
        ("http://[::1]:8760", "http://[::1]:8760"),
    ],
)
def test_the_address_of_a_console(url: str, used: str) -> None:
    """The address of a site; a slash at its end makes no difference."""
    assert load_config(None, {"http": {"console_url": url}}).http.console_url == used


@pytest.mark.parametrize(
    "url",
    ["console.example", "ftp://console.example", "https://ann:secret@console.example", "https://console.example/flags",
     "https://console.example?x", "https://console.example:99999", "https://[x", "javascript:alert(1)", "https://a\nb"],
)  # fmt: skip
def test_other_addresses_are_refused(url: str) -> None:
    """The message says how to write it, and shows no password."""
    with pytest.raises(ConfigError, match=r"http\.console_url: (write it as https://HOST|its port)") as refused:
        load_config(None, {"http": {"console_url": url}})
    assert "secret" not in str(refused.value)
