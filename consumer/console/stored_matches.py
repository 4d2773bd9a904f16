"""Searches the store for articles that repeat an item or a text, and compares two articles.

Only one page searches at a time, and each search has a time limit.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, NamedTuple

from consumer.banks.bank import Banks
from consumer.banks.known_texts import KnownTexts
from consumer.console.bank_access import BankAccess
from consumer.console.bank_texts import BankComparisonState, BankTexts
from consumer.console.faults import N_, PageError
from consumer.fingerprint import Engine
from consumer.judge.comparison import PairComparison
from consumer.judge.comparison import compare as compare_pair
from consumer.judge.settings import JudgeSettings
from consumer.model.article import Article
from consumer.model.errors import StoreMismatch
from consumer.store_tools.bank_matches import BankLookUp, ComparableStore, StoredMatches, compare
from consumer.store_tools.explanation import ComparedArticle
from consumer.store_tools.inspection import id_hash_of, last_links, version_in
from consumer.store_tools.text_query import Matcher, QueriedStore, QueriedText, TextQuery, unstored_versions
from consumer.text.visible import one_line
from consumer.workers.engines import BankAwareEngine
from storage.interface import Store
from storage.records import StoredVersion, Version

log = logging.getLogger("dupwatch")

MATCHES_MAX: Final = 100
"""The maximum number of articles that a page lists."""
COMPARED_MAX: Final = 500
"""The maximum number of flagged articles that are compared with an item, and released by one decision."""
LOOK_UP_S: Final = 10.0
"""The time limit of one search."""
WAIT_S: Final = 5.0
"""How long a request waits for its turn."""
ID_CHARS_SHOWN_MAX: Final = 80
"""The maximum number of characters of an id in an error."""
_VERSIONS_READ_MAX: Final = 64
"""The maximum number of versions to read at a time."""


class NamedVersion(NamedTuple):
    """The id and version of an article. If ``version`` is None, the latest version is meant."""

    id: str
    version: str | None = None


class ItemMatches(NamedTuple):
    """The kept articles that repeat an item, and the settings of the store."""

    matches: StoredMatches
    settings: JudgeSettings


class TextMatches(NamedTuple):
    """The articles and items that a text would repeat if it arrived now, with the store's settings.

    ``banks`` says whether the text was also compared with the banks, or why not.
    """

    queried: QueriedText
    settings: JudgeSettings
    banks: BankComparisonState


class ComparedPair(NamedTuple):
    """Two articles, the later one first, and whether each condition for a copy holds.

    ``is_one_story``: the chains of duplicates of both end at the same kept article.
    """

    article: ComparedArticle
    original: ComparedArticle
    comparison: PairComparison
    is_one_story: bool


class MatchSearch:
    """A search for stored articles that repeat items or texts, which also compares two articles. Thread-safe.

    Methods raise ``PageError`` if they take too long or cannot compare. They also raise the errors of ``access`` and of
    the store.
    """

    def __init__(
        self,
        access: Callable[[], QueriedStore],
        now_ms: Callable[[], int],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._now_ms = now_ms
        self._now_s = now_s
        self._lock = threading.Lock()
        self._bank_texts = BankTexts(now_ms)

    def find_kept(self, banks: Banks) -> ItemMatches:
        """Return the kept articles in the window that repeat an item of these banks, at most ``MATCHES_MAX``."""
        with self._exclusive() as (queried, proceed):
            opened = _require_sketches(queried.compared)
            return ItemMatches(BankLookUp(opened, self._now_ms, proceed).find(banks, MATCHES_MAX), opened.settings)

    def query(self, text: Article, access: BankAccess | None) -> TextMatches:
        """Return the stored articles and the bank items that a text would repeat."""
        with self._exclusive() as (queried, proceed):
            opened, latest = queried.compared, None if access is None else access.latest
            items = self._bank_texts.known(opened, latest, has_banks=access is not None)
            proceed()
            engine: Engine = opened.engine
            with_matches: Matcher = _without_matches
            if items.known is not None:
                known = items.known
                engine, with_matches = BankAwareEngine(engine, lambda: known.known_shingles), known.with_matches
            query = queried.queries(with_matches)
            (found,) = TextQuery(opened.store, engine, opened.builder, query, self._now_ms).answer([text])
            return TextMatches(found, opened.settings, items.state)

    def pair(self, one: NamedVersion, other: NamedVersion | Article) -> ComparedPair:
        """Compare two stored articles, or one with a text, which counts as the later one.

        Raises ``PageError`` if an article is not stored.
        """
        with self._exclusive() as (queried, proceed):
            opened = queried.compared
            store = opened.store
            a = _read_article(store, one)
            proceed()
            if isinstance(other, Article):
                (version,) = unstored_versions(opened.engine, opened.builder, [other], self._now_ms())
                earlier, later = a, ComparedArticle(StoredVersion(version.record, None, None), version.body, ())
                is_one_story = False
            else:
                b = _read_article(store, other)
                earlier, later = sorted((a, b), key=lambda side: side.stored.record.arrival)
                ends = [link.stored.record.reference for link in last_links(store, [a.stored, b.stored])]
                is_one_story = ends[0] == ends[1]
            (comparison,) = compare_pair(later.stored, [earlier.stored], opened.settings)
            return ComparedPair(later, earlier, comparison, is_one_story)

    def references_repeating(self, banks: Banks, references: Sequence[bytes]) -> frozenset[bytes]:
        """Return those of the ``references`` whose versions are in force and repeat an item of these banks."""
        with self._exclusive() as (queried, proceed):
            opened = _require_sketches(queried.compared)
            known = KnownTexts(opened.engine, opened.settings, self._now_ms)
            known.replace([*banks.banks.values(), *banks.items_at(self._now_ms())])
            found: set[bytes] = set()
            for start in range(0, len(references), _VERSIONS_READ_MAX):
                proceed()
                read = opened.store.read(references[start : start + _VERSIONS_READ_MAX])
                current = [stored for stored in read if stored is not None and stored.ends_at is None]
                found.update(
                    match.stored.record.reference for match in compare(opened.store, known, current).stored_matches()
                )
            return frozenset(found)

    def _open_store(self) -> QueriedStore:
        try:
            return self._access()
        except StoreMismatch as error:
            # The store answers, so trying again would not help.
            log.warning("The store cannot be searched: %s", error)
            message = N_("The store cannot be searched. The console's log says why.")
            raise PageError(HTTPStatus.CONFLICT, message) from error

    @contextmanager
    def _exclusive(self) -> Iterator[tuple[QueriedStore, Callable[[], None]]]:
        """Wait until no other page searches.

        Yield the store, and a function that raises ``PageError`` after the time limit.
        """
        if not self._lock.acquire(timeout=WAIT_S):
            message = N_("The store is still being searched for somebody else. Try again in a few seconds.")
            raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_s=round(WAIT_S))
        try:
            until_s = self._now_s() + LOOK_UP_S

            def proceed() -> None:
                if self._now_s() > until_s:
                    raise _too_slow()

            yield self._open_store(), proceed
        finally:
            self._lock.release()


def _without_matches(versions: Sequence[Version]) -> Sequence[Version]:
    """Return the versions unchanged, for searches that do not compare with banks."""
    return versions


def _require_sketches(opened: ComparableStore) -> ComparableStore:
    if not opened.settings.sketched:
        message = N_("The store has no sketches, so nothing can be compared with bank items.")
        raise PageError(HTTPStatus.CONFLICT, message)
    return opened


def _read_article(store: Store, named: NamedVersion) -> ComparedArticle:
    """Read an article. Raises ``PageError`` if it is not in the store."""
    history = store.history(id_hash_of(named.id))
    stored = version_in(history, named.version)
    if stored is None:
        message = N_("The store has no article %(id)s. Look it up to see possible reasons.")
        if named.version is not None:
            message = N_("The store no longer has this version of the article %(id)s.")
        raise PageError(HTTPStatus.NOT_FOUND, message, id=one_line(named.id, ID_CHARS_SHOWN_MAX))
    return ComparedArticle(stored, store.bodies([stored.record.reference])[0], history)


def _too_slow() -> PageError:
    message = N_(
        "The search was stopped after %(seconds)s s. Try again, or use dupwatch bank matches or dupwatch "
        "query, which have no time limit."
    )
    return PageError(HTTPStatus.SERVICE_UNAVAILABLE, message, seconds=f"{LOOK_UP_S:g}", retry_s=round(WAIT_S))
