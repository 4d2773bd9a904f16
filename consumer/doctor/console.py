"""Findings on the moderators' console: its database, the source of its flags, and its store.

The checks call functions that the console itself uses. So they need the packages of the console's extra, which are
imported only when the checks run.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from consumer.config.config import Config
from consumer.config.sections.console import ConsoleSection
from consumer.config.sections.feed import SourceSection
from consumer.config.sections.service import ServiceSection
from consumer.doctor.finding import DoctorCheck, Finding, ok, warning, wrong
from consumer.model.errors import ConfigError, SinkError
from consumer.text.install_advice import CONSOLE_PACKAGES, import_extra

_DATABASE = "database of the console"
_COMMAND = "dupwatch console"


def configures_console(config: Config) -> bool:
    """Return whether a console setting differs from its default.

    A setting with the default value does not count, because ``config show`` writes defaults into files too.
    """
    return config.console != ConsoleSection()


def configures_only_console(config: Config) -> bool:
    """Return whether the configuration is for a console, but neither for a run nor for a service."""
    return (
        configures_console(config) and config.service == ServiceSection() and config.source.url == SourceSection().url
    )


def console_checks(config: Config) -> Iterator[DoctorCheck]:
    """Yield the checks of the console, if any console setting differs from its default."""
    if configures_console(config):
        yield DoctorCheck(_DATABASE, lambda: check_tables(config.console))
        yield DoctorCheck("flags of the console", lambda: check_flags(config))
        yield DoctorCheck("store of the console", lambda: check_rights(config))


def check_tables(section: ConsoleSection) -> Iterator[Finding]:
    """Check that the database answers and, if it exists, has the tables of this version."""
    reviews = _console_module("consumer.reviews.database")
    try:
        tables = _console_module("consumer.wiring.console_database").existing_tables(section)
    except reviews.DatabaseUnavailable as error:
        yield wrong(
            SinkError,
            f"The database {section.database} does not answer: {error}.",
            "Start it, or correct console.database.",
        )
        return
    if tables is None or tables.stored is None:
        state = (
            "does not exist yet; the console creates it"
            if tables is None
            else "has no tables yet; the console creates them"
        )
        yield ok(f"The database {section.database} {state} at its first start.")
    elif tables.stored == tables.used:
        yield ok(f"The database {section.database} has the tables of this version, {tables.used}.")
    else:
        yield warning(
            f"The database {section.database} has tables of version {tables.stored}, and this dupwatch uses "
            f"{tables.used}.",
            "Back it up and stop consoles of the earlier version. Then start dupwatch console; it upgrades the tables.",
        )


def check_flags(config: Config) -> Iterator[Finding]:
    """Check that the console can read flags from the configured sink. Raises ``ConfigError`` if it never can."""
    feed = _console_module("consumer.wiring.console_feed")
    feed.check_sink(config)
    place = feed.flag_sink(config)
    if isinstance(place, Path):
        yield _file_finding(_console_module("consumer.console.intake.setup_checks").sink_fault(place), place)
        return
    read = feed.flag_subscription(config)
    if feed.topic_exists(config, read):
        yield ok(f"The console reads flags from the topic {read.topic}, as the group {read.group}.")
    else:
        yield wrong(
            SinkError,
            f"The topic {read.topic}, from which the console reads flags, does not exist.",
            f"Create it: dupwatch topics init --sink {config.sink.url}; or correct sink.url.",
        )


def _file_finding(fault: Any, path: Path) -> Finding:  # noqa: ANN401  # its type needs the extra
    if fault is None:
        return ok(f"The console reads flags from {path}.")
    if fault.kind == "missing":
        return warning(
            f"The file {path} does not exist yet: flags appear once a run writes it.",
            "Start the run, or correct sink.url.",
        )
    if fault.kind == "unreadable":
        return wrong(ConfigError, f"This user cannot read {path}.", "Let this user read it, or correct sink.url.")
    return wrong(ConfigError, f"{path} does not begin with a verdict.", "Set sink.url to the file that the run writes.")


def check_rights(config: Config) -> Iterator[Finding]:
    """Check that this user may write what releases change: the store and, if there is one, the console's own file.

    Raises ``ConfigError`` if the store ends with its run.
    """
    store = _console_module("consumer.wiring.console_store")
    store.check_store(config)
    own = None
    # The check of flags reports a fault of the sink.
    with suppress(ConfigError):
        own = _console_module("consumer.wiring.console_feed").console_file(config)
    path = store.unwritable_path(lambda: store.unwritable_part(config), own)
    if path is None:
        yield ok(f"The console reads articles from {config.store.url}, and may release them.")
    else:
        yield warning(
            f"This user may not write {path}, so releases wait.", "Give the user of the console write permission."
        )


def _console_module(module: str) -> Any:  # noqa: ANN401  # its type needs the extra
    return import_extra(module, CONSOLE_PACKAGES, "console", _COMMAND)
