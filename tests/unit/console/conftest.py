"""A console over an empty database, and passwords that cost little."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from consumer.reviews import passwords
from tests.unit.console.serving import Served, served
from tests.unit.reviews.conftest import address, database, pytest_generate_tests, second, statements, with_tables

__all__ = ["address", "console", "database", "pytest_generate_tests", "second", "statements", "with_tables"]


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hash with the same algorithm and the least work: many tests sign in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Served]:
    """A console in which nobody has an account yet."""
    with served(tmp_path) as console:
        yield console
