"""The command that installs the optional packages of an extra.

dupwatch is not on a package index, so ``pip install 'dupwatch[plot]'`` finds nothing. The packages that an extra names
can be installed directly, into the environment of a checkout or of an installed wheel.
"""

import re
import shlex
import sys
from importlib import metadata
from typing import Literal

Extra = Literal["console", "console-postgresql", "pages", "plot", "schemas", "serve", "tracing"]


def requirements(extra: Extra) -> list[str]:
    """Return the packages of an extra in ``pip``'s notation, from the metadata of the installed distribution."""
    marker = re.compile(rf"\s*;\s*extra\s*==\s*['\"]{extra}['\"]$")
    declared = metadata.requires("dupwatch") or []
    return [marker.sub("", requirement) for requirement in declared if marker.search(requirement)]


def install_command(extra: Extra) -> str:
    """Return the command to type. It names the running Python, since the shell may be in another environment."""
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements(extra)])
