"""Opens the console's database as the configuration says."""

from typing import Final

from consumer.config.sections.console import ConsoleSection
from consumer.pages.access import read_password
from consumer.reviews.database import Database, opened_database

_SETTING: Final = "console.password_file"


def opened_reviews(section: ConsoleSection) -> Database:
    """Open the database. Raises ``ConfigError`` and ``DatabaseUnavailable``."""
    password = None if section.password_file is None else read_password(section.password_file, _SETTING)
    return opened_database(section.database, password)
