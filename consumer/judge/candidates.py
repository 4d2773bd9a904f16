"""Chooses the candidates that are worth reading, from the rows of a look-up.

The choice is made in numpy, because a row may hold many postings: only the versions that will be read become Python
objects. The rows of an article are joined lane by lane and compared in one pass. Versions found by both lanes are
merged, so that they are ranked by what both lanes know (docs/decisions/0012, 0034).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from consumer.fingerprint import LANE_MINHASH, LANE_SIMHASH
from consumer.judge.near_postings import (
    DIGEST,
    NOT_FOUND,
    NOTHING,
    OWNER,
    REFERENCE,
    SEQUENCE,
    TIME,
    ArticleRows,
    NearPostings,
    Numbers,
    RankedVersions,
    Words,
    alike,
    distinct,
    last_of_ids,
    rank,
    rank_together,
    references_of,
    window_of,
)
from consumer.judge.settings import JudgeSettings
from storage.postings import KeyedCode, PostingRow, code_of, count_before, lane_of, layout_of
from storage.records import Record

CROWDED_VERIFICATIONS_MAX: Final = 64
"""Limit on candidates that are read without support from lane 1, for an article with more than ``verifications_max``.

Nearly every pair that the sketch accepts shares a key of lane 1, so that in a crowd the others are hardly ever near.
"""
SOUGHT_POSTINGS_MAX: Final = 257
"""Limit on postings with an article's own code that are read from a row that was truncated: its own one, and others."""
REPLACED_MAX: Final = 4
"""Limit on replaced versions that are read for an article; they are never matched, and count for no other limit."""

_SHARED_MIN: Final = 256
"""A lane that finds at least this many versions keeps them for the other articles of the batch."""


class Candidates(NamedTuple):
    """The versions worth comparing with one article, best first.

    ``found`` is their number before the limit was applied. ``suspects`` is the number of these whose fingerprint is
    more than ``max_distance`` away, or that only lane 1 found. ``truncated`` says that a row or the list was cut short.
    ``same_code`` are those with the article's own fingerprint, where equal texts are near whatever their sketches.

    ``replaced`` are versions that were certainly replaced before the article arrived, but are nearer to it than their
    id's later version: a text may have been replaced only to be sent again under another id.
    """

    references: tuple[bytes, ...]
    found: int
    truncated: bool
    suspects: int = 0
    same_code: frozenset[bytes] = frozenset()
    replaced: tuple[bytes, ...] = ()

    @property
    def read(self) -> tuple[bytes, ...]:
        """All versions to read."""
        return self.references + self.replaced


_NONE: Final = Candidates((), 0, truncated=False)


class Probe(NamedTuple):
    """An article, and the keys under which near articles may be stored."""

    record: Record
    keys: Sequence[bytes]


_Shared = dict[tuple[bytes, tuple[int, ...]], NearPostings]
"""What lane 0 found, by fingerprint and rows. The identity of a row is its key: rows outlive the call."""
_NO_ROWS: Final[Mapping[KeyedCode, PostingRow]] = MappingProxyType({})


def probe_keys(record: Record, settings: JudgeSettings) -> list[bytes]:
    """Return the keys to read for a record: its own and, with a radius, the neighbours of its blocks."""
    if settings.radius == 0 or not any(lane_of(key) == LANE_SIMHASH for key in record.keys):
        return list(record.keys)
    code = np.frombuffer(record.fingerprint, ">u8").astype(np.uint64)
    neighbours = settings.plan.probe_keys(code[np.newaxis], settings.radius).tobytes()
    width = settings.plan.key_bytes
    of_blocks = [neighbours[start : start + width] for start in range(0, len(neighbours), width)]
    return of_blocks + [key for key in record.keys if lane_of(key) != LANE_SIMHASH]


def codes_to_seek(record: Record, rows: Mapping[bytes, PostingRow], settings: JudgeSettings) -> list[KeyedCode]:
    """Return keys under which postings with the record's own code may be hidden, since their rows were truncated.

    A verbatim copy is stored under all keys of the record, with the same codes. So one row of a lane that was read
    whole shows it; where all rows were truncated, one key is enough. Lane 1 is used where the record has it and the
    sketch decides, because in a crowd it tells a copy from the others.
    """
    lanes = {lane_of(key) for key in record.keys}
    lane = LANE_MINHASH if settings.verify and LANE_MINHASH in lanes else LANE_SIMHASH
    keys = [key for key in record.keys if lane_of(key) == lane]
    return [KeyedCode(keys[0], code_of(record, lane))] if keys and all(rows[key].truncated for key in keys) else []


