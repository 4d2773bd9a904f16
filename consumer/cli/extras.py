"""Opens what needs the packages of an extra, such as the console's database, or says how to install them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from consumer.config.config import Config
from consumer.model.errors import SinkError
from consumer.text.install_advice import CONSOLE_PACKAGES, imported


@contextmanager
def opened_database(config: Config, command: str, *, has_to_be_there: bool = True) -> Iterator[Any]:
    """Open the console's database without the console, for a command that reads or changes it.

    Raises ``ConfigError``, also without its packages, and ``SinkError`` where it does not answer.
    """
    database_module = imported("consumer.reviews.database", CONSOLE_PACKAGES, "console", command)
    wiring = imported("consumer.wiring.console_database", CONSOLE_PACKAGES, "console", command)
    try:
        with closing(wiring.opened_reviews(config.console, has_to_be_there=has_to_be_there)) as database:
            yield database
    except database_module.DatabaseUnavailable as error:
        raise SinkError(str(error)) from error
