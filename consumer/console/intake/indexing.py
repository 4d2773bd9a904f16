"""Maintains the word index: adds new flags, merges parts, and removes flags that are decided or have no stored article.

Several consoles may share a database. Each claims its work. If a console does not finish, its claim expires, and
another console takes over.
"""

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from consumer.console.context import ArticleReader
from consumer.console.intake.background import BackgroundWork, WorkSchedule
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.hooks import Hooks
from consumer.reviews import queue
from consumer.reviews.database import Connection, Database
from consumer.reviews.portable import portions
from consumer.reviews.word_index import parts, waiting
from consumer.reviews.word_index.pages import Numbers
from consumer.reviews.word_index.parts import IndexPart
from consumer.reviews.word_index.waiting import IndexClaim
from consumer.reviews.word_index.words import WordCutter

log = logging.getLogger("dupwatch")

_INDEX_S: Final = 2.0
_CLEAR_S: Final = 60.0
TEXTS_MAX: Final = 50
"""The maximum number of texts in memory at a time."""
CHECKED_MAX: Final = 500
"""The maximum number of articles to read at a time if their texts are not needed."""


class IndexerDependencies(NamedTuple):
    """The dependencies of an indexer. ``cutter`` is None if texts are not indexed.

    ``proceed`` is called between steps. It may raise an error to stop the work.
    """

    database: Database
    articles: ArticleReader
    cutter: WordCutter | None
    now_ms: Callable[[], int]
    proceed: Callable[[], None]


