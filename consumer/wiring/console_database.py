"""Opens the console's database as the configuration says."""

from pathlib import Path
from typing import Final

from consumer.config.sections.console import ConsoleSection
from consumer.model.errors import ConfigError
from consumer.reviews.database import Database, opened_database
from consumer.web.access import read_password

_SETTING: Final = "console.password_file"
_FILE: Final = "sqlite:///"


def opened_reviews(section: ConsoleSection, *, has_to_be_there: bool = False) -> Database:
    """Open the database; a file that is not there is made, unless it has to be there.

    Raises ``ConfigError`` and ``DatabaseUnavailable``.
    """
    if has_to_be_there and section.database.startswith(_FILE) and not Path(section.database[len(_FILE) :]).exists():
        raise ConfigError(
            f"console.database = {section.database}: there is no such file. Name another, or have dupwatch people add "
            "make it"
        )
    password = None if section.password_file is None else read_password(section.password_file, _SETTING)
    return opened_database(section.database, password)
