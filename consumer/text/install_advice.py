"""Imports what needs the packages of an extra, or says how to install them.

dupwatch is not on a package index, so the advice never asks one for it. A checkout has ``make extras``; any other
installation came from the wheels of ``make dist``, which are all that pip may look at.
"""

import shlex
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, Literal

from consumer.model.errors import ConfigError

_ROOT: Final = Path(__file__).parents[2]
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


def install_command(extra: Extra) -> str:
    """Return the command to type: ``make`` in the environment of a checkout, elsewhere pip.

    pip is that of the running Python, since the shell may be in another environment.
    """
    if _is_in_checkout():
        # Not by the absolute path of the working directory, which somebody may have removed.
        return "make extras" if _ROOT.samefile(".") else shlex.join(["make", "-C", str(_ROOT), "extras"])
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--find-links", "dist", f"dupwatch[{extra}]"]
    return f"{shlex.join(pip)}   # dist is what make dist DEPS=1 has made"


def _is_in_checkout() -> bool:
    """Return whether this is the environment that the Makefile next to the packages has set up."""
    environment = _ROOT / ".venv"
    return (_ROOT / "Makefile").is_file() and environment.is_dir() and environment.samefile(sys.prefix)
