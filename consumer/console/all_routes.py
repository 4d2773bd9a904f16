"""All routes of the console but the probes."""

from consumer.console.audit_pages import audit_routes
from consumer.console.deciding import deciding_routes
from consumer.console.flag_page import flag_routes
from consumer.console.own_page import own_routes
from consumer.console.people_pages import people_routes
from consumer.console.queue_pages import queue_routes
from consumer.console.roles import OpenRoute, Route
from consumer.console.signing_in import sign_in_routes
from consumer.console.story_deciding import story_deciding_routes
from consumer.console.story_pages import story_routes
from consumer.console.thresholds_page import thresholds_routes


def all_routes() -> list[Route | OpenRoute]:
    """Return them."""
    flags = [*queue_routes(), *flag_routes(), *deciding_routes(), *thresholds_routes()]
    stories = [*story_routes(), *story_deciding_routes()]
    return [*sign_in_routes(), *flags, *stories, *own_routes(), *people_routes(), *audit_routes()]
