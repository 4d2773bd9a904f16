"""The licences of the crates that are linked into the compiled engine."""

import json
import re
import subprocess
from pathlib import Path

import pytest

MANIFEST = Path(__file__).parents[3] / "core" / "Cargo.toml"
ALLOWED = frozenset(
    {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0", "BSD-3-Clause", "Zlib", "Unlicense", "MIT-0"}
)


def allowed(expression: str) -> bool:
    """Whether an SPDX expression can be fulfilled with what we allow; older crates write a slash for OR."""
    inner = re.fullmatch(r"\(([^()]*)\)", expression)
    if inner:
        return allowed(inner[1])
    for word, combined in ((r" AND ", all), (r" OR |/", any)):
        parts = [part.strip() for part in re.split(rf"(?:{word})(?![^(]*\))", expression)]
        if len(parts) > 1:
            return combined(map(allowed, parts))
    return expression in ALLOWED


@pytest.mark.parametrize(
    "expression",
    ["MIT", "MIT OR Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "Unlicense/MIT"],
)
def test_one_of_what_or_joins_is_enough(expression: str) -> None:
    """We may choose it."""
    assert allowed(expression)


@pytest.mark.parametrize(
    "expression", ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR Apache-2.0) AND GPL-3.0-only"]
)
def test_all_of_what_and_joins_is_needed(expression: str) -> None:
    """And what we do not know is refused."""
    assert not allowed(expression)


def test_crates_have_licences_that_we_may_link() -> None:
    """Those of the lock file, with everything that they need."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(MANIFEST)]
    packages = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["packages"]
    assert len(packages) > 20
    assert not [(package["name"], package["license"]) for package in packages if not allowed(package["license"] or "")]
