"""Finds Java and Maven, in versions that the servers support."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from deploy.local.packages import MissingTools, apt_install

JAVA_MIN: Final = 17
JAVA_MAX: Final = 21
"""Hadoop 3.3 needs a part of Java that later versions no longer have."""
PACKAGES: Final = ("openjdk-17-jdk-headless", "maven")
_LATER_PACKAGES: Final = ("openjdk-21-jdk-headless", "maven")
"""For releases of Debian without Java 17."""
_MISSING: Final = (
    "Kafka and HBase need Java 17 and Maven; on Debian: apt-get install {}. Without them: make test-light"
).format(" ".join(PACKAGES))


def java() -> str:
    """Return the path of Java. Raises ``MissingTools``."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    version = None if found is None else _version(found)
    if found is None or version is None:
        raise MissingTools(_MISSING)
    if not JAVA_MIN <= version <= JAVA_MAX:
        raise MissingTools(f"{found} is Java {version}. {_MISSING}; set JAVA_HOME to use another one")
    return found


def environment() -> dict[str, str]:
    """Return our environment without ``JAVA_TOOL_OPTIONS`` and ``_JAVA_OPTIONS``, which change Java's options."""
    return {name: value for name, value in os.environ.items() if name not in {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"}}


def maven() -> str:
    """Return the path of Maven. Raises ``MissingTools``."""
    found = shutil.which("mvn")
    if found is None:
        raise MissingTools(_MISSING)
    return found


def install() -> bool:
    """Install Java and Maven if there is apt and we are root; return whether that succeeded."""
    return apt_install(*PACKAGES) or apt_install(*_LATER_PACKAGES)


def _version(path: str) -> int | None:
    try:
        ran = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)  # noqa: S603  # as found
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    return int(found[1]) if found else None
