"""What is known of running consumers from outside: asked again and again, and those that are away are said to be."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from consumer.top.client import Page, PagesClient, Unanswered
from consumer.top.scrapes import Interval, Scrape, parse_scrape

_OURS: Final = "dupwatch_"


class Side(msgspec.Struct, frozen=True):
    """What is told of one of the two articles of a flag."""

    title: str = ""
    source: str = ""


class ShownFlag(msgspec.Struct, frozen=True):
    """A flag as ``/flags.json`` has it, of which this is what is shown here."""

    id: str
    duplicate_of: str
    distance: int
    similarity: float | None
    decided_at: str
    shared_keywords: tuple[str, ...] = ()
    released: bool = False
    article: Side | None = None
    original: Side | None = None


class _Flags(msgspec.Struct, frozen=True):
    flags: tuple[ShownFlag, ...]


class _Readiness(msgspec.Struct, frozen=True):
    reasons: tuple[str, ...] = ()


class Seen(NamedTuple):
    """One consumer as it was found.

    ``interval`` is None where it is ``away``, for a reason. ``reasons`` are why it is not ready, ``flags`` its latest,
    None where it has no page of them.
    """

    name: str
    interval: Interval | None
    ready: bool
    reasons: tuple[str, ...]
    flags: tuple[ShownFlag, ...] | None
    away: str | None = None


class Watched:
    """One consumer that is watched; ``clock`` gives seconds since 1970."""

    def __init__(self, name: str, client: PagesClient, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self._client = client
        self._clock = clock
        self._last: Scrape | None = None

    def look(self) -> Seen:
        """Ask for its pages; never raises for what a consumer or its network does."""
        try:
            interval = self._measured()
        except Unanswered as error:
            return Seen(self.name, None, ready=False, reasons=(), flags=None, away=str(error))
        ready, reasons = self._readiness()
        return Seen(self.name, interval, ready, reasons, self._flags())

    def _measured(self) -> Interval:
        page = self._client.get("/metrics")
        if page.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise Unanswered("it wants another name and password")
        if page.status != HTTPStatus.OK:
            raise Unanswered(f"its metrics are answered with {page.status}")
        try:
            scrape = parse_scrape(page.body.decode(), self._clock())
        except ValueError as error:
            raise Unanswered(str(error)) from error
        if not any(name.startswith(_OURS) for name in scrape.samples):
            raise Unanswered("its metrics are not dupwatch's")
        before, self._last = self._last, scrape
        return Interval(before, scrape)

    def _readiness(self) -> tuple[bool, tuple[str, ...]]:
        page = self._asked("/readyz")
        if page is None:
            return False, ("it does not say",)
        reasons: tuple[str, ...] = ()
        # With a password the page may give no more than its status.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            reasons = msgspec.json.decode(page.body, type=_Readiness).reasons
        return page.status == HTTPStatus.OK, reasons

    def _flags(self) -> tuple[ShownFlag, ...] | None:
        page = self._asked("/flags.json")
        if page is None or page.status != HTTPStatus.OK:
            return None
        try:
            return msgspec.json.decode(page.body, type=_Flags).flags
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _asked(self, path: str) -> Page | None:
        try:
            return self._client.get(path)
        except Unanswered:
            return None


def look_at_all(watched: Sequence[Watched], pool: ThreadPoolExecutor) -> list[Seen]:
    """All of them at once, so that one that does not answer delays the others by one wait at most."""
    return list(pool.map(Watched.look, watched))


def latest(seen: Sequence[Seen], flags_max: int) -> list[ShownFlag] | None:
    """The latest flags of all consumers together, newest first; None where nobody has a page of them."""
    pages = [one.flags for one in seen if one.flags is not None]
    if not pages:
        return None
    flags = [flag for page in pages for flag in page]
    return sorted(flags, key=lambda flag: flag.decided_at, reverse=True)[:flags_max]
