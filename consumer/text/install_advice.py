"""Imports modules that need the packages of an extra, or says how to install them.

dupwatch is not on a package index, so the advice never uses one. A checkout has ``make extras``. Any other installation
came from the wheels of ``make dist``, so pip is limited to these.
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


def import_extra(module: str, packages: frozenset[str], extra: Extra, command: str) -> ModuleType:
    """Import and return a module that needs these packages of an extra.

    Raises ``ConfigError``, which names ``command``, if one of the packages is not installed. Another missing module
    raises ``ModuleNotFoundError``.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in packages:
            raise
        raise ConfigError(
            f"{command} needs {error.name}, which is not installed. Install it with:\n{install_command(extra)}"
        ) from error


def install_command(extra: Extra) -> str:
    """Return the command that installs an extra: ``make`` in the environment of a checkout, or else pip.

    The pip is that of the running Python, because the shell may use another environment.
    """
    if _is_in_checkout():
        # Compare with ".", not with its absolute path, because the working directory may have been removed.
        return "make extras" if _ROOT.samefile(".") else shlex.join(["make", "-C", str(_ROOT), "extras"])
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--find-links", "dist", f"dupwatch[{extra}]"]
    return f"{shlex.join(pip)}   # dist is what make dist DEPS=1 has made"


def _is_in_checkout() -> bool:
    """Return whether this Python runs in the environment that the Makefile of a checkout created."""
    environment = _ROOT / ".venv"
    return (_ROOT / "Makefile").is_file() and environment.is_dir() and environment.samefile(sys.prefix)
