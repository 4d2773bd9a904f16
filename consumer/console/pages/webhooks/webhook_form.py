"""Reads and fills the form that creates or changes a webhook."""

from dataclasses import dataclass
from http import HTTPStatus

from consumer.console.faults import N_, PageError
from consumer.console.pages.webhooks.webhook_words import KINDS
from consumer.console.visit import Fields
from consumer.reviews.outbox.webhooks import SOURCES_MAX, WebhookSettings
from consumer.text.names import is_name
from consumer.webhooks.endpoint import URL_CHARS_MAX

NAME_CHARS_MAX = 80
SOURCES_CHARS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class WebhookFields:
    """The fields of the form, as sent or as shown."""

    name: str = ""
    url: str = ""
    kinds: tuple[str, ...] = ()
    # One per line.
    sources: str = ""


def fields_of(settings: WebhookSettings) -> WebhookFields:
    """Return the form fields for a webhook's settings."""
    return WebhookFields(settings.name, settings.url, settings.kinds, "\n".join(settings.sources))


def fields_in(form: Fields) -> WebhookFields:
    """Return the fields of a sent form, to show them again; values that are too long become ""."""
    name, url = form.exact("name", NAME_CHARS_MAX), form.exact("url", URL_CHARS_MAX)
    return WebhookFields(name, url, tuple(form.all("kind")), form.exact("sources", SOURCES_CHARS_MAX))


def settings_in(form: Fields) -> WebhookSettings:
    """Return the settings in a form; the URL is not checked yet. Raises ``PageError``."""
    name = form.text("name", NAME_CHARS_MAX)
    if not is_name(name):
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Enter a name without line breaks or invisible characters."))
    kinds = tuple(kind for kind in KINDS if kind in form.all("kind"))
    if not kinds:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Choose at least one kind of event."))
    lines = (line.strip() for line in form.text("sources", SOURCES_CHARS_MAX).split("\n"))
    sources = tuple(dict.fromkeys(line for line in lines if line))
    if len(sources) > SOURCES_MAX:
        message = N_("Enter at most %(most)s sources. Leave the field empty for all sources.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=SOURCES_MAX)
    return WebhookSettings(name, form.text("url", URL_CHARS_MAX), kinds, sources)
