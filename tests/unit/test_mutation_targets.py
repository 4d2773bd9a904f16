"""What the mutation tests change: nothing of their folders is forgotten, and every test they name is there."""

from pathlib import Path

import pytest

from tests.mutation.targets import GROUPS, files, tiers

ROOT = Path(__file__).parents[2]
WHOLE_FOLDERS = {
    "consumer/sources": "sources",
    "consumer/sinks": "sinks",
    "consumer/dead_letters": "sinks",
    "storage/lmdb": "lmdb",
    "storage/hbase": "hbase",
}


@pytest.mark.parametrize(("folder", "group"), WHOLE_FOLDERS.items())
def test_every_module_is_of_one_target(folder: str, group: str) -> None:
    """A new module is changed too, by tests that are about it."""
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py"}
    assert modules <= set(files(ROOT, group))
    for module in modules:
        assert tiers(ROOT, module)


def test_every_test_that_is_named_is_there() -> None:
    """A test that was renamed would be no test."""
    named = {
        name
        for targets in GROUPS.values()
        for target in targets
        for tier in target.tiers
        for name in tier
        if name.startswith("tests/")
    }
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
