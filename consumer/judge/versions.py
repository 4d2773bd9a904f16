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
        keys = self._keys(fingerprints)
        kinds = fingerprints.kinds.tolist()
        codes = _bytes_of_each(fingerprints.codes.astype(">u8"))
        one_bits = _bytes_of_each(fingerprints.one_bits.astype(">u8"))
        sketches = _bytes_of_each(fingerprints.sketches)
        text_digests = _bytes_of_each(fingerprints.text_digests)
        written = text_digests
        if fingerprints.written_digests is not None:
            written = _bytes_of_each(fingerprints.written_digests)
        versions = []
        for index, (article, arrived_at) in enumerate(zip(articles, arrivals, strict=True)):
            record = Record(
                reference=reference_of(article.id, normalise(article.title).encode() + b"\0" + written[index]),
                id=article.id,
                time_ms=arrived_at.time_ms,
                sequence=arrived_at.sequence,
                scheme=self.scheme,
                kind=kinds[index],
                fingerprint=codes[index],
                one_bits=one_bits[index],
                keys=keys[index],
                sketch=sketches[index],
                text_digest=text_digests[index],
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

    def _keys(self, fingerprints: Fingerprints) -> list[tuple[bytes, ...]]:
        """Return the keys of each text: none, those of lane 0, those of lane 1, or both."""
        block_keys = _keys_of_each(self.plan.keys(fingerprints.codes))
        band_keys = _keys_of_each(self.plan.band_keys(fingerprints.bands))
        kinds = fingerprints.kinds
        if self.lane1:
            have_blocks, have_bands = (kinds == TextKind.LONG) | (kinds == TextKind.SHORT), _have_bands(fingerprints)
        else:
            have_blocks, have_bands = kinds != TextKind.EMPTY, np.zeros(len(kinds), np.bool_)
        return [
            (blocks if has_blocks else ()) + (bands if has_bands else ())
            for blocks, bands, has_blocks, has_bands in zip(
                block_keys, band_keys, have_blocks.tolist(), have_bands.tolist(), strict=True
            )
        ]


def _bytes_of_each(rows: npt.NDArray[np.generic]) -> list[bytes]:
    """Return the bytes of each row of an array."""
    packed, width = rows.tobytes(), rows.nbytes // max(len(rows), 1)
    return [packed[width * row : width * (row + 1)] for row in range(len(rows))]


def _keys_of_each(keys: npt.NDArray[np.uint8]) -> list[tuple[bytes, ...]]:
    """Return the keys of each text as bytes, given uint8[n, keys, key_bytes]."""
    texts, count, width = keys.shape
    flat = _bytes_of_each(keys.reshape(texts * count, width))
    return [tuple(flat[count * text : count * (text + 1)]) for text in range(texts)]


def _have_bands(fingerprints: Fingerprints) -> npt.NDArray[np.bool_]:
    """Return whether each text has keys of lane 1.

    In schemes that compare letters, a short text with a shingle has them too. The same letters with other spaces may
    make a long text, and the fingerprints of the two have nothing in common.
    """
    kinds = fingerprints.kinds
    have_bands: npt.NDArray[np.bool_] = (kinds == TextKind.LONG) | (kinds == TextKind.SHINGLED)
    if fingerprints.is_marked:
        have_bands |= (kinds == TextKind.SHORT) & fingerprints.sketches.any(axis=1)
    return have_bands


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
