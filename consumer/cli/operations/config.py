"""``dupwatch config``: print and check the configuration."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from consumer.cli.options import ConfigOption, SetOption, argument_or_option, command_config
from consumer.cli.results import results, write
from consumer.config.config import CONFIG_VARIABLE, Config
from consumer.config.descriptions import all_settings, description_of
from consumer.config.printing import flatten
from consumer.config.sections.feed import SinkSection
from consumer.config.sections.store import StoreSection
from consumer.doctor.console import configures_console
from consumer.doctor.service import has_no_run
from consumer.files.source import STREAM
from consumer.text.install_advice import CONSOLE_PACKAGES, import_extra
from consumer.text.redaction import HIDDEN
from consumer.wiring import feeds
from consumer.wiring.components import judge_settings, lexicon_of, record_decoder
from consumer.wiring.page_server import exposure_of
from consumer.wiring.stores import configured_secret

app = typer.Typer(no_args_is_help=True, help="Print or check the configuration.")


FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="TOML file with settings, as with --config.", show_default=False)
]


@app.command()
def show(
    file: FileArgument = None,
    comments: Annotated[
        bool, typer.Option("--comments", help="Print each setting's description from docs/use/settings.md above it.")
    ] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Print the effective configuration as TOML that --config can read; unset and secret settings become comments."""
    chosen = command_config(_config_file(file, config), overrides)
    descriptions = {setting.name: setting.description for setting in all_settings()} if comments else {}
    with results():
        for name, value in flatten(chosen):
            write(f"{_comment(name, descriptions)}{_line(name, value)}".encode())


@app.command()
def check(
    file: FileArgument = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere", help="Check a configuration for another machine: do not open the files that it names."
        ),
    ] = False,
) -> None:
    """Check the configuration without running anything; exit with 2 and a message if it is invalid."""
    chosen = command_config(_config_file(file, config), overrides)
    if elsewhere:
        chosen = _without_files(chosen)
    judge_settings(chosen, lexicon_of(chosen))
    configured_secret(chosen)
    is_lasting = feeds.source_side(chosen).is_lasting
    if is_lasting:
        feeds.check_pair(chosen)
        exposure_of(chosen, lambda _: None)
        if not elsewhere:
            record_decoder(chosen)
    feeds.check_settings(chosen, create=not elsewhere)
    if configures_console(chosen):
        _check_console(chosen)
    with results():
        if is_lasting or has_no_run(chosen):
            write(b"The configuration is valid.\n")
        else:
            # Such a run uses neither [http] nor [kafka].
            source = "standard input" if chosen.source.url == STREAM else "a file"
            write(f"The configuration is valid for a run over {source}.\n".encode())


def _config_file(file: Path | None, config: Path | None) -> Path | None:
    """Return the configuration file. An argument takes precedence over the file that the environment variable names."""
    if file is not None and config == Path(os.environ.get(CONFIG_VARIABLE, "")):
        config = None
    return argument_or_option(file, config, "the argument and --config")


def _check_console(config: Config) -> None:
    """Raise ``ConfigError`` for settings that the console refuses.

    A default sink or store is not checked: an option of ``dupwatch console`` may replace it.
    """
    wiring = {
        name: import_extra(f"consumer.wiring.console_{name}", CONSOLE_PACKAGES, "console", "dupwatch console")
        for name in ("database", "feed", "store")
    }
    wiring["database"].check_database(config.console)
    if config.sink.url != SinkSection().url:
        wiring["feed"].check_sink(config)
    if config.store.url != StoreSection().url:
        wiring["store"].check_store(config)


def _without_files(config: Config) -> Config:
    words = config.fingerprint.model_copy(update=dict.fromkeys(("dictionary", "stop_words", "idf", "secret_file")))
    # Placeholders for the secrets, so that the names of these settings are still checked.
    unread = dict.fromkeys(config.kafka.secret_files, "in a file")
    kafka = config.kafka.model_copy(update={"secret_files": {}, "client": {**config.kafka.client, **unread}})
    http = config.http.model_copy(update=dict.fromkeys(("password_file", "tls_certificate", "tls_key")))
    console = config.console.model_copy(update={"password_file": None})
    return config.model_copy(update={"fingerprint": words, "kafka": kafka, "http": http, "console": console})


def _comment(name: str, descriptions: Mapping[str, str]) -> str:
    return f"# {description_of(name, descriptions)}\n" if descriptions else ""


def _line(name: str, value: str | None) -> str:
    if value is None:
        return f"# {name} is not set\n"
    return f"# {name} is set but hidden\n" if value == HIDDEN else f"{name} = {value}\n"
