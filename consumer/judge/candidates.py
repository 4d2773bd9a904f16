"""Chooses the candidates that are worth reading, from the rows of a look-up.

The choice is made in numpy, because a row may hold many postings: only the versions that will be read become Python
objects. The rows of an article are joined lane by lane and compared in one pass. Versions found by both lanes are
merged, so that they are ranked by what both lanes know (docs/decisions/0012, 0034).
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consumer.fingerprint import LANE_MINHASH, LANE_SIMHASH
from consumer.judge.first_look import Rows, has_others_near
from consumer.judge.settings import ONE_BITS_DISTANCE_MAX, JudgeSettings
from storage.postings import TAIL_WORDS, WORD_SPREAD, KeyedCode, Row, code_of, lane_of, layout_of
from storage.records import REFERENCE_BYTES, Record

CROWDED_VERIFICATIONS_MAX: Final = 64
"""Limit on candidates that are read without support from lane 1, for an article with more than ``verifications_max``.

Nearly every pair that the sketch accepts shares a key of lane 1, so that in a crowd the others are hardly ever near.
"""
SOUGHT_POSTINGS_MAX: Final = 256
"""Limit on postings with an article's own code that are read from a row that was truncated."""

_NOT_FOUND: Final = 255
"""Stands for the distance in a lane that did not find a version; greater than every distance that a lane finds."""
_OWNER: Final = (0, 1)
_DIGEST: Final = (2, 3)
_REFERENCE: Final = (0, 1, 2, 3)
_TIME: Final = 4
_SEQUENCE: Final = 5
_ARRIVAL: Final = (_TIME, _SEQUENCE, 0, 1, 2, 3)
"""The words of a posting's tail in the order in which arrivals compare."""
_TIME_MAX: Final = (1 << 64) - 1
_SHARED_MIN: Final = 256
"""A lane that finds at least this many versions keeps them for the other articles of the batch."""

Words = NDArray[np.uint64]
Numbers = NDArray[np.intp]


class Candidates(NamedTuple):
    """The versions worth comparing with one article, best first.

    ``found`` is their number before the limit was applied. ``suspects`` is the number of these whose fingerprint is
    more than ``max_distance`` away, or that only lane 1 found. ``truncated`` says that a row or the list was cut short.
    """

    references: tuple[bytes, ...]
    found: int
    truncated: bool
    suspects: int = 0


class Probe(NamedTuple):
    """An article, and the keys under which near articles may be stored."""

    record: Record
    keys: Sequence[bytes]


class _Near(NamedTuple):
    """Versions near by code, as arrays of n: tails of postings, distances in both lanes, numbers of shared keys.

    The distance in a lane that did not find a version is ``_NOT_FOUND``.
    """

    tails: Words
    simhash: NDArray[np.uint8]
    minhash: NDArray[np.uint8]
    keys: Numbers

    def take(self, chosen: NDArray[np.bool_] | Numbers) -> "_Near":
        """Return the chosen versions, by a mask or by indexes."""
        return _Near(self.tails[chosen], self.simhash[chosen], self.minhash[chosen], self.keys[chosen])


_Shared = dict[tuple[bytes, tuple[int, ...]], _Near]
"""What lane 0 found, by fingerprint and rows. The identity of a row is its key: rows outlive the call."""

_NOTHING: Final = _Near(
    np.zeros((0, TAIL_WORDS), np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.uint8), np.zeros(0, np.intp)
)
_NO_ROWS: Final[Mapping[KeyedCode, Row]] = MappingProxyType({})


def probe_keys(record: Record, settings: JudgeSettings) -> list[bytes]:
    """Return the keys to read for a record: its own and, with a radius, the neighbours of its blocks."""
    if settings.radius == 0 or not any(lane_of(key) == LANE_SIMHASH for key in record.keys):
        return list(record.keys)
    code = np.frombuffer(record.fingerprint, ">u8").astype(np.uint64)
    neighbours = settings.plan.probe_keys(code[np.newaxis], settings.radius).tobytes()
    width = settings.plan.key_bytes
    of_blocks = [neighbours[start : start + width] for start in range(0, len(neighbours), width)]
    return of_blocks + [key for key in record.keys if lane_of(key) != LANE_SIMHASH]


def codes_to_seek(record: Record, rows: Mapping[bytes, Row], settings: JudgeSettings) -> list[KeyedCode]:
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
    rows: Mapping[bytes, Row],
    settings: JudgeSettings,
    sought: Mapping[KeyedCode, Row] = _NO_ROWS,
) -> list[Candidates]:
    """Return the candidates of each probe: what is near by code and within the window, in the rows under its keys.

    ``sought`` has the rows that were read for ``codes_to_seek``.
    """
    # Articles of a crowd have the same code and the same rows: lane 0 is searched once for all of them.
    shared: _Shared = {}
    return [
        _find(probe, rows, settings, sought, shared) if may_have_some else Candidates((), 0, truncated=False)
        for probe, may_have_some in zip(probes, _may_have_candidates(probes, rows, settings), strict=True)
    ]