def find_candidates(
    probes: Sequence[Probe],
    rows: Mapping[bytes, PostingRow],
    settings: JudgeSettings,
    sought: Mapping[KeyedCode, PostingRow] = _NO_ROWS,
) -> list[Candidates]:
    """Return the candidates of each probe: what is near by code and within the window, in the rows under its keys.

    ``sought`` has the rows that were read for ``codes_to_seek``.
    """
    # Articles of a crowd have the same code and the same rows: lane 0 is searched once for all of them.
    shared: _Shared = {}
    articles = [_rows_of(probe, rows) for probe in probes]
    return [
        _find(article, rows, settings, sought, shared) if ranked is None else _candidates(ranked, settings)
        for article, ranked in zip(articles, rank_together(articles, settings), strict=True)
    ]


def _rows_of(probe: Probe, rows: Mapping[bytes, PostingRow]) -> ArticleRows:
    of_article = [rows[key] for key in probe.keys]
    packed = [row.packed for row in of_article]
    blocks = count_before(LANE_MINHASH, probe.keys)
    return ArticleRows(probe.record, packed[:blocks], packed[blocks:], any(row.truncated for row in of_article))


def _candidates(ranked: RankedVersions, settings: JudgeSettings) -> Candidates:
    """Return all that was ranked."""
    references, distances = ranked
    if not references:
        return _NONE
    same_code = [reference for reference, distance in zip(references, distances, strict=True) if distance == 0]
    return Candidates(
        references,
        len(references),
        truncated=False,
        suspects=sum(distance > settings.max_distance for distance in distances),
        same_code=frozenset(same_code if settings.scheme.definition.compares_letters else ()),
    )


def _find(
    article: ArticleRows,
    rows: Mapping[bytes, PostingRow],
    settings: JudgeSettings,
    sought: Mapping[KeyedCode, PostingRow],
    shared: _Shared,
) -> Candidates:
    record, _, _, truncated = article
    packed = {LANE_SIMHASH: [*article.by_blocks], LANE_MINHASH: [*article.by_bands]}
    for keyed in codes_to_seek(record, rows, settings) if truncated else []:
        if keyed in sought:
            packed[lane_of(keyed.key)].append(sought[keyed].packed)
    own = np.frombuffer(record.reference, ">u8").astype(np.uint64)
    by_blocks = _by_blocks(record, own, packed[LANE_SIMHASH], settings, shared)
    by_bands = _by_bands(record, own, packed[LANE_MINHASH], settings)
    near = _in_window(record, _together(by_blocks, by_bands), settings.window_ms)
    if not len(near.tails):
        return Candidates((), 0, truncated)
    near, replaced = _told_apart(record, own, near, settings)
    count = len(near.tails)
    best = _best(own, near, _limit(record, own, near, settings, truncated=truncated), settings)
    suspects = int(np.count_nonzero(near.simhash > settings.max_distance))
    same_code = best[near.simhash[best] == 0] if settings.scheme.definition.compares_letters else best[:0]
    return Candidates(
        tuple(references_of(near.tails[best])),
        count,
        truncated or len(best) < count,
        suspects,
        frozenset(references_of(near.tails[same_code])),
        replaced,
    )


def _by_blocks(
    record: Record, own: Words, rows: Sequence[bytes], settings: JudgeSettings, shared: _Shared
) -> NearPostings:
    """Return what lane 0 finds in these rows."""
    key = (record.fingerprint, tuple(map(id, rows)))
    if key in shared:
        return _others(shared[key], own)
    packed = b"".join(rows)
    if not packed:
        return NOTHING
    _, tails, distances = layout_of(record).within(packed, record.fingerprint, settings.suspect_distance_max)
    near = NearPostings(tails, distances, np.full(len(tails), NOT_FOUND, np.uint8), np.ones(len(tails), np.intp))
    if len(tails) < _SHARED_MIN:
        return distinct(_others(near, own))
    shared[key] = near = distinct(near)
    return _others(near, own)


