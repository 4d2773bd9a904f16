"""The lock files: what is tested is what is run."""

import re
from itertools import combinations
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]


def pinned(lock: Path) -> dict[str, set[str]]:
    """The versions that a lock names, by package; a package may have several, with markers."""
    lines = re.findall(r"^[a-z0-9][^\\\n]*", lock.read_text(), re.MULTILINE)
    found: dict[str, set[str]] = {}
    for line in lines:
        requirement = Requirement(line)
        found.setdefault(requirement.name, set()).add(str(requirement.specifier))
    return found


def test_all_locks_name_the_same_versions() -> None:
    """A package that is in two of them has one version."""
    locks = {path.name: pinned(path) for path in ROOT.glob("requirements*.lock")}
    # What builds the compiled engine has nothing to do with the rest.
    builders = {name: locks.pop(f"requirements-{name}.lock") for name in ("core", "wheels")}
    assert builders["core"].items() <= builders["wheels"].items()
    assert len(locks) == 5
    for (first, ours), (other, theirs) in combinations(locks.items(), 2):
        shared = ours.keys() & theirs.keys()
        assert len(shared) > 20
        assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}, (first, other)
