"""Retrieval is tested with the same stores as the contract."""

from tests.contract.conftest import clock, kind, store

__all__ = ["clock", "kind", "store"]
