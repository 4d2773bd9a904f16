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
        ({"user": "ops"}, "user goes with password"),
        ({"password": "x"}, "user goes with password"),
        ({"user": "ops", "password": "x", "password_file": "y"}, "both set"),
        ({"user": "o:s", "password": "x"}, "pattern"),
        ({"tls_key": "x"}, "tls_certificate"),
        ({"flags": -1}, "greater than or equal to 0"),
        ({"flags": 501}, "less than or equal to 500"),
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