def _by_bands(record: Record, own: Words, rows: Sequence[bytes], settings: JudgeSettings) -> NearPostings:
    """Return what lane 1 finds in these rows."""
    packed = b"".join(rows)
    if not packed:
        return NOTHING
    code = code_of(record, LANE_MINHASH)
    _, tails, distances = layout_of(record).within(packed, code, settings.one_bits_distance_max)
    near = NearPostings(tails, np.full(len(tails), NOT_FOUND, np.uint8), distances, np.ones(len(tails), np.intp))
    return distinct(_others(near, own))


def _others(near: NearPostings, own: Words) -> NearPostings:
    """Leave out versions of the same id: an article always finds itself, and may find its other versions."""
    is_own = alike(near.tails, own, OWNER)
    return near.take(~is_own) if is_own.any() else near


def _together(by_blocks: NearPostings, by_bands: NearPostings) -> NearPostings:
    if not len(by_bands.tails):
        return by_blocks
    if not len(by_blocks.tails):
        return by_bands
    return distinct(
        NearPostings(
            np.concatenate((by_blocks.tails, by_bands.tails)),
            np.concatenate((by_blocks.simhash, by_bands.simhash)),
            np.concatenate((by_blocks.minhash, by_bands.minhash)),
            np.concatenate((by_blocks.keys, by_bands.keys)),
        )
    )


def _in_window(record: Record, near: NearPostings, window_ms: int) -> NearPostings:
    """Leave out what is outside of the window."""
    if not len(near.tails):
        return near
    first, last = window_of(record, window_ms)
    times = near.tails[:, TIME]
    in_window = (times >= np.uint64(first)) & (times <= np.uint64(last))
    return near if in_window.all() else near.take(in_window)


def _told_apart(
    record: Record, own: Words, near: NearPostings, settings: JudgeSettings
) -> tuple[NearPostings, tuple[bytes, ...]]:
    """Return the versions without those that were certainly replaced, and of the latter what is worth reading."""
    last = last_of_ids(record, own, near.tails)
    is_replaced = last != np.arange(len(last))
    if not is_replaced.any():
        return near, ()
    ranks = rank(own, near, by_sketch=settings.verify)
    closer = near.take(is_replaced & (ranks < ranks[last]))
    # Among equals the latest comes first: it is the one that ended last, or nearly so.
    latest = [~closer.tails[:, column] for column in (TIME, SEQUENCE)]
    best = _first(REPLACED_MAX, [rank(own, closer, by_sketch=settings.verify), *latest], closer.tails[:, REFERENCE])
    return near.take(~is_replaced), tuple(references_of(closer.tails[best]))


def _limit(record: Record, own: Words, near: NearPostings, settings: JudgeSettings, *, truncated: bool) -> int:
    """Return how many candidates to read: all, or fewer in a crowd, where the verdict says that it is truncated."""
    count = len(near.tails)
    if count <= settings.verifications_max and not truncated:
        return count
    if not settings.verify or not any(lane_of(key) == LANE_MINHASH for key in record.keys):
        return min(count, settings.verifications_max)
    supported = int(np.count_nonzero((near.minhash != NOT_FOUND) | alike(near.tails, own, DIGEST)))
    return min(count, supported + CROWDED_VERIFICATIONS_MAX, settings.verifications_max)


def _best(own: Words, near: NearPostings, count: int, settings: JudgeSettings) -> Numbers:
    """Return the indexes of the ``count`` versions to read, best first.

    Among equals the earliest comes first, which in a flood is the original.
    """
    ranks = rank(own, near, by_sketch=settings.verify)
    return _first(count, [ranks, near.tails[:, TIME], near.tails[:, SEQUENCE]], near.tails[:, REFERENCE])


def _first(count: int, keys: Sequence[Words], references: Words) -> Numbers:
    """Return the indexes of the lowest ``count``, ordered by the first key, then by the others, then by reference."""
    sure: list[Numbers] = []
    tied = np.arange(len(references))
    left = count
    for key in keys:
        if len(tied) <= left:
            break
        # Values below the threshold are chosen in any case; the next key decides among those that are equal to it.
        values = key[tied]
        threshold = np.partition(values, left - 1)[left - 1]
        sure.append(tied[values < threshold])
        left -= len(sure[-1])
        tied = tied[values == threshold]
    chosen = np.concatenate([*sure, tied])
    columns = [*references[chosen].T[::-1], *(key[chosen] for key in reversed(keys))]
    return chosen[np.lexsort(columns)][:count]
