"""Reads all flags and releases from the store, for a console whose database or topic is gone."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from consumer.judge.events import reference_in
from consumer.model.verdict import Released, Verdict, decode_verdict
from consumer.reviews.flag_events import FlagEvent
from storage.interface import Store
from storage.records import Stored

BATCH: Final = 500
"""Flags that are read and stored at once."""


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
    if isinstance(verdict.released, Released):
        original = reference_in(verdict.released.duplicate_of, verdict.released.duplicate_of_version)
    elif verdict.duplicate_of is not None:
        original = reference_in(verdict.duplicate_of, verdict.duplicate_of_version)
    else:
        return None
    return verdict, stored.record.source, original
