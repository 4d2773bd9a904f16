"""Builds the versions and tombstones that are stored and judged, from articles and their fingerprints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint import BlockPlan, Fingerprints, TextKind, normalise
from consumer.judge import events
from consumer.model.article import Article
from storage.records import Record, Tombstone, Version, reference_of

_ONE_BITS_BYTES = 8


class ArrivalTime(NamedTuple):
    """When and where an article arrived: the record time in milliseconds, and its sequence in the feed.

    ``stamped_ms`` is the time that its message claims, if that differs. ``feed`` and ``key`` are those of its origin
    (``storage.records.Origin``), or None without one. ``is_fixed`` says that the record itself contains the time,
    which is therefore the same at each delivery.
    """

    time_ms: int
    sequence: int
    stamped_ms: int | None = None
    feed: str | None = None
    key: str | None = None
    is_fixed: bool = True


@dataclass(frozen=True, slots=True)
class VersionBuilder:
    """A builder of versions for one scheme and plan, with band keys if ``lane1`` is on."""

    scheme: str
    plan: BlockPlan
    lane1: bool

    def versions(
        self, articles: Sequence[Article], arrivals: Sequence[ArrivalTime], fingerprints: Fingerprints
    ) -> list[Version]:
        """Return a version of each article, given the fingerprints of the bodies in the same order."""
        block_keys = _keys_of_each(self.plan.keys(fingerprints.codes))
        band_keys = _keys_of_each(self.plan.band_keys(fingerprints.bands))
        # Slice the bytes of the big-endian arrays: a single element would have the byte order of the machine.
        codes = fingerprints.codes.astype(">u8").tobytes()
        one_bits = fingerprints.one_bits.astype(">u8").tobytes()
        code_bytes = self.plan.code_bytes
        written_digests = (
            fingerprints.text_digests if fingerprints.written_digests is None else fingerprints.written_digests
        )
        versions = []
        for index, (article, arrived_at) in enumerate(zip(articles, arrivals, strict=True)):
            kind = TextKind(int(fingerprints.kinds[index]))
            by_bands = self.lane1 and _has_bands(kind, fingerprints, index)
            by_blocks = kind in {TextKind.LONG, TextKind.SHORT} or (kind is TextKind.SHINGLED and not self.lane1)
            keys = (*(block_keys[index] if by_blocks else ()), *(band_keys[index] if by_bands else ()))
            written = written_digests[index].tobytes()
            record = Record(
                reference=reference_of(article.id, normalise(article.title).encode() + b"\0" + written),
                id=article.id,
                time_ms=arrived_at.time_ms,
                sequence=arrived_at.sequence,
                scheme=self.scheme,
                kind=int(kind),
                fingerprint=codes[code_bytes * index : code_bytes * (index + 1)],
                one_bits=one_bits[_ONE_BITS_BYTES * index : _ONE_BITS_BYTES * (index + 1)],
                keys=keys,
                sketch=fingerprints.sketches[index].tobytes(),
                text_digest=fingerprints.text_digests[index].tobytes(),
                keywords=fingerprints.keywords[index],
                source=article.source,
                title=article.title,
                url=article.url,
                lang=article.lang,
                published_at=article.published_at,
                facts=fingerprints.facts[index] if fingerprints.facts else b"",
                stamped_ms=arrived_at.stamped_ms,
                extracted=None if article.extracted is None else article.extracted.value,
                anchors=fingerprints.anchors[index] if fingerprints.anchors else None,
                sample=fingerprints.samples[index] if fingerprints.samples else None,
                feed=arrived_at.feed,
                key=arrived_at.key,
            )
            known = fingerprints.known_shingles[index] if fingerprints.known_shingles else b""
            versions.append(Version(record, article.body, arrived_at.is_fixed, known))
        return versions


def _keys_of_each(keys: npt.NDArray[np.uint8]) -> list[list[bytes]]:
    """Return the keys of each text as bytes, given uint8[n, keys, key_bytes]."""
    texts, count, width = keys.shape
    packed = keys.tobytes()
    flat = [packed[start : start + width] for start in range(0, len(packed), width)]
    return [flat[count * text : count * (text + 1)] for text in range(texts)]


def _has_bands(kind: TextKind, fingerprints: Fingerprints, index: int) -> bool:
    """Return whether a text has keys of lane 1.

    In schemes that compare letters, a short text with a shingle has them too. The same letters with other spaces may
    make a long text, and the fingerprints of the two have nothing in common.
    """
    if kind is TextKind.SHORT:
        return fingerprints.is_marked and bool(fingerprints.sketches[index].any())
    return kind in {TextKind.LONG, TextKind.SHINGLED}


def retraction_reference(article_id: str, origin: bytes) -> bytes:
    """Return the reference of the tombstone of a retraction."""
    return reference_of(article_id, b"retraction\0" + origin)


def tombstone(article_id: str, arrived_at: ArrivalTime, origin: bytes, decided_ms: int) -> Tombstone:
    """Return the tombstone of a retraction.

    ``origin`` is the unique name of the record or the request. It gives the tombstone of a replay the same reference.
    """
    return Tombstone(
        reference=retraction_reference(article_id, origin),
        id=article_id,
        time_ms=arrived_at.time_ms,
        sequence=arrived_at.sequence,
        event=events.retracted_event(
            article_id, time_ms=arrived_at.time_ms, decided_ms=decided_ms, stamped_ms=arrived_at.stamped_ms
        ).encoded,
        feed=arrived_at.feed,
        key=arrived_at.key,
    )
