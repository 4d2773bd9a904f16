"""All routes of the console but the probes."""

from consumer.console.roles import OpenRoute, Route
from consumer.console.signing_in import sign_in_routes


def all_routes() -> list[Route | OpenRoute]:
    """Return them."""
    return [*sign_in_routes()]