class Indexer:
    """An indexer of the words of waiting flags, which also maintains the index. Used by one thread."""

    def __init__(self, dependencies: IndexerDependencies) -> None:
        self._dependencies = dependencies
        # After an upgrade or a restore from a backup, some flags may be neither waiting nor indexed.
        self._are_all_known = False

    def work(self) -> bool:
        """Index some flags or maintain the index, and return whether there may be more to do.

        Raises ``StoreError``, ``StoreMismatch``, ``DatabaseUnavailable`` and the errors of ``proceed``.
        """
        if not self._are_all_known:
            self._find_missing()
            self._are_all_known = True
        has_more = self._index()
        # Merge between batches too, since a search reads every part.
        return self._merge() or has_more or self._check()

    def _find_missing(self) -> None:
        with self._dependencies.database.read_connection() as connection:
            known = waiting.indexed_or_waiting_ids(connection)
        after_id: int | None = 0
        while after_id is not None:
            self._dependencies.proceed()
            after_id = self._dependencies.database.write(partial(waiting.queue_missing, after_id=after_id, known=known))

    def _index(self) -> bool:
        now_ms = self._dependencies.now_ms()
        with self._dependencies.database.read_connection() as connection:
            if not waiting.is_any_due(connection, now_ms):
                return False
        claimed = self._dependencies.database.write(lambda connection: waiting.claim(connection, now_ms))
        if not claimed.flag_ids:
            return False
        try:
            texts, missing = self._words_of(claimed)
        except BaseException:
            self._dependencies.database.write(lambda connection: waiting.give_back(connection, claimed))
            raise

        def store(connection: Connection) -> int:
            parts.add_part(connection, texts, now_ms)
            return waiting.end(connection, claimed, missing, now_ms)

        given_up = self._dependencies.database.write(store)
        if given_up:
            log.info("%d flags can only be found by id and source: the store does not have their texts", given_up)
        return len(claimed.flag_ids) == waiting.CLAIMED_MAX

    def _words_of(self, claimed: IndexClaim) -> tuple[dict[int, set[int]], list[int]]:
        """Return the words of each claimed flag by its id, and the ids of flags whose texts are not in the store."""
        cutter = self._dependencies.cutter
        assert cutter is not None  # noqa: S101  # otherwise nothing is indexed
        texts: dict[int, set[int]] = {}
        missing: list[int] = []
        for flags in portions(claimed.flags, TEXTS_MAX):
            self._dependencies.proceed()
            views = self._dependencies.articles.read([(flag.article_id, flag.version) for flag in flags])
            for flag, view in zip(flags, views, strict=True):
                if view is None or view.body is None:
                    missing.append(flag.flag_id)
                else:
                    texts[flag.flag_id] = cutter.words_of(view.title, view.body)
        return texts, missing

    def _merge(self) -> bool:
        """Delete parts that were replaced a while ago, and merge some others.

        Return False if there are none to merge, or if another console has claimed them.
        """
        database, now_ms = self._dependencies.database, self._dependencies.now_ms()
        with database.read_connection() as connection:
            has_replaced = parts.has_replaced(connection, now_ms)
        if has_replaced:
            database.write(lambda connection: parts.delete_replaced(connection, now_ms))
        with database.read_connection() as connection:
            part_ids = parts.parts_to_merge(parts.parts(connection), now_ms)
        if not part_ids:
            return False
        until_ms = self._dependencies.database.write(lambda connection: parts.claim_parts(connection, part_ids, now_ms))
        if until_ms is None:
            return False
        with database.read_connection() as connection:
            merge = parts.begin_merge(connection, part_ids)

        def read(part_id: int, low: int, high: int) -> list[bytes]:
            self._dependencies.proceed()
            with database.read_connection() as connection:
                return list(parts.pages_between(connection, part_id, low, high))

        pages = list(parts.merged_pages(merge, read))
        return self._dependencies.database.write(
            lambda connection: parts.replace_parts(connection, merge, pages, until_ms, now_ms)
        )

    def _check(self) -> bool:
        """Check the part that was checked longest ago: remove flags that were decided or have no stored article.

        Return False if no part is due, or if another console has claimed it.
        """
        now_ms = self._dependencies.now_ms()
        with self._dependencies.database.read_connection() as connection:
            found = parts.parts(connection)
        due = [part for part in found if part.checked_ms <= now_ms - parts.CHECK_MS and part.claimed_ms <= now_ms]
        if not due:
            return False
        part = min(due, key=lambda each: each.checked_ms)
        until_ms = self._dependencies.database.write(
            lambda connection: parts.claim_parts(connection, [part.part_id], now_ms)
        )
        if until_ms is None:
            return False
        gone = self._flags_without_articles(part)
        self._dependencies.database.write(
            lambda connection: parts.finish_check(connection, part.part_id, gone, until_ms, now_ms)
        )
        return True

    def _flags_without_articles(self, part: IndexPart) -> Numbers:
        """Return the ids of a part's flags whose articles the store no longer has."""
        with self._dependencies.database.read_connection() as connection:
            flag_ids = parts.ids_of(connection, part.part_id)
        gone: list[int] = []
        for portion in portions(flag_ids[flag_ids > 0].tolist(), CHECKED_MAX):
            self._dependencies.proceed()
            with self._dependencies.database.read_connection() as connection:
                flags = queue.flags(connection, portion)
            views = self._dependencies.articles.read([(flag.article_id, flag.version) for flag in flags], bodies=False)
            gone += [flag.flag_id for flag, view in zip(flags, views, strict=True) if view is None]
        return np.array(gone, np.int64)


def index_background(
    dependencies: IndexerDependencies, progress: ThreadProgress, hooks: Hooks, stopping: threading.Event
) -> BackgroundWork:
    """Return the background work that maintains the word index, or deletes the index if there is no cutter."""
    indexer = Indexer(dependencies)

    def maintain() -> bool:
        with progress.at_work():
            return clear_index(dependencies.database) if dependencies.cutter is None else indexer.work()

    schedule = WorkSchedule(_CLEAR_S, "database") if dependencies.cutter is None else WorkSchedule(_INDEX_S, "store")
    return BackgroundWork("search", maintain, schedule, hooks, stopping)


def clear_index(database: Database) -> bool:
    """Delete the word index. Return False, since nothing remains to be done. Raises ``DatabaseUnavailable``."""
    with database.read_connection() as connection:
        is_clear = waiting.is_clear(connection)
    if not is_clear:
        database.write(waiting.clear)
    return False
