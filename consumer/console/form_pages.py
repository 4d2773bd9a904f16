"""Finds the page from which a form was sent, so that an error page can link back to it."""

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

ADDRESS_CHARS_MAX: Final = 2_000
CORRECTABLE: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.CONFLICT,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    }
)
"""Statuses of errors that people can correct in the form."""
_ROW_ID: Final = re.compile(r"\\{\w+:int\\}")
_NAME: Final = re.compile(r"\\{\w+\\}")


class FormPages:
    """The console's pages, given the paths that answer GET."""

    def __init__(self, paths: Iterable[str]) -> None:
        patterns = (_NAME.sub("[^/]+", _ROW_ID.sub("[0-9]+", re.escape(path))) for path in paths)
        self._pages = re.compile("|".join(patterns))

    def address(self, request: Request) -> str | None:
        """Return the address of the page that sent a request, or None if no link to it is possible or needed.

        None is returned if the browser names no address of this console or a very long one, if the page is the queue
        without a query, or if a GET requests the page itself. A page that answered a form has no address of its own;
        the address of the page above it is returned instead.
        """
        try:
            parts = urlsplit(request.headers.get("referer", ""))
        except ValueError:
            return None
        if parts.netloc != request.headers.get("host") or len(parts.path) + len(parts.query) > ADDRESS_CHARS_MAX:
            return None
        path, query = parts.path, parts.query
        while path and not self._pages.fullmatch(path):
            path, query = path.rpartition("/")[0], ""
        address = f"{path or '/'}?{query}" if query else path or "/"
        here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        return None if address == "/" or (request.method == "GET" and address == here) else address
