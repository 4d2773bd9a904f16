"""Chooses the candidates to read from the rows of a look-up.

Rows may hold many postings, so numpy chooses, and only the versions to read become Python objects. The rows of an
article are joined lane by lane and compared in one pass. Versions found by both lanes are merged and ranked by both
distances (docs/decisions/0012, 0034).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
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
    distinct,
    last_of_ids,
    rank,
    rank_together,
    references_of,
    window_of,
    words_equal,
)
from consumer.judge.settings import JudgeSettings
from storage.postings import KeyedCode, PostingRow, code_of, count_before, lane_of, layout_of
from storage.records import Record

CROWDED_VERIFICATIONS_MAX: Final = 64
"""Limit on candidates read that lane 1 did not find and that have another title or text, for an article in a crowd.

An article is in a crowd if a row is truncated, or if it has more than ``verifications_max`` candidates. Nearly every
pair that the sketch accepts shares a key of lane 1, so other candidates in a crowd are hardly ever near.
"""
SOUGHT_POSTINGS_MAX: Final = 257
"""Limit on postings with an article's code that are read from a truncated row, including its own."""
REPLACED_MAX: Final = 4
"""Limit on replaced versions read for an article. They are never matched, and count towards no other limit."""

_SHARED_MIN: Final = 256
"""Lane 0 shares its result with other articles of the batch if it finds at least this many postings."""


class Candidates(NamedTuple):
    """The versions worth comparing with one article, best first.

    ``found`` is the number of candidates before the limit. ``suspects`` counts candidates whose fingerprint is more
    than ``max_distance`` away or that only lane 1 found. ``truncated`` says that a row or the list was cut.
    ``same_code`` has the candidates with the article's fingerprint, if equal texts are near regardless of their
    sketches.

    ``replaced`` are versions that were certainly replaced before the article arrived but are nearer to it than the
    later version of their id: a text may be replaced only to be sent again under another id.
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


NO_CANDIDATES: Final = Candidates((), 0, truncated=False)


class Probe(NamedTuple):
    """An article, and the keys to look up for it."""

    record: Record
    keys: Sequence[bytes]


_Shared = dict[tuple[bytes, tuple[int, ...]], NearPostings]
"""Results of lane 0 by fingerprint and by the ``id()`` of each row, which is unique while the rows are in use."""
_NO_ROWS: Final[Mapping[KeyedCode, PostingRow]] = MappingProxyType({})


def probe_keys(record: Record, settings: JudgeSettings) -> Sequence[bytes]:
    """Return the keys to look up for a record: its own and, with a radius, the neighbours of its blocks."""
    if settings.radius == 0 or not any(lane_of(key) == LANE_SIMHASH for key in record.keys):
        return record.keys
    code = np.frombuffer(record.fingerprint, ">u8").astype(np.uint64)
    neighbours = settings.plan.probe_keys(code[np.newaxis], settings.radius).tobytes()
    width = settings.plan.key_bytes
    block_keys = [neighbours[start : start + width] for start in range(0, len(neighbours), width)]
    return block_keys + [key for key in record.keys if lane_of(key) != LANE_SIMHASH]


def codes_to_seek(record: Record, rows: Mapping[bytes, PostingRow], settings: JudgeSettings) -> list[KeyedCode]:
    """Return the key and code to search for if truncated rows may hide verbatim copies of a record, else nothing.

    A verbatim copy is stored under all keys of the record, with the same codes. So one complete row of a lane shows it,
    and if all rows are truncated, one key is enough. Lane 1 is used if the record has it and the sketch decides,
    because in a crowd it distinguishes a copy from the others.
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
    """Return the candidates of each probe: versions with near codes, in the window, from the rows of its keys.

    ``sought`` has the rows read for ``codes_to_seek``.
    """
    # The articles of a crowd have the same code and rows, so lane 0 is searched once for all of them.
    shared: _Shared = {}
    packed = {key: row.packed for key, row in rows.items()}
    truncated_keys = {key for key, row in rows.items() if row.truncated}
    articles = [_rows_of(probe, packed, truncated_keys) for probe in probes]
    return [
        _find(article, rows, settings, sought, shared) if ranked is None else _candidates(ranked, settings)
        for article, ranked in zip(articles, rank_together(articles, settings), strict=True)
    ]


def _rows_of(probe: Probe, packed: Mapping[bytes, bytes], truncated_keys: AbstractSet[bytes]) -> ArticleRows:
    rows = list(map(packed.__getitem__, probe.keys))
    blocks = count_before(LANE_MINHASH, probe.keys)
    return ArticleRows(probe.record, rows[:blocks], rows[blocks:], not truncated_keys.isdisjoint(probe.keys))


