"""A window with a store in memory, and the service over it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import dupwatch
from tests.unit.service.kept_sink import KeptSink
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


@pytest.fixture
def sink() -> KeptSink:
    """Where verdicts go."""
    return KeptSink()


@pytest.fixture
def storing(window: dupwatch.Window, sink: KeptSink) -> Iterator[Client]:
    """A service that stores."""
    with served(judging_of(window), sink) as client:
        wait_until_ready(client)
        yield client


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads that ask at the same time."""
    with ThreadPoolExecutor(16) as threads:
        yield threads
