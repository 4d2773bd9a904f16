"""The pages of a consumer: functions from a ``PageRequest`` to a ``PageResponse``, and the site that serves them.

The site also checks credentials and host names. Nothing here knows about connections.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from typing import Final, Literal, NamedTuple
from urllib.parse import parse_qsl

from consumer.web.access import Access, BadHost, request_host

log = logging.getLogger("dupwatch")

PageKind = Literal["probe", "metrics", "page"]
PLAIN: Final = "text/plain; charset=utf-8"
_QUERY_FIELDS_MAX: Final = 10


class PageRequest(NamedTuple):
    """A request for a page. ``trusted`` is False if required credentials are missing or wrong."""

    path: str
    query: Mapping[str, str]
    headers: Message
    trusted: bool


class PageResponse(NamedTuple):
    """The answer of a page. ``headers`` override the default headers."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ServedPage:
    """A page and its access rules.

    If ``is_open``, the page needs no credentials. ``has_articles`` is passed to ``Access.allows_page``.

    Each ``kind`` of page has its own limit on concurrent requests.
    """

    answer: Callable[[PageRequest], PageResponse]
    is_open: bool = False
    has_articles: bool = False
    kind: PageKind = "page"


UNAUTHORISED: Final = PageResponse(
    HTTPStatus.UNAUTHORIZED,
    PLAIN,
    b"This page requires a user name and a password.\n",
    {"WWW-Authenticate": 'Basic realm="dupwatch", charset="UTF-8"'},
)
UNKNOWN_NAME: Final = PageResponse(
    HTTPStatus.MISDIRECTED_REQUEST,
    PLAIN,
    b"This host name is not allowed. Use an IP address, localhost or a name in http.names, or set http.user and a "
    b"password.\n",
)


@dataclass(frozen=True, slots=True)
class Site:
    """The pages by path, and their access rules. ``is_local`` says that only this machine can connect.

    A path of the form ``/NAME/`` stands for all pages below it. ``failed`` is called for every request that a page
    could not answer, and for wrong credentials.
    """

    pages: Mapping[str, ServedPage]
    failed: Callable[[], None]
    access: Access
    is_local: bool

    def page_at(self, target: str) -> ServedPage | None:
        """Return the page for the target of a request, or None. The target may end with a query."""
        path = target.partition("?")[0]
        return self.pages.get(path) or self.pages.get(f"/{path.split('/')[1]}/" if path.count("/") > 1 else "")

    def answer(self, page: ServedPage | None, target: str, headers: Message, client: str) -> PageResponse:
        """Answer a request for ``target``. Its page is ``page``, or None if there is none. Never raises.

        ``client`` is an address, for the log.
        """
        path, _, query = target.partition("?")
        try:
            host = request_host(headers.get_all("Host", []), target)
        except BadHost as error:
            return PageResponse(HTTPStatus.BAD_REQUEST, PLAIN, f"{error}\n".encode())
        authorization = headers.get("Authorization")
        trusted = self.access.accepts(authorization)
        if authorization and not trusted:
            # Browsers first send no credentials, so only wrong ones are logged.
            log.warning("health pages: wrong credentials from %s", client)
            self.failed()
        if not trusted and (page is None or not page.is_open):
            return UNAUTHORISED
        if page is None:
            known = "".join(f"{path}\n" for path in sorted(self.pages) if path == "/" or not path.endswith("/"))
            return PageResponse(HTTPStatus.NOT_FOUND, PLAIN, f"Not found. Available pages:\n{known}".encode())
        if not self.access.allows_page(host, has_articles=page.has_articles, is_local=self.is_local):
            return UNKNOWN_NAME
        try:
            return page.answer(PageRequest(path, _fields(query), headers, trusted))
        except Exception:
            log.exception("A health page failed")
            self.failed()
            return PageResponse(HTTPStatus.INTERNAL_SERVER_ERROR, PLAIN, b"The page failed; see the log.\n")


def _fields(query: str) -> dict[str, str]:
    """Return the fields of a query; none if there are too many."""
    try:
        return dict(parse_qsl(query, max_num_fields=_QUERY_FIELDS_MAX))
    except ValueError:
        return {}
