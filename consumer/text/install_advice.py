"""Imports what needs the packages of an extra, or says how to install them.

dupwatch is not on a package index, so ``pip install 'dupwatch[plot]'`` finds nothing. The packages that an extra names
can be installed directly, into the environment of a checkout or of an installed wheel.
"""

import re
import shlex
import sys
from importlib import import_module, metadata
from types import ModuleType
from typing import Final, Literal

from consumer.model.errors import ConfigError

Extra = Literal["console", "console-postgresql", "pages", "plot", "schemas", "serve", "tracing"]
CONSOLE_PACKAGES: Final = frozenset(
    {"alembic", "argon2", "babel", "h11", "jinja2", "markupsafe", "sqlalchemy", "starlette", "uvicorn"}
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


def requirements(extra: Extra) -> list[str]:
    """Return the packages of an extra in ``pip``'s notation, from the metadata of the installed distribution."""
    marker = re.compile(rf"\s*;\s*extra\s*==\s*['\"]{extra}['\"]$")
    declared = metadata.requires("dupwatch") or []
    return [marker.sub("", requirement) for requirement in declared if marker.search(requirement)]


def install_command(extra: Extra) -> str:
    """Return the command to type. It names the running Python, since the shell may be in another environment."""
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements(extra)])
