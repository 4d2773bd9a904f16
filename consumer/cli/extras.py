"""Opens the console's database, or explains how to install the packages that it needs."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from consumer.config.config import Config
from consumer.model.errors import SinkError
from consumer.text.install_advice import CONSOLE_PACKAGES, import_extra


@contextmanager
def open_database(config: Config, command: str, *, must_exist: bool = True) -> Iterator[Any]:
    """Open the console's database for a command that reads or changes it. With ``must_exist``, do not create its file.

    Raises ``ConfigError`` if packages or, with ``must_exist``, the file are missing, or if the settings of the database
    cannot be used. Raises ``SinkError`` if the database does not answer.
    """
    database_module = import_extra("consumer.reviews.database", CONSOLE_PACKAGES, "console", command)
    wiring = import_extra("consumer.wiring.console_database", CONSOLE_PACKAGES, "console", command)
    try:
        with closing(wiring.opened_reviews(config.console, must_exist=must_exist)) as database:
            yield database
    except database_module.DatabaseUnavailable as error:
        raise SinkError(str(error)) from error
