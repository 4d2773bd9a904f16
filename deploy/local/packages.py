"""Finds commands that tests need, and installs their packages if it is run by root and there is apt."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chromium": "chromium",
        "chromedriver": "chromium-driver",
        "go": "golang-go",
        "prometheus": "prometheus",
        "promtool": "prometheus",
        "sqlite3": "sqlite3",
    }
)
"""The commands that tests of pages, metrics, alerts, manifests and backups call, with their Debian packages."""
_INSTALL: Final = ("install", "--yes", "--quiet", "--no-install-recommends")


class MissingTools(Exception):  # noqa: N818  # it names what is missing
    """Something is not installed; the message says what to install."""


def missing_commands(commands: Mapping[str, str] = COMMANDS) -> list[str]:
    """Return the commands that are not installed."""
    return [command for command in commands if shutil.which(command) is None]


def check(commands: Mapping[str, str] = COMMANDS) -> None:
    """Raise ``MissingTools`` if one of these commands is not installed."""
    lacking = missing_commands(commands)
    if lacking:
        packages = " ".join(packages_of(lacking, commands))
        raise MissingTools(
            f"Some tests need {', '.join(lacking)}; on Debian: apt-get install {packages}. "
            "Without them: make test-light"
        )


def packages_of(lacking: Sequence[str], commands: Mapping[str, str] = COMMANDS) -> list[str]:
    """Return the packages of these commands, each once."""
    return list(dict.fromkeys(commands[command] for command in lacking))


def apt_install(*packages: str) -> bool:
    """Install packages if there is apt and we are root; return whether that succeeded."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return False
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}

    def works(*arguments: str) -> bool:
        return not subprocess.run([apt, *arguments], env=environment, check=False).returncode  # noqa: S603  # ours

    # Package lists may be missing, or so old that they name packages that no longer exist.
    return works(*_INSTALL, *packages) or (works("update", "--quiet") and works(*_INSTALL, *packages))
