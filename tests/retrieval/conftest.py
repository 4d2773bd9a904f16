"""Retrieval is tested with the same stores as the contract, with two of the three in each run."""

import pytest

from tests.contract.conftest import NAMES, STORES, Kind, clock, store
from tests.examples import drawn

__all__ = ["clock", "kind", "store"]


@pytest.fixture(params=drawn(NAMES, 2))
def kind(request: pytest.FixtureRequest) -> Kind:
    """Return the implementation under test."""
    return STORES[request.param](request)
