"""The latest flags of a consumer for programs (``/flags.json``), and hints for people (``/`` and ``/flags``)."""

from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

import msgspec

from consumer.model.verdict import Part, SeenBefore, Verdict
from consumer.telemetry.latest_flags import Flag, FlagArticle, LatestFlags
from consumer.text.visible import cut, safe_url
from consumer.web.page import PLAIN, PageRequest, PageResponse, ServedPage

SCHEMA: Final = "dupwatch.flags/1"
_JSON: Final = "application/json"
_DIGITS_MAX: Final = 9
_TITLE_CHARS_MAX: Final = 300


class FlagArticleJson(msgspec.Struct, frozen=True):
    """One article of a flag, as JSON. ``url`` is "" unless it is http or https.

    ``ended_at`` is the time at which the version was replaced or retracted, null while it is in force.
    """

    title: str
    source: str
    url: str
    lang: str
    arrived_at: str
    ended_at: str | None


class FlagJson(msgspec.Struct, frozen=True):
    """A flag as JSON: the fields of the verdict as in its event, and both stored articles.

    ``href`` is the address of its page in the console, or null if no console is configured.
    """

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
    href: str | None
    article: FlagArticleJson | None
    original: FlagArticleJson | None


class ReturnedJson(msgspec.Struct, frozen=True):
    """A text that came back: the id of its latest article, its first and last arrival, and its number of arrivals.

    ``times`` is a lower bound; the text may have arrived more often.
    """

    id: str
    first: str
    last: str
    times: int


class FlagsJson(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``/flags.json``, with the newest flag first.

    ``seen`` counts the flags since ``began_at``. ``flags_max`` is the limit on the flags kept in memory. ``trouble``
    says why articles may be missing, or is null. ``returning`` are the texts that came back most often.
    """

    schema: str = SCHEMA
    began_at: str
    seen: int
    flags_max: int
    trouble: str | None
    flags: tuple[FlagJson, ...]
    returning: tuple[ReturnedJson, ...] = ()


def flag_pages(latest: LatestFlags, console_url: str | None) -> dict[str, ServedPage]:
    """Return the pages by path. ``/flags.json`` is among them only if flags are kept in memory.

    ``console_url`` is the address of the console, or None if none is configured.
    """
    has_json = latest.flags_max > 0
    hint = ServedPage(lambda _: PageResponse(HTTPStatus.OK, PLAIN, _hint_text(console_url, has_json=has_json).encode()))
    pages = {"/": hint, "/flags": hint, "/flags/": hint}
    if has_json:
        pages["/flags.json"] = ServedPage(partial(_json, latest, console_url), has_articles=True)
    return pages


def _hint_text(console_url: str | None, *, has_json: bool) -> str:
    if console_url is None:
        console = "Review flags in the moderators' console (dupwatch console); set http.console_url to link to it."
    else:
        console = f"Review flags in the moderators' console: {console_url}/"
    latest = "\nThe latest flags of this consumer: /flags.json, or dupwatch top in a terminal." if has_json else ""
    return f"{console}{latest}\n"


def _json(latest_flags: LatestFlags, console_url: str | None, request: PageRequest) -> PageResponse:
    latest = latest_flags.latest()
    flags = latest.flags[: _limit(request.query.get("limit", ""))]
    body = FlagsJson(
        began_at=latest.began_at,
        seen=latest.seen,
        flags_max=latest_flags.flags_max,
        trouble=latest.trouble,
        flags=tuple(_flag(flag, console_url) for flag in flags),
        returning=tuple(ReturnedJson(*returned) for returned in latest.returning),
    )
    return PageResponse(HTTPStatus.OK, _JSON, msgspec.json.encode(body) + b"\n")


def _limit(text: str) -> int | None:
    return int(text[:_DIGITS_MAX]) if text.isascii() and text.isdigit() else None


def _flag(flag: Flag, console_url: str | None) -> FlagJson:
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
        href=None if console_url is None else _href(console_url, verdict),
        article=_article_json(flag.article),
        original=_article_json(flag.original),
    )


def _href(console_url: str, verdict: Verdict) -> str:
    """Return the address of a flag in the console."""
    return f"{console_url}/flags?{urlencode({'id': verdict.id, 'version': verdict.version or ''})}"


def _article_json(article: FlagArticle | None) -> FlagArticleJson | None:
    if article is None:
        return None
    record = article.record
    return FlagArticleJson(
        title=cut(record.title, _TITLE_CHARS_MAX),
        source=record.source,
        url=safe_url(record.url) or "",
        lang=record.lang,
        arrived_at=article.arrived_at,
        ended_at=article.ended_at,
    )
