"""Watches running consumers over HTTP. Consumers that do not answer are shown as away."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from consumer.doctor.pages_client import FetchedPage, PagesClient, PageUnavailable
from consumer.doctor.scrapes import Interval, Scrape, parse_scrape

_METRIC_PREFIX: Final = "dupwatch_"


class ShownArticle(msgspec.Struct, frozen=True):
    """The fields of a flag's article that are shown."""

    title: str = ""
    source: str = ""


class ShownFlag(msgspec.Struct, frozen=True):
    """The fields of a flag in ``/flags.json`` that are shown."""

    id: str
    duplicate_of: str
    distance: int
    similarity: float | None
    decided_at: str
    shared_keywords: tuple[str, ...] = ()
    released: bool = False
    article: ShownArticle | None = None
    original: ShownArticle | None = None


class ShownText(msgspec.Struct, frozen=True):
    """A text that came back, as in ``/flags.json``."""

    id: str
    first: str
    last: str
    times: int


class _Flags(msgspec.Struct, frozen=True):
    flags: tuple[ShownFlag, ...]
    returning: tuple[ShownText, ...] = ()


class _Readiness(msgspec.Struct, frozen=True):
    reasons: tuple[str, ...] = ()


class ConsumerStatus(NamedTuple):
    """The state of one consumer, from its latest answers.

    If the consumer does not answer, ``away`` says why, and ``interval`` is None. ``reasons`` say why it is not ready.
    ``flags`` are its latest flags, or None if it does not serve them. ``returning`` has the texts that came back most
    often.
    """

    name: str
    interval: Interval | None
    ready: bool
    reasons: tuple[str, ...]
    flags: tuple[ShownFlag, ...] | None
    away: str | None = None
    returning: tuple[ShownText, ...] = ()


class WatchedConsumer:
    """A consumer to watch; ``clock`` returns seconds since 1970."""

    def __init__(self, name: str, client: PagesClient, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self._client = client
        self._clock = clock
        self._last: Scrape | None = None

    def look(self) -> ConsumerStatus:
        """Fetch the pages and return the status. Never raises because of the consumer or the network."""
        try:
            interval = self._interval()
        except PageUnavailable as error:
            return ConsumerStatus(self.name, None, ready=False, reasons=(), flags=None, away=str(error))
        ready, reasons = self._readiness()
        page = self._flags()
        if page is None:
            return ConsumerStatus(self.name, interval, ready, reasons, None)
        return ConsumerStatus(self.name, interval, ready, reasons, page.flags, returning=page.returning)

    def _interval(self) -> Interval:
        page = self._client.get("/metrics")
        if page.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise PageUnavailable("wrong user name or password")
        if page.status != HTTPStatus.OK:
            raise PageUnavailable(f"/metrics answers with status {page.status}")
        try:
            scrape = parse_scrape(page.body.decode(), self._clock())
        except ValueError as error:
            raise PageUnavailable(str(error)) from error
        if not any(name.startswith(_METRIC_PREFIX) for name in scrape.samples):
            raise PageUnavailable("/metrics does not have the metrics of dupwatch")
        before, self._last = self._last, scrape
        return Interval(before, scrape)

    def _readiness(self) -> tuple[bool, tuple[str, ...]]:
        page = self._page("/readyz")
        if page is None:
            return False, ("/readyz does not answer",)
        reasons: tuple[str, ...] = ()
        # Without a password, the page may return only its status.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            reasons = msgspec.json.decode(page.body, type=_Readiness).reasons
        return page.status == HTTPStatus.OK, reasons

    def _flags(self) -> _Flags | None:
        page = self._page("/flags.json")
        if page is None or page.status != HTTPStatus.OK:
            return None
        try:
            return msgspec.json.decode(page.body, type=_Flags)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _page(self, path: str) -> FetchedPage | None:
        try:
            return self._client.get(path)
        except PageUnavailable:
            return None


def look_at_all(watched: Sequence[WatchedConsumer], pool: ThreadPoolExecutor) -> list[ConsumerStatus]:
    """Look at all consumers in parallel, so that several silent ones take no longer than one."""
    return list(pool.map(WatchedConsumer.look, watched))


def latest_flags(statuses: Sequence[ConsumerStatus], flags_max: int) -> list[ShownFlag] | None:
    """Return up to ``flags_max`` latest flags of all consumers, newest first; None if no consumer serves flags."""
    pages = [consumer.flags for consumer in statuses if consumer.flags is not None]
    if not pages:
        return None
    flags = [flag for page in pages for flag in page]
    return sorted(flags, key=lambda flag: flag.decided_at, reverse=True)[:flags_max]


def returning_texts(statuses: Sequence[ConsumerStatus], texts_max: int) -> list[ShownText]:
    """Return up to ``texts_max`` texts that came back most often, each with its highest count at any consumer."""
    texts: dict[tuple[str, str], ShownText] = {}
    for text in (text for consumer in statuses for text in consumer.returning):
        known = texts.setdefault((text.id, text.first), text)
        if text.times > known.times:
            texts[text.id, text.first] = text
    return sorted(texts.values(), key=lambda text: (-text.times, text.first, text.id))[:texts_max]
