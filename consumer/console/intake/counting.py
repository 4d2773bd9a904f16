"""Counts what waits, for metrics: of the whole queue, so every process of a console says the same."""

from collections.abc import Callable
from typing import Final

from consumer.reviews import queue, sending
from consumer.reviews.database import Database
from consumer.telemetry.metrics.console import QueueCounted

_MS_PER_S: Final = 1_000


def count_queue(database: Database, now_ms: int, report: Callable[[object], None]) -> bool:
    """Report how many flags are in each state, and what is due. Raises ``DatabaseUnavailable``; returns False."""
    with database.reading() as connection:
        counts, backlog = queue.counts(connection), sending.backlog(connection, now_ms)
    oldest_ms = now_ms if counts.oldest_open_ms is None else counts.oldest_open_ms
    report(
        QueueCounted(
            flags={
                "open": counts.open,
                "skipped": counts.skipped,
                "right": counts.right,
                "wrong": counts.wrong,
                "released": counts.released,
            },
            near_misses_open=counts.near_misses_open,
            oldest_open_s=max(0, now_ms - oldest_ms) / _MS_PER_S,
            releases_due=backlog.due,
        )
    )
    return False
