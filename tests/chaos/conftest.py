"""The stores of the contract, for the tests here that hold on each of them."""

from tests.contract.conftest import clock, kind, store

__all__ = ["clock", "kind", "store"]
