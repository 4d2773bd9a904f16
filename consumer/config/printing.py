"""Shows the configuration, without secrets."""

import json
from collections.abc import Iterator, Mapping

from consumer.config.config import SECRETS, SECRETS_IN, Config
from consumer.config.sections import RuleSection
from consumer.text.redaction import (
    HIDDEN,
    is_secret,
    without_credentials,
)


def flatten(config: Config) -> Iterator[tuple[str, str | None]]:
    """Every setting as (dotted name, TOML value), in the order of the sections; None for what is not set.

    What is secret, by its name or by credentials in it, has ``HIDDEN`` as its value. Where no source has a rule, what
    one can say is there under the name ``SOURCE``.
    """

    def walk(prefix: str, value: object) -> Iterator[tuple[str, str | None]]:
        if isinstance(value, Mapping) and value:
            for name, inner in value.items():
                key = name if name.replace("_", "").isalnum() and name.isascii() else _toml(name)
                full = f"{prefix}.{key}" if prefix else key
                if inner is not None and (
                    (prefix in SECRETS_IN and is_secret(name))
                    or full in SECRETS
                    or (isinstance(inner, str) and without_credentials(inner) != inner)
                ):
                    yield full, HIDDEN
                else:
                    yield from walk(full, inner)
        else:
            yield prefix, None if value is None or value == {} else _toml(value)

    unruled = {} if config.rules else {"rules": {"SOURCE": dict.fromkeys(RuleSection.model_fields)}}
    yield from walk("", config.model_dump() | unruled)


def _toml(value: object) -> str:
    """A value as TOML writes it: as JSON does, but for the one control character that JSON lets stand."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