def _may_have_candidates(
    probes: Sequence[Probe], rows: Mapping[bytes, Row], settings: JudgeSettings
) -> NDArray[np.bool_]:
    """Return for each probe whether a row was truncated, or shows another id that is near by code: bool[n]."""
    found = np.array([any(rows[key].truncated for key in probe.keys) for probe in probes], np.bool_)
    if not probes:
        return found
    layout = layout_of(probes[0].record)
    for lane, distance_max in ((LANE_SIMHASH, settings.suspect_distance_max), (LANE_MINHASH, ONE_BITS_DISTANCE_MAX)):
        of_lane = [
            Rows(record.reference, code_of(record, lane), [rows[key].packed for key in keys if lane_of(key) == lane])
            for record, keys in probes
        ]
        found |= has_others_near(of_lane, layout, distance_max)
    return found


def _find(
    probe: Probe, rows: Mapping[bytes, Row], settings: JudgeSettings, sought: Mapping[KeyedCode, Row], shared: _Shared
) -> Candidates:
    record = probe.record
    truncated = any(rows[key].truncated for key in probe.keys)
    codes = codes_to_seek(record, rows, settings) if truncated else []
    packed: dict[int, list[bytes]] = {LANE_SIMHASH: [], LANE_MINHASH: []}
    for key in probe.keys:
        packed[lane_of(key)].append(rows[key].packed)
    for keyed in codes:
        if keyed in sought:
            packed[lane_of(keyed.key)].append(sought[keyed].packed)
    own = np.frombuffer(record.reference, ">u8").astype(np.uint64)
    by_blocks = _by_blocks(record, own, packed[LANE_SIMHASH], settings, shared)
    by_bands = _by_bands(record, own, packed[LANE_MINHASH])
    near = _worth_reading(record, own, _together(by_blocks, by_bands), settings.window_ms)
    count = len(near.tails)
    if not count:
        return Candidates((), 0, truncated)
    best = _best(own, near, _limit(record, own, near, settings, truncated=truncated), settings)
    suspects = int(np.count_nonzero(near.simhash > settings.max_distance))
    return Candidates(_references(near.tails[best]), count, truncated or len(best) < count, suspects)


def _by_blocks(record: Record, own: Words, rows: Sequence[bytes], settings: JudgeSettings, shared: _Shared) -> _Near:
    """Return what lane 0 finds in these rows."""
    key = (record.fingerprint, tuple(map(id, rows)))
    if key in shared:
        return _others(shared[key], own)
    packed = b"".join(rows)
    if not packed:
        return _NOTHING
    tails, distances = layout_of(record).within(packed, record.fingerprint, settings.suspect_distance_max)
    near = _Near(tails, distances, np.full(len(tails), _NOT_FOUND, np.uint8), np.ones(len(tails), np.intp))
    if len(tails) < _SHARED_MIN:
        return _distinct(_others(near, own))
    shared[key] = near = _distinct(near)
    return _others(near, own)


def _by_bands(record: Record, own: Words, rows: Sequence[bytes]) -> _Near:
    """Return what lane 1 finds in these rows."""
    packed = b"".join(rows)
    if not packed:
        return _NOTHING
    tails, distances = layout_of(record).within(packed, code_of(record, LANE_MINHASH), ONE_BITS_DISTANCE_MAX)
    near = _Near(tails, np.full(len(tails), _NOT_FOUND, np.uint8), distances, np.ones(len(tails), np.intp))
    return _distinct(_others(near, own))


def _others(near: _Near, own: Words) -> _Near:
    """Leave out versions of the same id: an article always finds itself, and may find its other versions."""
    is_own = _alike(near.tails, own, _OWNER)
    return near.take(~is_own) if is_own.any() else near


def _together(by_blocks: _Near, by_bands: _Near) -> _Near:
    if not len(by_bands.tails):
        return by_blocks
    if not len(by_blocks.tails):
        return by_bands
    return _distinct(
        _Near(
            np.concatenate((by_blocks.tails, by_bands.tails)),
            np.concatenate((by_blocks.simhash, by_bands.simhash)),
            np.concatenate((by_blocks.minhash, by_bands.minhash)),
            np.concatenate((by_blocks.keys, by_bands.keys)),
        )
    )


