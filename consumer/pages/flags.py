"""The pages of the latest flags: ``/``, ``/flags/REFERENCE`` and, for programs, ``/flags.json``."""

import threading
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec

from consumer.model.verdict import Part, SeenBefore
from consumer.pages.flags_page import TITLE_CHARS_MAX, flag_page, flags_page
from consumer.pages.latest_flags import Flag, Latest, LatestFlags, Side
from consumer.text.visible import cut, safe_url
from consumer.web.page import PLAIN, Page, Request, Response
from consumer.web.style import POLICY

SCHEMA: Final = "dupwatch.flags/1"
_HTML: Final = "text/html; charset=utf-8"
_JSON: Final = "application/json"
_BELOW: Final = "/flags/"
_DIGITS_MAX: Final = 9
_KEPT_S: Final = 1.0


class SideJson(msgspec.Struct, frozen=True):
    """One article of a flag, as JSON. ``url`` is "" unless it is http or https.

    ``ended_at`` is when the version was replaced or its article retracted, null while it is in force.
    """

    title: str
    source: str
    url: str
    lang: str
    arrived_at: str
    ended_at: str | None


class FlagJson(msgspec.Struct, frozen=True):
    """A flag as JSON: the fields of the verdict as in its event, and both articles as the store has them."""

    id: str
    version: str | None
    duplicate_of: str | None
    duplicate_of_version: str | None
    distance: int | None
    similarity: float | None
    cluster: str | None
    shared_keywords: tuple[str, ...]
    seen_before: SeenBefore | None
    parts: tuple[Part, ...]
    truncated: bool
    arrived_at: str
    decided_at: str
    released: bool
    href: str
    article: SideJson | None
    original: SideJson | None


class ReturnedJson(msgspec.Struct, frozen=True):
    """A text that came back: the id of the latest article with it, when it came first and last, and how often."""

    id: str
    first: str
    last: str
    times: int


class FlagsJson(msgspec.Struct, frozen=True, kw_only=True):
    """``/flags.json``, newest first."""

    schema: str = SCHEMA
    began_at: str
    seen: int
    flags_max: int
    trouble: str | None
    flags: tuple[FlagJson, ...]
    returning: tuple[ReturnedJson, ...] = ()


class FlagPages:
    """Renders the pages, one at a time, and again only after a change, at most once a second.

    So frequent requests take little processor time from the run.
    """

    def __init__(self, latest: LatestFlags) -> None:
        self._latest = latest
        self._lock = threading.Lock()
        self._rendered_of: Latest | None = None
        self._rendered_s = 0.0
        self._rendered: dict[tuple[str, str], bytes] = {}

    def pages(self) -> dict[str, Page]:
        """Return the pages by path."""
        return {
            "/": Page(self._all, has_articles=True),
            _BELOW: Page(self._single, has_articles=True),
            "/flags.json": Page(self._json, has_articles=True),
        }

    def _all(self, request: Request) -> Response:
        refreshes = "refresh" in request.query
        render = partial(flags_page, refreshes=refreshes)
        return _html(self._page(self._latest.latest(), ("all", str(refreshes)), render))

    def _single(self, request: Request) -> Response:
        name = request.path.removeprefix(_BELOW)
        latest = self._latest.latest()
        flag = next((flag for flag in latest.flags if flag.reference.hex() == name), None)
        if flag is None:
            gone = "This flag is not among the latest ones. Use dupwatch show ID to see any stored article.\n"
            return Response(HTTPStatus.NOT_FOUND, PLAIN, gone.encode())
        return _html(self._page(latest, ("one", name), lambda _: flag_page(flag)))

    def _json(self, request: Request) -> Response:
        latest = self._latest.latest()
        flags = latest.flags[: _number(request.query.get("limit", ""))]
        body = FlagsJson(
            began_at=latest.began_at,
            seen=latest.seen,
            flags_max=self._latest.flags_max,
            trouble=latest.trouble,
            flags=tuple(map(_flag, flags)),
            returning=tuple(ReturnedJson(*returned) for returned in latest.returning),
        )
        return Response(HTTPStatus.OK, _JSON, msgspec.json.encode(body) + b"\n")

    def _page(self, latest: Latest, name: tuple[str, str], render: Callable[[Latest], bytes]) -> bytes:
        with self._lock:
            now_s = time.monotonic()
            if latest != self._rendered_of and now_s - self._rendered_s >= _KEPT_S:
                self._rendered_of, self._rendered_s = latest, now_s
                self._rendered.clear()
            if name not in self._rendered:
                self._rendered[name] = render(latest)
            return self._rendered[name]


def _number(text: str) -> int | None:
    return int(text[:_DIGITS_MAX]) if text.isascii() and text.isdigit() else None


def _html(body: bytes) -> Response:
    return Response(HTTPStatus.OK, _HTML, body, {"Content-Security-Policy": POLICY})


def _flag(flag: Flag) -> FlagJson:
    verdict = flag.verdict
    return FlagJson(
        id=verdict.id,
        version=verdict.version,
        duplicate_of=verdict.duplicate_of,
        duplicate_of_version=verdict.duplicate_of_version,
        distance=verdict.distance,
        similarity=verdict.similarity,
        cluster=verdict.cluster,
        shared_keywords=verdict.shared_keywords,
        seen_before=verdict.seen_before if isinstance(verdict.seen_before, SeenBefore) else None,
        parts=verdict.parts if isinstance(verdict.parts, tuple) else (),
        truncated=verdict.truncated,
        arrived_at=verdict.arrived_at,
        decided_at=verdict.decided_at,
        released=flag.released,
        href=f"{_BELOW}{flag.reference.hex()}",
        article=_side(flag.article),
        original=_side(flag.original),
    )


def _side(side: Side | None) -> SideJson | None:
    if side is None:
        return None
    record = side.record
    return SideJson(
        title=cut(record.title, TITLE_CHARS_MAX),
        source=record.source,
        url=safe_url(record.url) or "",
        lang=record.lang,
        arrived_at=side.arrived_at,
        ended_at=side.ended_at,
    )
