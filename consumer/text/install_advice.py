"""Optional packages: what an extra of the distribution needs, and the command that installs it.

dupwatch is not on a package index, so ``pip install 'dupwatch[plot]'`` finds nothing. The packages that an extra names
can be installed from anywhere, into a checkout's environment as well as beside an installed wheel.
"""

import re
import shlex
import sys
from importlib import metadata
from typing import Literal

Extra = Literal["plot", "schemas", "tracing"]


def requirements(extra: Extra) -> list[str]:
    """The packages of an extra as ``pip`` takes them, from the metadata of the installed distribution."""
    marker = re.compile(rf"\s*;\s*extra\s*==\s*['\"]{extra}['\"]$")
    declared = metadata.requires("dupwatch") or []
    return [marker.sub("", one) for one in declared if marker.search(one)]


def install_command(extra: Extra) -> str:
    """What to type: for the Python that runs now, whichever environment the shell is in."""
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements(extra)])
