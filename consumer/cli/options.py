"""Options that several commands have, and how they become a configuration."""

import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from consumer.config import CONFIG_VARIABLE, Config, load_config
from consumer.errors import ConfigError
from consumer.redaction import without_arguments
from consumer.telemetry import logs
from storage.records import id_hash

_MS_PER_S: Final = 1000

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with settings; see: dupwatch config show.",
        metavar="FILE",
        envvar=CONFIG_VARIABLE,
        show_envvar=True,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, above file and environment: judge.max_distance=2.", metavar="NAME=VALUE"),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="memory:, lmdb:PATH (a directory) or hbase://HOST:PORT[,HOST:PORT]/NAMESPACE (Thrift gateways).",
        metavar="STORE",
    ),
]
SchemeOption = Annotated[
    str | None, typer.Option("--scheme", help="Name of a scheme; docs/schemes.md lists them.", metavar="NAME")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]


def configured(config: Path | None, settings: Sequence[str] | None, **flags: str | int | None) -> Config:
    """The configuration from file, environment, ``--set`` and flags, in rising order.

    A flag's keyword is the setting's name with ``__`` for each dot; None where the flag was not given. From here on the
    log is as configured.
    """
    overrides: dict[str, Any] = {}
    for setting in settings or ():
        _merge(overrides, _parsed(setting))
    for name, value in flags.items():
        if value is not None:
            _put(overrides, name.split("__"), value)
    chosen = load_config(config, overrides)
    logs.set_up(chosen.log.format, chosen.log.level)
    return chosen


def time_ms(option: str, text: str | None) -> int | None:
    """The time that an option gives, in milliseconds since 1970, None where none is; ConfigError for no time."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text}: write it as 2026-11-21T00:00:00Z") from error
    if found.tzinfo is None:
        raise ConfigError(f"{option} {text}: say in which time zone, as in {text}Z")
    return int(found.astimezone(UTC).timestamp() * _MS_PER_S)


def id_hash_of(article_id: str) -> bytes:
    """What stands for an id that was named on the command line; ConfigError where it is not UTF-8."""
    try:
        return id_hash(article_id)
    except UnicodeEncodeError as error:
        raise ConfigError(f"{article_id!r} is no id: it is not UTF-8") from error


def _parsed(setting: str) -> dict[str, Any]:
    name, equals, value = setting.partition("=")
    if not equals:
        shown = without_arguments(name, [name])
        raise ConfigError(f"--set {shown}: write it as NAME=VALUE, for example judge.max_distance=2")
    for text in (f"{name} = {value}", f"{name} = {_quoted(value)}"):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(f"--set {name}=…: {name!r} is no name of a setting")


def _quoted(value: str) -> str:
    """A bare word is a string: --set source.body_format=html."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def _put(into: dict[str, Any], path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        into = into.setdefault(name, {})
        if not isinstance(into, dict):
            raise ConfigError(f"--set {name}: that is a section; name a setting in it, as {name}.{path[-1]}")
    into[path[-1]] = value
