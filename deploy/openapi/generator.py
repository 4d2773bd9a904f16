"""Fetches OpenAPI Generator, and runs it for tests. ``python -m deploy.openapi.generator`` only fetches it.

The jar comes from Maven, into the cache of ``deploy.local.fetch``; a lock lets one process fetch it while others wait.
"""

import fcntl
import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from deploy.local.fetch import home
from deploy.local.java import java, maven
from deploy.local.packages import MissingTools

VERSION: Final = "7.16.0"
_NAME: Final = f"openapi-generator-cli-{VERSION}.jar"
_ARTIFACT: Final = f"org.openapitools:openapi-generator-cli:{VERSION}"


def jar() -> Path:
    """Return the generator's jar; fetch it if it is missing.

    Raises ``MissingTools`` without Maven, and ``CalledProcessError`` if Maven fails.
    """
    path = home() / _NAME
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_file():
            _fetch(path)
    return path


def _fetch(path: Path) -> None:
    command = [maven(), "--quiet", "--batch-mode", *shlex.split(os.environ.get("MVN_ARGS", "")), "dependency:copy"]
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.unfinished-") as folder:
        arguments = [f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={folder}"]
        subprocess.run([*command, *arguments], check=True, stdout=sys.stderr)  # noqa: S603  # ours
        (Path(folder) / path.name).rename(path)


def generate(document: Path, package: str, folder: Path) -> None:
    """Write a Python client of this name into a folder.

    Raises ``CalledProcessError`` with the generator's output, and the errors of ``jar``.
    """
    command = [java(), "-jar", str(jar()), "generate", "-g", "python", "-i", str(document), "-o", str(folder)]
    subprocess.run([*command, "--package-name", package], check=True, capture_output=True)  # noqa: S603  # ours


def main() -> int:
    """Fetch the generator; return the exit code."""
    try:
        jar()
    except MissingTools as lacking:
        sys.stderr.write(f"{lacking}\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"Maven could not fetch {_ARTIFACT} (exit code {error.returncode}); see its messages above.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
