"""Imports what needs the packages of an extra, or says how to install them."""

from importlib import import_module
from types import ModuleType
from typing import Final

from consumer.model.errors import ConfigError
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
