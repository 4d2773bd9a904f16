"""Everything that a store holds, as lines of JSON that any program can read: nobody is locked in."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal

import msgspec

from consumer.fingerprint import TextKind
from consumer.judge.events import rfc3339, version_name
from storage.interface import Store
from storage.records import Arrival, Stored, Tombstone

SCHEMA: Final = "dupwatch.export/1"
_BATCH: Final = 256
"""Versions whose texts are read at once."""


class ExportedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version with its verdict; the fields are described in ``docs/formats.md``."""

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
    one_bits: str
    keys: tuple[str, ...]
    sketch: bytes
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


class ExportedTombstone(msgspec.Struct, frozen=True, kw_only=True):
    """One retraction with the event it was answered with."""

    schema: Literal["dupwatch.export/1"] = SCHEMA
    kind: Literal["tombstone"] = "tombstone"
    id: str
    version: str
    arrived_at: str
    time_ms: int
    sequence: int
    verdict: msgspec.Raw


def exported(store: Store, *, bodies: bool) -> Iterator[bytes]:
    """Every version and tombstone as one line of JSON without its line end; texts only where ``bodies`` says so."""
    everything = store.scan()
    while batch := list(islice(everything, _BATCH)):
        versions = [one.record.reference for one in batch if isinstance(one, Stored)]
        texts = dict(zip(versions, store.bodies(versions), strict=True)) if bodies else {}
        for one in batch:
            if isinstance(one, Stored):
                yield msgspec.json.encode(_version(one, texts.get(one.record.reference)))
            else:
                yield msgspec.json.encode(_tombstone(one))


def _version(one: Stored, body: str | None) -> ExportedVersion:
    record = one.record
    return ExportedVersion(
        id=record.id,
        version=version_name(record.reference),
        arrived_at=rfc3339(record.time_ms),
        time_ms=record.time_ms,
        sequence=record.sequence,
        ended_at=_ended_at(one.ends_at),
        scheme=record.scheme,
        text_kind=TextKind(record.kind).name.lower(),
        fingerprint=record.fingerprint.hex(),
        one_bits=record.one_bits.hex(),
        keys=tuple(key.hex() for key in record.keys),
        sketch=record.sketch,
        text_digest=record.text_digest.hex(),
        facts=record.facts.hex(),
        keywords=record.keywords,
        source=record.source,
        title=record.title,
        url=record.url,
        lang=record.lang,
        published_at=record.published_at,
        verdict=None if one.verdict is None else msgspec.Raw(one.verdict),
        released_from=None if one.released_from is None else one.released_from.hex(),
        body=body,
    )


def _tombstone(one: Tombstone) -> ExportedTombstone:
    return ExportedTombstone(
        id=one.id,
        version=version_name(one.reference),
        arrived_at=rfc3339(one.time_ms),
        time_ms=one.time_ms,
        sequence=one.sequence,
        verdict=msgspec.Raw(one.event),
    )


def _ended_at(ends_at: Arrival | None) -> str | None:
    return None if ends_at is None else rfc3339(ends_at.time_ms)
