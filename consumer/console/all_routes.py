"""All routes of the console but the probes."""

from consumer.console.audit_pages import audit_routes
from consumer.console.own_page import own_routes
from consumer.console.people_pages import people_routes
from consumer.console.roles import OpenRoute, Route
from consumer.console.signing_in import sign_in_routes


def all_routes() -> list[Route | OpenRoute]:
    """Return them."""
    return [*sign_in_routes(), *own_routes(), *people_routes(), *audit_routes()]
