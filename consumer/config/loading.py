"""Reads the configuration from a file, the environment and the command line, and explains its faults."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsError,
    TomlConfigSettingsSource,
)

from consumer.config.config import CONFIG_VARIABLE, ENV_NESTING, ENV_PREFIX, Config
from consumer.config.printing import MAPS_WITH_SECRETS, SECRETS, flatten, holds_secrets
from consumer.config.values import parse_value
from consumer.model.errors import ConfigError
from consumer.text.redaction import is_secret, redacted, remember, remember_credentials, remember_settings

_UNKNOWN: Final = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_NOT_A_SECTION: Final = frozenset({"model_type", "dataclass_type"})
"""pydantic's error types for values that are not sections, in models and in dataclasses."""
_SUGGESTION_SIMILARITY_MIN: Final = 0.8
"""High enough to suggest no setting that has only its section in common."""
_PLAIN_WORDS: Final = {
    "Input should be": "must be",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid tuple": "a list",
    "Tuple should": "must",
    "a valid integer, got a number with a fractional part": "a whole number",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    r"String should match pattern '^.+:\d{1,5}$'": "write it as HOST:PORT",
    r"String should match pattern '^$|^.+:\d{1,5}$'": "write it as HOST:PORT, or leave it empty",
    "String should match pattern '^[A-Za-z0-9-]+$'": "must have only letters, digits and hyphens",
    "String should match pattern '^[^:]+$'": "must have at least 1 character, and no colon",
    "String should match pattern '^https?://.+'": "must begin with http:// or https://",
    "String should": "must",
}
"""Phrases in pydantic's messages, and our replacements."""


def load_config(path: Path | None, overrides: Mapping[str, Any]) -> Config:
    """Return the configuration from the file (None: no file), the environment and the overrides; later sources win.

    Also registers the secret values that the log and messages must hide. Raises ``ConfigError`` if the file cannot be
    read, a variable cannot be used, or a setting is invalid. For invalid settings, the error names all faults within
    sections or, if there are none, the first contradiction between sections.
    """
    if path is not None:
        _check_toml(path)
    _check_environment()

    class Layered(Config):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del env_settings, dotenv_settings, file_secret_settings
            return (
                init_settings,
                EnvironmentSource(settings_cls),
                TomlConfigSettingsSource(settings_cls, toml_file=path),
            )

    try:
        config = Layered(**overrides)
    except ValidationError as error:
        raise ConfigError("; ".join(_sentences(error, _Origins(path, overrides)))) from error
    except SettingsError as error:
        raise ConfigError(
            f"{_unparsed_variables(error)} cannot be parsed: write a whole section as TOML or JSON, or one setting as "
            f"{ENV_PREFIX}SECTION{ENV_NESTING}NAME"
        ) from error
    _remember_secrets(config)
    return config


class EnvironmentSource(EnvSettingsSource):
    """The settings in environment variables; maps and lists have the same syntax as in ``--set``."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:  # noqa: ANN401, ARG002  # overrides
        """Parse the value of a map or a list."""
        return parse_value(value)


def _unparsed_variables(error: SettingsError) -> str:
    """Return a phrase with the environment variables of the section that could not be parsed."""
    field = re.search(r'field "(\w+)"', str(error))
    section = f"{ENV_PREFIX}{field[1] if field else ''}".upper()
    names = [name for name in os.environ if name.upper() == section or name.upper().startswith(section + ENV_NESTING)]
    return f"the environment variable {' or '.join(sorted(names)) or section}"


def _remember_secrets(config: Config) -> None:
    settings = config.model_dump()
    for place in MAPS_WITH_SECRETS:
        section, name = place.split(".")
        remember_settings(settings[section][name])
    for place in SECRETS:
        section, name = place.split(".")
        if settings[section][name] is not None:
            remember(settings[section][name])
    for text in _texts(settings):
        remember_credentials(text)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _check_toml(path: Path) -> None:
    try:
        with path.open("rb") as file:
            tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"the configuration file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration file {path} is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"the configuration file {path} is not valid TOML: it is nested too deep") from error


def _check_environment() -> None:
    """Raise ``ConfigError`` for a variable that names no section, and for one that sets rules or the rank of a source.

    The settings library would ignore a variable without a section.
    """
    for name in os.environ:
        if name.upper().startswith(ENV_PREFIX) and name != CONFIG_VARIABLE:
            section, *names = name[len(ENV_PREFIX) :].lower().split(ENV_NESTING)
            # Source names would become lower case, and rules for unknown sources are not reported.
            if section == "rules":
                raise ConfigError(
                    f"{name}: set rules in the configuration file; variables lose the capital letters in source names"
                )
            if section == "console" and names[:1] == ["authority"] and names[1:]:
                raise ConfigError(
                    f"{name}: variables lose the capital letters in source names; set ranks in the configuration file, "
                    f"or all of them as a map in {ENV_PREFIX}CONSOLE{ENV_NESTING}AUTHORITY"
                )
            if section not in Config.model_fields:
                known = ", ".join(sorted(Config.model_fields))
                raise ConfigError(
                    f"the environment variable {name} does not name a section of the configuration; the sections are "
                    f"{known}"
                )


@dataclass(frozen=True)
class _Origins:
    """The file and the overrides from which settings come, to name the origin of a setting in messages.

    The command line overrides the environment, and the environment overrides the file.
    """

    path: Path | None
    overrides: Mapping[str, Any]

    def of(self, loc: Sequence[str | int]) -> str:
        """Return "from" and the file or variable with this setting, or "" for the command line and defaults."""
        if _has(self.overrides, loc):
            return ""
        variables = {name.upper(): name for name in os.environ}
        for depth in range(len(loc), 0, -1):
            variable = ENV_PREFIX + ENV_NESTING.join(str(part) for part in loc[:depth]).upper()
            if variable in variables:
                return f"from the environment variable {variables[variable]}"
        if self.path is None or not _has(tomllib.loads(self.path.read_text(encoding="utf-8")), loc):
            return ""
        return f"from {self.path}"


def _has(settings: object, loc: Sequence[str | int]) -> bool:
    for part in loc:
        if not isinstance(settings, Mapping) or part not in settings:
            return False
        settings = settings[part]
    return True


def _sentences(error: ValidationError, origins: _Origins) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        name = ".".join(str(part) for part in fault["loc"])
        message = plain_pydantic_message(fault["msg"].partition(", unable to")[0])
        origin = origins.of(fault["loc"])
        if fault["type"] in _UNKNOWN:
            known = [setting for setting, _ in flatten(Config.model_construct())]
            similar = get_close_matches(name, known, 1, _SUGGESTION_SIMILARITY_MIN)
            suggestion = "".join(f" did you mean {setting}?" for setting in similar)
            shown_origin = f" ({origin})" if origin else ""
            yield f"unknown setting {name}{shown_origin};{suggestion} dupwatch config show lists all settings"
        elif name:
            if fault["type"] in _NOT_A_SECTION:
                message = f"this is a section; set one of its settings, {name}.NAME"
            hidden = isinstance(fault["input"], Mapping) or is_secret(name) or holds_secrets(name)
            facts = ([] if hidden else [f"it is {redacted(repr(fault['input']))}"]) + ([origin] if origin else [])
            yield f"{name}: {message}" + (f" ({', '.join(facts)})" if facts else "")
        else:
            yield message


def plain_pydantic_message(message: str) -> str:
    """Return a message of pydantic in plain words."""
    message = message.replace("Value error, ", "")
    for theirs, ours in _PLAIN_WORDS.items():
        message = message.replace(theirs, ours)
    return message
