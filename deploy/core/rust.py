"""Checks whether the installed Rust can build the compiled engine: ``python -m deploy.core.rust``.

cargo reports this too, but only at the end of pages that pip prints.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

MANIFEST: Final = Path(__file__).parents[2] / "core" / "Cargo.toml"
"""Its ``rust-version`` is the oldest Rust that builds the engine."""
ANSWER_S: Final = 60.0
"""The time limit for an answer: rustup may have to fetch a toolchain first."""


def oldest_rust(manifest: Path = MANIFEST) -> str:
    """Return the version of the oldest Rust that builds the engine."""
    version: str = tomllib.loads(manifest.read_text())["package"]["rust-version"]
    return version


def build_obstacle(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return a sentence that says why the engine cannot be built here and what to do; None if it can be built."""
    oldest = oldest_rust()
    for program in ("cargo", "rustc"):
        path = shutil.which(program, path=environment.get("PATH"))
        fault = "is not on the PATH" if path is None else _fault(path, oldest, environment)
        if fault is not None:
            alternative = "but CI has to test it" if environment.get("CI") else "only slower"
            return (
                f"The compiled engine needs cargo and rustc {oldest} or newer, but {program} {fault}: install them "
                "from your distribution, or as https://www.rust-lang.org/tools/install says, or run rustup update; "
                f"dupwatch runs without the engine, {alternative}"
            )
    return None


def _fault(path: str, oldest: str, environment: Mapping[str, str]) -> str | None:
    """Return what is wrong with a program of Rust as a phrase; None if nothing is."""
    try:
        answer = subprocess.run(  # noqa: S603  # a program of the PATH
            [path, "--version"], capture_output=True, text=True, env=environment, timeout=ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"({path}) cannot be run ({error})"
    found = re.match(r"\w+ (\d+\.\d+[.\d]*)", answer.stdout)
    if answer.returncode or found is None:
        said = (answer.stderr or answer.stdout).strip().partition("\n")[0]
        return f"({path}) does not say its version ({said})"
    return None if _numbers(found[1]) >= _numbers(oldest) else f"({path}) is {found[1]}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.strip(".").split("."))


def main() -> int:
    """Print why the engine cannot be built, if so, and return the exit code."""
    obstacle = build_obstacle()
    if obstacle is None:
        return 0
    print(obstacle, file=sys.stderr)  # noqa: T201  # what make shows
    return 1


if __name__ == "__main__":
    sys.exit(main())
