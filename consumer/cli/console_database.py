"""The console's database for commands that read or change it, without the console."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from consumer.cli.extras import CONSOLE_PACKAGES, imported
from consumer.config.config import Config
from consumer.model.errors import SinkError


@contextmanager
def opened_database(config: Config, command: str, *, has_to_be_there: bool = True) -> Iterator[Any]:
    """Open it. Raises ``ConfigError``, also without its packages, and ``SinkError`` where it does not answer."""
    database_module = imported("consumer.reviews.database", CONSOLE_PACKAGES, "console", command)
    wiring = imported("consumer.wiring.console_database", CONSOLE_PACKAGES, "console", command)
    try:
        with closing(wiring.opened_reviews(config.console, has_to_be_there=has_to_be_there)) as database:
            yield database
    except database_module.DatabaseUnavailable as error:
        raise SinkError(str(error)) from error
