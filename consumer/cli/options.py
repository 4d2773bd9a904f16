"""Options that several commands share, and the configuration made from them."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from consumer.config.config import CONFIG_VARIABLE, Config
from consumer.config.loading import load_config
from consumer.config.values import parse_value
from consumer.model.errors import ConfigError
from consumer.telemetry import logs
from consumer.text.redaction import without_arguments
from storage.hbase.kind import HBASE
from storage.kinds import lasting_examples, url_forms

_Value = TypeVar("_Value")

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with settings; dupwatch config show lists them.",
        metavar="FILE",
        envvar=CONFIG_VARIABLE,
        show_envvar=True,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Override one setting, for example judge.similarity_min=0.8. Write maps as TOML or JSON. May be repeated.",
        metavar="NAME=VALUE",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        help=f"Store: {url_forms()}.",
        metavar="STORE",
    ),
]
LastingStoreOption = Annotated[
    str | None, typer.Option("--store", help=f"Store: {lasting_examples()}.", metavar="STORE")
]
"""For commands that read or fill a store that outlives a run."""
ClusterStoreOption = Annotated[str | None, typer.Option("--store", help=f"Store: {HBASE.example}.", metavar="STORE")]
"""For commands that work only on HBase stores."""
SchemeOption = Annotated[
    str | None, typer.Option("--scheme", help="Fingerprint scheme; docs/use/schemes.md lists them.", metavar="NAME")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Threads that compute fingerprints; with the Python engine, processes. With 0, the default, the judging "
        "thread computes them.",
    ),
]
VersionOption = Annotated[
    str | None,
    typer.Option(help="Version to show, as in events; default: the latest.", metavar="HEX"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]


def command_config(config: Path | None, settings: Sequence[str] | None, **flags: str | int | None) -> Config:
    """Set up the log, and return the configuration from file, environment, ``--set`` and options; later sources win.

    ``flags`` has the values of the command's own options, None if an option is absent. The keyword of an option is the
    name of its setting with ``__`` for each dot. Raises ``ConfigError``.
    """
    overrides: dict[str, Any] = {}
    for setting in settings or ():
        _merge(overrides, _parse_setting(setting))
    for name, value in flags.items():
        if value is not None:
            _put(overrides, name.split("__"), value)
    chosen = load_config(config, overrides)
    logs.set_up(chosen.log.format, chosen.log.level)
    return chosen


def argument_or_option(argument: _Value | None, option: _Value | None, names: str) -> _Value | None:
    """Return the value of an argument, or of the option with the same meaning; None if both are absent.

    ``names`` names both in messages. Raises ``ConfigError`` if both are present, or if the argument looks like a
    setting and no such file exists.
    """
    if argument is not None and option is not None:
        raise ConfigError(f"{names} cannot be used together; use one of them")
    if argument is None:
        return option
    _check_not_setting(str(argument))
    return argument


def _check_not_setting(argument: str) -> None:
    """Raise ``ConfigError`` if the argument is a setting instead of a file: the user forgot --set.

    The message hides the value, which may be a secret.
    """
    is_setting = argument.partition(".")[0] in Config.model_fields and not {"=", ":"}.isdisjoint(argument)
    if is_setting and not Path(argument).exists():
        shown = without_arguments(argument, [argument])
        raise ConfigError(f"{shown} is not a file; write --set before a setting")


def _parse_setting(setting: str) -> dict[str, Any]:
    name, equals, text = setting.partition("=")
    if not equals:
        shown = without_arguments(name, [name])
        raise ConfigError(f"--set {shown}: write it as NAME=VALUE, for example judge.similarity_min=0.8")
    try:
        parsed = tomllib.loads(f"{name} = 0")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"--set {name}=…: {name!r} is not a valid name; dupwatch config show lists all settings"
        ) from error
    try:
        value = parse_value(text)
    except ValueError:
        # A bare word is a string: --set source.body_format=html.
        value = text
    return _with_value(parsed, value)


def _with_value(parsed: dict[str, Any], value: object) -> dict[str, Any]:
    return {name: _with_value(inner, value) if isinstance(inner, dict) else value for name, inner in parsed.items()}


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
            raise ConfigError(f"--set {name}: {name} is a section; set one of its settings, such as {name}.{path[-1]}")
    into[path[-1]] = value
