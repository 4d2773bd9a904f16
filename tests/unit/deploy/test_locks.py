"""The lock files: what is tested is what is run."""

import re
import tomllib
from itertools import combinations
from pathlib import Path
from typing import get_args

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from consumer.text.install_advice import Extra
from tests.installed import needed_by_all

ROOT = Path(__file__).parents[3]


def pinned(lock: Path) -> dict[str, set[str]]:
    """The versions that a lock names, by package; a package may have several, with markers."""
    lines = re.findall(r"^[a-z0-9][^\\\n]*", lock.read_text(), re.MULTILINE)
    found: dict[str, set[str]] = {}
    for line in lines:
        requirement = Requirement(line)
        found.setdefault(requirement.name, set()).add(str(requirement.specifier))
    return found


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("requirements.lock", {"console", "serve"}), ("requirements-extras.lock", {*get_args(Extra)})],
)
def test_a_lock_has_all_that_its_extras_need(lock: str, extras: set[str]) -> None:
    """``make run`` and ``make dist DEPS=1`` install what they name, and nothing that is not locked."""
    names = pinned(ROOT / lock).keys()
    wanted = {canonicalize_name(each.name) for each in needed_by_all([f"dupwatch[{','.join(sorted(extras))}]"])}
    assert wanted - names == {"dupwatch"}


def test_each_extra_has_advice() -> None:
    """And is in the lock of all extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"].keys() == {*get_args(Extra)}


def test_all_locks_name_the_same_versions() -> None:
    """A package that is in two of them has one version."""
    locks = {path.name: pinned(path) for path in ROOT.glob("requirements*.lock")}
    # What builds the compiled engine has nothing to do with the rest.
    builders = {name: locks.pop(f"requirements-{name}.lock") for name in ("core", "wheels")}
    assert builders["core"].items() <= builders["wheels"].items()
    # Quix Streams wants older versions of packages that dupwatch has, so it is installed elsewhere.
    assert "quixstreams" in locks.pop("requirements-recipes.lock")
    assert len(locks) == 5
    for (first, ours), (other, theirs) in combinations(locks.items(), 2):
        shared = ours.keys() & theirs.keys()
        assert len(shared) > 20
        assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}, (first, other)
