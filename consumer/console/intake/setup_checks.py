"""Warns if the console's database, store or file of flags probably does not belong to the consumers."""

import logging
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from consumer.console.context import ArticleReader, SetupWarnings, SinkFault
from consumer.console.intake.event_reading import NEWER_EVENT
from consumer.console.intake.event_sending import EVENTS_THREAD
from consumer.model.hooks import Outage
from consumer.reviews import queue
from consumer.reviews.database import Database
from consumer.reviews.queue import Filters
from storage.files import opened_regular_file

log = logging.getLogger("dupwatch")

CHECK_S: Final = 30.0
"""The seconds between two checks of whether the store has articles of the latest flags."""
CHECKED_FLAGS_MAX: Final = 50
"""The maximum number of flags whose articles are checked, latest first."""
_HEAD_BYTES: Final = 256
_EVENT: Final = re.compile(rb'\s*\{\s*"schema"\s*:\s*"dupwatch\.')
"""The beginning of every event that dupwatch writes."""


class FlagTopic(NamedTuple):
    """The topic of flags, the console's group, and a function that returns whether the group has read any flags.

    ``has_been_read`` raises ``SourceError`` while the brokers do not answer.
    """

    name: str
    group: str
    has_been_read: Callable[[], bool]


class SetupChecks:
    """Checks of the setup, run by two threads, and their latest results.

    ``sink`` is the topic or the file of the flags. ``store_url`` is for the log. ``clock_s`` is monotonic.
    ``unwritable`` returns a path that releases need but this process cannot write to, or None.
    """

    def __init__(
        self,
        database: Database,
        articles: ArticleReader,
        sink: FlagTopic | Path,
        store_url: str,
        clock_s: Callable[[], float] = time.monotonic,
        *,
        unwritable: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._database = database
        self._articles = articles
        self._sink = sink
        self._store_url = store_url
        self._clock_s = clock_s
        self._unwritable = unwritable
        self._store_checked_s = -CHECK_S
        self._topic_is_checked = False
        self._was_read_before = False
        self._missing_articles_of = 0
        self._waiting_intakes: set[str] = set()
        self._unsent_reason = ""

    def note_outage(self, outage: Outage) -> None:
        """Note that events wait for the sink, or that an intake waits for a newer console, and when this ends."""
        if (outage.part, outage.reporter) == ("sink", EVENTS_THREAD):
            self._unsent_reason = outage.reason or ""
        if not outage.reporter.startswith(NEWER_EVENT):
            return
        if outage.reason is None:
            self._waiting_intakes.discard(outage.reporter)
        else:
            self._waiting_intakes.add(outage.reporter)

    def warnings(self) -> SetupWarnings:
        """Return the current warnings."""
        fault = sink_fault(self._sink) if isinstance(self._sink, Path) else None
        return SetupWarnings(
            self._was_read_before,
            self._missing_articles_of,
            self._unwritable(),
            fault,
            needs_update=bool(self._waiting_intakes),
            unsent_reason=self._unsent_reason,
        )

    def check_topic(self) -> bool:
        """Check once whether the group has read flags although the database has none.

        Returns False, because no work is left for ``BackgroundWork``. Raises ``DatabaseUnavailable`` and
        ``SourceError``; after these errors, the next call checks again.
        """
        topic = self._sink
        if isinstance(topic, Path) or self._topic_is_checked:
            # A file's position is stored in the database itself, so it cannot be ahead of the flags.
            return False
        # Ask the database again at the end: flags are stored there before their offsets are committed.
        self._was_read_before = not self._has_flags() and topic.has_been_read() and not self._has_flags()
        self._topic_is_checked = True
        if self._was_read_before:
            log.warning(
                "The group %s has read flags of %s before, but this database has none. To read them again, stop the "
                "consoles of the group, then start this one once with --rebuild sink.",
                topic.group,
                topic.name,
            )
        return False

    def check_store(self) -> None:
        """Check at most every ``CHECK_S`` seconds whether the store has any article of the latest flags.

        As long as there are no flags, every call looks for some. Raises ``DatabaseUnavailable``, ``StoreError`` and
        ``StoreMismatch``.
        """
        if self._clock_s() - self._store_checked_s < CHECK_S:
            return
        with self._database.read_connection() as connection:
            flags = queue.page(connection, Filters(state=None, kind="flag"), "newest", CHECKED_FLAGS_MAX).rows
        pairs = [(flag.article_id, flag.version) for flag in flags]
        pairs += [(flag.original_id, flag.original_version) for flag in flags]
        is_missing = all(view is None for view in self._articles.read(pairs, bodies=False))
        before, self._missing_articles_of = self._missing_articles_of, len(flags) if is_missing else 0
        if self._missing_articles_of and not before:
            log.warning(
                "The store %s has none of the articles of the latest %d flags. Either all have left the window, or "
                "this is not the store of these flags: compare store.url with the consumers' setting.",
                self._store_url,
                self._missing_articles_of,
            )
        if flags:
            self._store_checked_s = self._clock_s()

    def _has_flags(self) -> bool:
        with self._database.read_connection() as connection:
            return bool(queue.page(connection, Filters(state=None, kind="flag"), "newest", 1).rows)


def sink_fault(path: Path) -> SinkFault | None:
    """Return why a file yields no flags, or None if it begins with an event or is still too short to tell."""
    try:
        with opened_regular_file(path) as (descriptor, _):
            head = os.pread(descriptor, _HEAD_BYTES, 0)
    except FileNotFoundError:
        return SinkFault("missing", path)
    except OSError:
        return SinkFault("unreadable", path)
    has_begun = b"\n" in head or len(head) == _HEAD_BYTES
    return SinkFault("foreign", path) if has_begun and not _EVENT.match(head) else None
