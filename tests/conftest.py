"""What all tests can ask for, and what they have in common."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from consumer.redaction import forget_all

pytest_plugins = ["tests.hbase_server"]

# How long an example takes depends on what else the machine does.
settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")


@pytest.fixture(autouse=True)
def _no_secrets_of_others() -> Iterator[None]:
    """What one test has read as a secret is an ordinary word in the next."""
    yield
    forget_all()
