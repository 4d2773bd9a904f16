"""Errors that end a request with a page that says what is wrong and what to do."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from consumer.console.i18n import Language
from consumer.web.problems import (
    BUSY,
    DEFECT,
    HEAD_TOO_LARGE,
    MALFORMED,
    STORE,
    UNKNOWN_HOST,
    ProblemError,
    ProblemKind,
)
from consumer.web.requests import LimitName


def N_(message: str) -> str:  # noqa: N802  # the name that message extraction looks for
    """Mark a message for translation; it is translated where it is shown."""
    return message


_LABELS: Final[Mapping[str, str]] = {
    "bank": N_("Name of the bank"),
    "first": N_("First day (UTC)"),
    "from": N_("Arrived on or after (UTC)"),
    "kind": N_("Kind"),
    "labels": N_("Labels (optional)"),
    "last": N_("Last day (UTC)"),
    "lasts": N_("How long"),
    "name": N_("Name"),
    "note": N_("Note (optional)"),
    "order": N_("Order"),
    "original_source": N_("Source of the original"),
    "person": N_("Person"),
    "piece": N_("Part of an id, title, label or text"),
    "precision": N_("Target precision"),
    "q": N_("Search"),
    "similarity": N_("Similarity (optional)"),
    "similarity_max": N_("Maximum similarity"),
    "similarity_min": N_("Minimum similarity"),
    "source": N_("Source"),
    "sources": N_("Only of these sources (optional)"),
    "story_id": N_("Story number"),
    "text": N_("Text"),
    "threshold": N_("Threshold"),
    "title": N_("Title (optional)"),
    "to": N_("Arrived on or before (UTC)"),
    "url": N_("URL"),
}
"""Labels of the fields that people fill in. Fields that only occur in addresses keep their names."""


class PageError(Exception):
    """An error that ends a request with a page. ``message`` is marked with ``N_``; ``values`` fill its translation.

    ``limit`` names the limit that was exceeded. ``retry_s``: the seconds after which to try again.
    ``offers_sign_in``: the page has a sign-in link.
    """

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        *,
        limit: LimitName | None = None,
        retry_s: int | None = None,
        offers_sign_in: bool = False,
        headers: Mapping[str, str] | None = None,
        **values: object,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.values = values
        self.limit = limit
        self.retry_s = retry_s
        self.offers_sign_in = offers_sign_in
        self.headers = dict(headers or {}) | ({} if retry_s is None else {"Retry-After": str(retry_s)})

    def text(self, language: Language) -> str:
        """Return the message in a language, with labels for field names and separators in numbers."""
        values = {name: _display_value(language, name, value) for name, value in self.values.items()}
        return language.gettext(self.message, **values)


TITLES: Final[Mapping[int, str]] = {
    HTTPStatus.BAD_REQUEST: N_("This request cannot be read"),
    HTTPStatus.FORBIDDEN: N_("Not allowed"),
    HTTPStatus.NOT_FOUND: N_("Not found"),
    HTTPStatus.METHOD_NOT_ALLOWED: N_("Not possible here"),
    HTTPStatus.REQUEST_TIMEOUT: N_("The request took too long to arrive"),
    HTTPStatus.CONFLICT: N_("Not done"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: N_("Too large"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: N_("This request cannot be read"),
    HTTPStatus.MISDIRECTED_REQUEST: N_("Unknown host name"),
    HTTPStatus.TOO_MANY_REQUESTS: N_("Please wait"),
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: N_("Too large"),
    HTTPStatus.INTERNAL_SERVER_ERROR: N_("Something went wrong"),
    HTTPStatus.SERVICE_UNAVAILABLE: N_("Not available at the moment"),
}
"""The page title for each status."""


_MESSAGES: Final[Mapping[ProblemKind, str]] = {
    HEAD_TOO_LARGE: N_("The address or the headers of this request are too long."),
    MALFORMED: N_("The host name in this request is malformed. Open the console at its own address."),
    UNKNOWN_HOST: N_("This console does not serve this host name. Use its IP address or a name in console.names."),
    DEFECT: N_(
        "The console failed. Its log has the details under the id below. Give this id to whoever runs the console."
    ),
    BUSY: N_("The console is too busy at the moment. Try again in a second."),
    STORE: N_("The console did not answer in time. Try again in a few seconds."),
}
"""The message for each problem that servers share."""


def page_error(problem: ProblemError, *, changes: bool = False) -> PageError:
    """Return the error for a problem. ``changes``: the request asks for a change, which a timeout may not prevent."""
    message = _MESSAGES[problem.kind]
    if changes and problem.kind is STORE:
        message = N_(
            "The console did not answer in time. Your change may still take effect: check before you send it again."
        )
    limit = problem.limit.name if problem.limit else None
    return PageError(HTTPStatus(problem.kind.status), message, limit=limit, headers=problem.headers)


def _display_value(language: Language, name: str, value: object) -> object:
    if name == "field":
        label = _LABELS.get(str(value))
        return value if label is None else language.gettext(label)
    return language.number(value) if isinstance(value, int) else value


def not_found() -> PageError:
    """Return the error for a page that does not exist."""
    return PageError(HTTPStatus.NOT_FOUND, N_("There is no such page. It may have been removed."))
