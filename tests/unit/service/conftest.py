"""A window with a store in memory, and the service over it."""

from collections.abc import Iterator

import pytest

import dupwatch
from tests.unit.service.serving import Client, judging_of, served, wait_until_ready


@pytest.fixture
def window() -> Iterator[dupwatch.Window]:
    """An open window on an empty store."""
    with dupwatch.open("memory:") as opened:
        yield opened


@pytest.fixture
def client(window: dupwatch.Window) -> Iterator[Client]:
    """A service over the same store."""
    with served(judging_of(window)) as client:
        wait_until_ready(client)
        yield client
