"""Programs of Debian's package ``prometheus``: found, or the test is skipped, or failed in CI."""

import os
import shutil

import pytest


def program(name: str) -> str:
    """The program's path."""
    found = shutil.which(name)
    if found is None:
        why = f"{name} is missing; on Debian: apt-get install prometheus"
        if os.environ.get("CI", "").lower() in {"", "0", "false"}:
            pytest.skip(why)
        pytest.fail(why, pytrace=False)
    return found
