"""Exports the versions and tombstones of a store as lines of JSON, which any program can read."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Literal

import msgspec

from consumer.fingerprint import TextKind
from consumer.judge.binding import is_keyed
from consumer.judge.events import version_name
from consumer.text.timestamps import rfc3339
from storage.interface import Store
from storage.records import Arrival, Record, StoredVersion, Tombstone

SCHEMA: Final = "dupwatch.export/1"
_BATCH: Final = 256
"""The number of texts to read at once."""


class ExportedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version with its verdict; the fields are described in ``docs/use/events.md``."""

    schema: Literal["dupwatch.export/1"] = SCHEMA
    kind: Literal["version"] = "version"
    id: str
    version: str
    arrived_at: str
    time_ms: int
    sequence: int
    ended_at: str | None
    scheme: str
    text_kind: str
    fingerprint: str
    one_bits: str | msgspec.UnsetType = msgspec.UNSET
    keys: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    sketch: bytes | msgspec.UnsetType = msgspec.UNSET
    text_digest: str
    facts: str
    keywords: tuple[tuple[str, float], ...]
    source: str
    title: str
    url: str
    lang: str
    published_at: float | None
    verdict: msgspec.Raw | None
    released_from: str | None
    body: str | None
    anchors: str | msgspec.UnsetType = msgspec.UNSET
    sample: bytes | msgspec.UnsetType = msgspec.UNSET


class ExportedTombstone(msgspec.Struct, frozen=True, kw_only=True):
    """One retraction with its verdict event."""

    schema: Literal["dupwatch.export/1"] = SCHEMA
    kind: Literal["tombstone"] = "tombstone"
    id: str
    version: str
    arrived_at: str
    time_ms: int
    sequence: int
    verdict: msgspec.Raw


def export_lines(store: Store, *, bodies: bool) -> Iterator[bytes]:
    """Yield every version and tombstone as one line of JSON, without the line end. With ``bodies``, include texts."""
    everything = store.scan()
    while batch := list(islice(everything, _BATCH)):
        versions = [stored.record.reference for stored in batch if isinstance(stored, StoredVersion)]
        texts = dict(zip(versions, store.bodies(versions), strict=True)) if bodies else {}
        for stored in batch:
            if isinstance(stored, StoredVersion):
                yield msgspec.json.encode(_version(stored, texts.get(stored.record.reference)))
            else:
                yield msgspec.json.encode(_tombstone(stored))


def _version(stored: StoredVersion, body: str | None) -> ExportedVersion:
    record = stored.record
    return ExportedVersion(
        **_shingle_members(record),
        id=record.id,
        version=version_name(record.reference),
        arrived_at=rfc3339(record.time_ms),
        time_ms=record.time_ms,
        sequence=record.sequence,
        ended_at=_ended_at(stored.ends_at),
        scheme=record.scheme,
        text_kind=TextKind(record.kind).label,
        fingerprint=record.fingerprint.hex(),
        text_digest=record.text_digest.hex(),
        facts=record.facts.hex(),
        keywords=record.keywords,
        source=record.source,
        title=record.title,
        url=record.url,
        lang=record.lang,
        published_at=record.published_at,
        verdict=None if stored.verdict is None else msgspec.Raw(stored.verdict),
        released_from=None if stored.released_from is None else stored.released_from.hex(),
        body=body,
    )


def _shingle_members(record: Record) -> dict[str, Any]:
    """Return the members made from shingles, or none for a keyed scheme: they would reveal parts of its secret."""
    if is_keyed(record.scheme):
        return {}
    members: dict[str, Any] = {
        "one_bits": record.one_bits.hex(),
        "keys": tuple(key.hex() for key in record.keys),
        "sketch": record.sketch,
    }
    if record.anchors is not None:
        members["anchors"] = record.anchors.hex()
    if record.sample is not None:
        members["sample"] = record.sample
    return members


def _tombstone(tombstone: Tombstone) -> ExportedTombstone:
    return ExportedTombstone(
        id=tombstone.id,
        version=version_name(tombstone.reference),
        arrived_at=rfc3339(tombstone.time_ms),
        time_ms=tombstone.time_ms,
        sequence=tombstone.sequence,
        verdict=msgspec.Raw(tombstone.event),
    )


def _ended_at(ends_at: Arrival | None) -> str | None:
    return None if ends_at is None else rfc3339(ends_at.time_ms)
