"""Imports what needs the packages of an extra, such as the console's database, or says how to install them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from consumer.config.config import Config
from consumer.model.errors import ConfigError, SinkError
from consumer.text.install_advice import Extra, install_command

CONSOLE_PACKAGES: Final = frozenset(
    {"alembic", "argon2", "babel", "jinja2", "markupsafe", "sqlalchemy", "starlette", "uvicorn"}
)


def imported(module: str, packages: frozenset[str], extra: Extra, command: str) -> ModuleType:
    """Import a module. Raises ``ConfigError`` where one of these packages, which its extra has, is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in packages:
            raise
        raise ConfigError(
            f"{command} needs {error.name}, which is not installed. Install it with:\n{install_command(extra)}"
        ) from error


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