def _distinct(near: _Near) -> _Near:
    """Merge repeats to the nearest in each lane: a version that shares several keys is found under each of them."""
    if len(near.tails) <= 1:
        return near
    # Both words are parts of digests. Should two versions have the same mixed word, all their words are compared.
    mixed = near.tails[:, 0] * WORD_SPREAD ^ near.tails[:, 2]
    order = np.argsort(mixed)
    mixed, tails = mixed[order], near.tails[order]
    repeats = mixed[1:] == mixed[:-1]
    if (repeats & ~_alike(tails[1:], tails[:-1].T, _REFERENCE)).any():
        order = np.lexsort(near.tails[:, _ARRIVAL[::-1]].T)
        order = order[np.lexsort(near.tails[order][:, _REFERENCE].T)]
        tails = near.tails[order]
        repeats = _alike(tails[1:], tails[:-1].T, _REFERENCE)
    starts = np.concatenate(([0], (~repeats).nonzero()[0] + 1))
    if len(starts) == len(tails):
        return near
    return _Near(
        tails[starts],
        np.minimum.reduceat(near.simhash[order], starts),
        np.minimum.reduceat(near.minhash[order], starts),
        np.add.reduceat(near.keys[order], starts),
    )


def _alike(tails: Words, words: Words, columns: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the tails that have the given words in these columns; a word may be an array, one per tail."""
    alike: NDArray[np.bool_] = tails[:, columns[0]] == words[columns[0]]
    for column in columns[1:]:
        alike &= tails[:, column] == words[column]
    return alike


def _worth_reading(record: Record, own: Words, near: _Near, window_ms: int) -> _Near:
    """Leave out what is outside of the window, and what was certainly replaced before the article arrived."""
    if not len(near.tails):
        return near
    first, last = max(record.time_ms - window_ms, 0), min(record.time_ms + window_ms, _TIME_MAX)
    times = near.tails[:, _TIME]
    in_window = (times >= np.uint64(first)) & (times <= np.uint64(last))
    if not in_window.all():
        near = near.take(in_window)
    replaced = _replaced(record, own, near.tails)
    return near.take(~replaced) if replaced.any() else near


def _replaced(record: Record, own: Words, tails: Words) -> NDArray[np.bool_]:
    """Return a mask of versions that were replaced: of an id's earlier versions only the last can be in force."""
    replaced = np.zeros(len(tails), np.bool_)
    owners = np.sort(tails[:, 0])
    if not (owners[1:] == owners[:-1]).any():
        return replaced
    before = _arrived_before(tails, (record.time_ms, record.sequence, *own.tolist())).nonzero()[0]
    order = before[np.lexsort(tails[before][:, (3, 2, _SEQUENCE, _TIME, 1, 0)].T)]
    followed = _alike(tails[order[1:]], tails[order[:-1]].T, _OWNER)
    replaced[order[:-1][followed]] = True
    return replaced


def _arrived_before(tails: Words, arrival: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the tails that arrived earlier than this; compared as ``Arrival`` compares."""
    before = np.zeros(len(tails), np.bool_)
    tied = np.ones(len(tails), np.bool_)
    for column, value in zip(_ARRIVAL, arrival, strict=True):
        words = tails[:, column]
        before |= tied & (words < np.uint64(value))
        tied &= words == np.uint64(value)
    return before


def _limit(record: Record, own: Words, near: _Near, settings: JudgeSettings, *, truncated: bool) -> int:
    """Return how many candidates to read: all, or fewer in a crowd, where the verdict says that it is truncated."""
    count = len(near.tails)
    if count <= settings.verifications_max and not truncated:
        return count
    if not settings.verify or not any(lane_of(key) == LANE_MINHASH for key in record.keys):
        return min(count, settings.verifications_max)
    supported = int(np.count_nonzero((near.minhash != _NOT_FOUND) | _alike(near.tails, own, _DIGEST)))
    return min(count, supported + CROWDED_VERIFICATIONS_MAX, settings.verifications_max)


def _best(own: Words, near: _Near, count: int, settings: JudgeSettings) -> Numbers:
    """Return the indexes of the ``count`` versions to read, best first.

    With verification the sketch decides, and lane 1 estimates it; without, the fingerprint decides. Versions with the
    same title and text, known by the digest in their reference, come first. Among equals the earliest comes first,
    which in a flood is the original.
    """
    lanes = (near.minhash, near.simhash) if settings.verify else (near.simhash, near.minhash)
    rank = (~_alike(near.tails, own, _DIGEST)).astype(np.uint64)
    for byte in (*lanes, _NOT_FOUND - np.minimum(near.keys, _NOT_FOUND)):
        rank = rank << np.uint64(8) | byte.astype(np.uint64)
    return _first(count, [rank, near.tails[:, _TIME], near.tails[:, _SEQUENCE]], near.tails[:, _REFERENCE])


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


def _references(tails: Words) -> tuple[bytes, ...]:
    packed = tails[:, _REFERENCE].astype(">u8").tobytes()
    return tuple(_cut(packed, REFERENCE_BYTES))


def _cut(packed: bytes, width: int) -> Iterator[bytes]:
    return (packed[start : start + width] for start in range(0, len(packed), width))
