"""Reads from the store what the console needs of flags: all of them, or the sources of their articles."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from consumer.console.context import Articles
from consumer.judge.events import reference_in
from consumer.model.verdict import Released, Verdict, decode_verdict
from consumer.reviews.database import Database
from consumer.reviews.flag_events import FlagEvent, FlagSources, set_sources, sources_missing
from storage.interface import Store
from storage.records import Stored

ROWS: Final = 200
"""Flags whose sources are filled in at once."""

_Pair = tuple[str, str]
BATCH: Final = 500
"""Flags that are read and stored at once."""


def sources_of(articles: Articles, verdicts: Sequence[Verdict]) -> list[FlagEvent]:
    """Return events with the sources of both articles, in one read.

    What the store does not hold stays unknown here. Raises ``StoreError`` and ``StoreMismatch``.
    """
    pairs = [(_copy(verdict), _original(verdict)) for verdict in verdicts]
    names = _names(articles, [pair for both in pairs for pair in both if pair is not None])
    return [
        FlagEvent(verdict, None if copy is None else names.get(copy), None if original is None else names.get(original))
        for verdict, (copy, original) in zip(verdicts, pairs, strict=True)
    ]


def fill_in(database: Database, articles: Articles) -> bool:
    """Fill in sources that were not known; return whether there may be more.

    An article that the store does not hold any more has no source. Raises ``StoreError``, ``StoreMismatch`` and
    ``DatabaseUnavailable``.
    """
    with database.reading() as connection:
        missing = sources_missing(connection, ROWS)
    if not missing:
        return False
    pairs = [
        pair for row in missing for pair in ((row.article_id, row.version), (row.original_id, row.original_version))
    ]
    names = _names(articles, pairs)
    rows = [
        FlagSources(
            row.flag_id,
            names.get((row.article_id, row.version), ""),
            names.get((row.original_id, row.original_version), ""),
        )
        for row in missing
    ]
    database.written(lambda connection: set_sources(connection, rows))
    return len(missing) == ROWS


def _names(articles: Articles, pairs: Sequence[_Pair]) -> dict[_Pair, str]:
    wanted = list(dict.fromkeys(pairs))
    if not wanted:
        return {}
    views = articles.read(wanted, bodies=False)
    return {pair: view.source for pair, view in zip(wanted, views, strict=True) if view is not None}


def _copy(verdict: Verdict) -> _Pair | None:
    return None if verdict.version is None else (verdict.id, verdict.version)


def _original(verdict: Verdict) -> _Pair | None:
    if isinstance(verdict.released, Released):
        return (verdict.released.duplicate_of, verdict.released.duplicate_of_version)
    if verdict.duplicate_of is None or verdict.duplicate_of_version is None:
        return None
    return (verdict.duplicate_of, verdict.duplicate_of_version)


def flags_in(store: Store) -> Iterator[list[FlagEvent]]:
    """Yield the flags and releases of a store, batch by batch; may take minutes. Raises the store's errors."""
    flagged = (found for found in map(_flagged, store.scan()) if found is not None)
    while batch := list(islice(flagged, BATCH)):
        references = [reference for _, _, reference in batch]
        originals = {
            original.record.reference: original.record.source
            for original in store.read(list(dict.fromkeys(references)))
            if original is not None
        }
        yield [FlagEvent(verdict, source, originals.get(reference, "")) for verdict, source, reference in batch]


def _flagged(stored: object) -> tuple[Verdict, str, bytes] | None:
    if not isinstance(stored, Stored) or stored.verdict is None:
        return None
    verdict = decode_verdict(stored.verdict)
    original = _original(verdict)
    return None if original is None else (verdict, stored.record.source, reference_in(*original))