def _candidates(ranked: RankedVersions, settings: JudgeSettings) -> Candidates:
    """Return all ranked versions as candidates."""
    references, distances = ranked
    if not references:
        return NO_CANDIDATES
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
    near = _in_window(record, _merge_lanes(by_blocks, by_bands), settings.window_ms)
    if not len(near.tails):
        return Candidates((), 0, truncated)
    near, replaced = _split_replaced(record, own, near, settings)
    count = len(near.tails)
    best = _best_indexes(own, near, _read_limit(record, own, near, settings, truncated=truncated), settings)
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
    """Return the versions that lane 0 finds in these rows."""
    key = (record.fingerprint, tuple(map(id, rows)))
    if key in shared:
        return _without_own_id(shared[key], own)
    packed = b"".join(rows)
    if not packed:
        return NOTHING
    _, tails, distances = layout_of(record).within(packed, record.fingerprint, settings.suspect_distance_max)
    near = NearPostings(tails, distances, np.full(len(tails), NOT_FOUND, np.uint8), np.ones(len(tails), np.intp))
    if len(tails) < _SHARED_MIN:
        return distinct(_without_own_id(near, own))
    shared[key] = near = distinct(near)
    return _without_own_id(near, own)


def _by_bands(record: Record, own: Words, rows: Sequence[bytes], settings: JudgeSettings) -> NearPostings:
    """Return the versions that lane 1 finds in these rows."""
    packed = b"".join(rows)
    if not packed:
        return NOTHING
    code = code_of(record, LANE_MINHASH)
    _, tails, distances = layout_of(record).within(packed, code, settings.one_bits_distance_max)
    near = NearPostings(tails, np.full(len(tails), NOT_FOUND, np.uint8), distances, np.ones(len(tails), np.intp))
    return distinct(_without_own_id(near, own))


def _without_own_id(near: NearPostings, own: Words) -> NearPostings:
    """Leave out versions of the article's own id, including the article itself."""
    is_own = words_equal(near.tails, own, OWNER)
    return near.take(~is_own) if is_own.any() else near


def _merge_lanes(by_blocks: NearPostings, by_bands: NearPostings) -> NearPostings:
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
    """Leave out versions outside the window."""
    if not len(near.tails):
        return near
    first, last = window_of(record, window_ms)
    times = near.tails[:, TIME]
    in_window = (times >= np.uint64(first)) & (times <= np.uint64(last))
    return near if in_window.all() else near.take(in_window)


def _split_replaced(
    record: Record, own: Words, near: NearPostings, settings: JudgeSettings
) -> tuple[NearPostings, tuple[bytes, ...]]:
    """Return the versions that may be in force, and the references of replaced ones worth reading."""
    last = last_of_ids(record, own, near.tails)
    is_replaced = last != np.arange(len(last))
    if not is_replaced.any():
        return near, ()
    ranks = rank(own, near, by_sketch=settings.verify)
    closer = near.take(is_replaced & (ranks < ranks[last]))
    # Among equals the latest comes first, because it ended last, or nearly so.
    latest = [~closer.tails[:, column] for column in (TIME, SEQUENCE)]
    best = _lowest_indexes(
        REPLACED_MAX, [rank(own, closer, by_sketch=settings.verify), *latest], closer.tails[:, REFERENCE]
    )
    return near.take(~is_replaced), tuple(references_of(closer.tails[best]))


def _read_limit(record: Record, own: Words, near: NearPostings, settings: JudgeSettings, *, truncated: bool) -> int:
    """Return how many candidates to read: all, or fewer in a crowd, which makes the verdict truncated."""
    count = len(near.tails)
    if count <= settings.verifications_max and not truncated:
        return count
    if not settings.verify or not any(lane_of(key) == LANE_MINHASH for key in record.keys):
        return min(count, settings.verifications_max)
    supported = int(np.count_nonzero((near.minhash != NOT_FOUND) | words_equal(near.tails, own, DIGEST)))
    return min(count, supported + CROWDED_VERIFICATIONS_MAX, settings.verifications_max)


def _best_indexes(own: Words, near: NearPostings, count: int, settings: JudgeSettings) -> Numbers:
    """Return the indexes of the ``count`` versions to read, best first.

    Among equals the earliest comes first; in a flood this is the original.
    """
    ranks = rank(own, near, by_sketch=settings.verify)
    return _lowest_indexes(count, [ranks, near.tails[:, TIME], near.tails[:, SEQUENCE]], near.tails[:, REFERENCE])


def _lowest_indexes(count: int, keys: Sequence[Words], references: Words) -> Numbers:
    """Return the indexes of the ``count`` lowest versions, ordered by the keys in turn, then by reference."""
    certain: list[Numbers] = []
    tied = np.arange(len(references))
    left = count
    for key in keys:
        if len(tied) <= left:
            break
        # Values below the threshold are certain; the next key decides among those equal to it.
        values = key[tied]
        threshold = np.partition(values, left - 1)[left - 1]
        certain.append(tied[values < threshold])
        left -= len(certain[-1])
        tied = tied[values == threshold]
    chosen = np.concatenate([*certain, tied])
    columns = [*references[chosen].T[::-1], *(key[chosen] for key in reversed(keys))]
    return chosen[np.lexsort(columns)][:count]
