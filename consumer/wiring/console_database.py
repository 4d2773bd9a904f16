"""Opens the configured database of the console, and inspects it without changing it."""

from pathlib import Path
from typing import Final

from consumer.config.sections.console import ConsoleSection
from consumer.model.errors import ConfigError
from consumer.reviews.database import Database, TableVersions, open_database, parse_url, table_versions
from consumer.web.access import read_password

_SETTING: Final = "console.password_file"
_FILE: Final = "sqlite:///"


def opened_reviews(section: ConsoleSection, *, must_exist: bool = False) -> Database:
    """Open the database. A missing file is created, or refused if it ``must_exist``.

    Raises ``ConfigError`` and ``DatabaseUnavailable``.
    """
    if must_exist and _is_missing(section):
        raise ConfigError(
            f"console.database = {section.database}: the file does not exist. Name another, or create it with "
            "dupwatch people add"
        )
    return open_database(section.database, _password(section))


def check_database(section: ConsoleSection) -> None:
    """Raise ``ConfigError`` for an address or a password file that cannot be used, without opening the database."""
    parse_url(section.database, _password(section))


def existing_tables(section: ConsoleSection) -> TableVersions | None:
    """Return the versions of the database's tables; None if its file does not exist yet. Changes nothing.

    Raises ``ConfigError`` and ``DatabaseUnavailable``.
    """
    check_database(section)
    return None if _is_missing(section) else table_versions(section.database, _password(section))


def _is_missing(section: ConsoleSection) -> bool:
    return section.database.startswith(_FILE) and not Path(section.database[len(_FILE) :]).exists()


def _password(section: ConsoleSection) -> str | None:
    return None if section.password_file is None else read_password(section.password_file, _SETTING)
