"""What a page is: a function from a ``Request`` to a ``Response``, and who may ask for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from typing import Final, Literal, NamedTuple

Kind = Literal["probe", "metrics", "page"]
PLAIN: Final = "text/plain; charset=utf-8"


class Request(NamedTuple):
    """A request for a page. ``trusted`` is False if credentials are required and were not given."""

    path: str
    query: Mapping[str, str]
    headers: Message
    trusted: bool


class Response(NamedTuple):
    """The answer of a page. ``headers`` override those that every answer has."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Page:
    """A function that answers, and who may ask: ``is_open`` needs no credentials, ``has_articles`` a known host name.

    Each ``kind`` of page has its own limit on concurrent requests.
    """

    answer: Callable[[Request], Response]
    is_open: bool = False
    has_articles: bool = False
    kind: Kind = "page"
