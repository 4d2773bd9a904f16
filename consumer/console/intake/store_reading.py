"""Reads the store: the verdicts that become entries of the queue, or the sources that are missing from flags."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from consumer.console.context import ArticleReader
from consumer.console.intake.intake import IntakeParts
from consumer.model.bank_match import is_denied
from consumer.model.verdict import EndedBefore, Released, Verdict, decode_verdict
from consumer.reviews.database import Connection
from consumer.reviews.flag_events import FlagSources, set_sources, sources_missing
from consumer.reviews.ranking.preferred import MemberChanges
from consumer.reviews.ranking.preferring import refresh_preferred
from consumer.reviews.standing.standing_decisions import StandingOutcome
from storage.interface import Store
from storage.records import StoredVersion

BATCH_MAX: Final = 500
"""The maximum number of flags to read at once."""


def fill_in_sources(parts: IntakeParts, articles: ArticleReader) -> bool:
    """Read and store the sources of flags whose events do not name them; return whether there may be more.

    Flags that match a standing decision about their sources are then decided. An article that is no longer in the
    store gets the source "". Raises ``StoreError``, ``StoreMismatch`` and ``DatabaseUnavailable``.
    """
    with parts.database.read_connection() as connection:
        missing = sources_missing(connection, BATCH_MAX)
    if not missing:
        return False
    copies = [(row.article_id, row.version) for row in missing]
    originals = [(row.original_id, row.original_version) for row in missing]
    versions = list(dict.fromkeys([*copies, *originals]))
    views = zip(versions, articles.read(versions, bodies=False), strict=True)
    names = {pair: "" if view is None else view.source for pair, view in views}
    rows = [
        FlagSources(row.flag_id, names[copy], names[original])
        for row, copy, original in zip(missing, copies, originals, strict=True)
    ]

    def store_sources(connection: Connection) -> Mapping[StandingOutcome, int]:
        stories = set_sources(connection, rows)
        # Decide first: an article whose flag is decided to be wrong is not a copy, so it cannot be preferred.
        decided = parts.decide_new(connection, [row.flag_id for row in rows], are_stored=True)
        refresh_preferred(connection, MemberChanges(stories=stories), parts.now_ms())
        return decided

    parts.report_decided(parts.database.write(store_sources))
    return len(missing) == BATCH_MAX


def entry_verdicts(store: Store) -> Iterator[list[Verdict]]:
    """Yield the verdicts in a store that become entries, in batches; may take minutes.

    Raises the store's errors.
    """
    flags = (verdict for verdict in _verdicts(store) if _makes_entries(verdict))
    while batch := list(islice(flags, BATCH_MAX)):
        yield batch


def _verdicts(store: Store) -> Iterator[Verdict]:
    for stored in store.scan():
        if isinstance(stored, StoredVersion) and stored.verdict is not None:
            yield decode_verdict(stored.verdict)


def _makes_entries(verdict: Verdict) -> bool:
    is_flag = verdict.outcome == "duplicate" or isinstance(verdict.released, Released)
    return is_flag or isinstance(verdict.ended_before, EndedBefore) or is_denied(verdict)
