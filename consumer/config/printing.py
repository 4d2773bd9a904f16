"""Prints the configuration, without secrets."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Final

from consumer.config.config import Config
from consumer.config.sections.judge import RuleSection
from consumer.text.redaction import HIDDEN, is_secret, without_credentials

SECRETS: Final = frozenset({"http.password"})
"""Settings that are always secret."""
MAPS_WITH_SECRETS: Final = ("kafka.client", "kafka.consumer", "kafka.producer", "registry.client")
"""Maps of settings for client libraries. ``text.redaction.is_secret`` recognises the secret settings by name."""


def flatten(config: Config) -> Iterator[tuple[str, str | None]]:
    """Yield every setting as (dotted name, TOML value), in the order of the sections.

    Unset settings and empty maps have the value None. ``HIDDEN`` replaces the values of secret settings, and values
    that contain credentials. If no source has a rule, the settings of a rule appear under the name ``SOURCE``.
    """

    def walk(prefix: str, value: object) -> Iterator[tuple[str, str | None]]:
        if isinstance(value, Mapping) and value:
            for name, inner in value.items():
                key = name if name.replace("_", "").isalnum() and name.isascii() else _toml(name)
                full = f"{prefix}.{key}" if prefix else key
                if inner is not None and (
                    (prefix in MAPS_WITH_SECRETS and is_secret(name))
                    or full in SECRETS
                    or (isinstance(inner, str) and without_credentials(inner) != inner)
                ):
                    yield full, HIDDEN
                else:
                    yield from walk(full, inner)
        else:
            yield prefix, None if value is None or value == {} else _toml(value)

    unruled = {} if config.rules else {"rules": {"SOURCE": dict.fromkeys(field.name for field in fields(RuleSection))}}
    yield from walk("", config.model_dump() | unruled)


def holds_secrets(name: str) -> bool:
    """Return whether the value with this name can be secret.

    Names of sections count too, because a user may set a whole section to one text.
    """
    return any(secret == name or secret.startswith(f"{name}.") for secret in (*MAPS_WITH_SECRETS, *SECRETS))


def _toml(value: object) -> str:
    """Return a value as TOML: as JSON, but with DEL escaped, which TOML requires and JSON does not."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
