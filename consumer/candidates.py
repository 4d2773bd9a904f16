"""From the rows of a look-up to the candidates worth reading: array work over a whole batch of postings."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consumer.settings import ONE_BITS_DISTANCE_MAX, JudgeSettings
from storage.postings import PostingArray, Row, lane_of
from storage.records import ID_HASH_BYTES, Arrival, Record


class Candidates(NamedTuple):
    """The versions worth comparing with one article, nearest first, and what was left out to get there.

    ``found`` counts them before the limit was applied; ``truncated`` says that a row or the list was cut.
    """

    references: tuple[bytes, ...]
    found: int
    truncated: bool


class Probe(NamedTuple):
    """One article and the keys under which its like may stand."""

    record: Record
    keys: Sequence[bytes]


class _Posting(NamedTuple):
    """Sorts nearest first, and the earliest of those equally near: in a flood that is the original."""

    distance: int
    arrival: Arrival


def probe_keys(record: Record, settings: JudgeSettings) -> list[bytes]:
    """The keys to read for a record: its own, and with a radius the neighbours of its blocks."""
    if not record.keys or settings.radius == 0:
        return list(record.keys)
    code = np.frombuffer(record.fingerprint, ">u8").astype(np.uint64)
    neighbours = settings.plan.probe_keys(code, settings.radius)[0]
    return [bytes(key) for key in neighbours] + [key for key in record.keys if lane_of(key) != 0]


def find_candidates(probes: Sequence[Probe], rows: Mapping[bytes, Row], settings: JudgeSettings) -> list[Candidates]:
    """Pick for each probe what is near by code and within the window, from the rows read under its keys."""
    owners: list[int] = []
    parts: list[PostingArray] = []
    codes: list[int] = []
    limits: list[int] = []
    for owner, (record, keys) in enumerate(probes):
        own = (int.from_bytes(record.fingerprint), int.from_bytes(record.one_bits))
        for key in keys:
            lane = lane_of(key)
            owners.append(owner)
            parts.append(rows[key].postings)
            codes.append(own[lane])
            limits.append((settings.suspect_distance_max, ONE_BITS_DISTANCE_MAX)[lane])
    near = _near_by_code(parts, codes, limits) if parts else []
    found: dict[int, list[_Posting]] = defaultdict(list)
    for part, index, distance in near:
        posting = parts[part][index]
        arrival = Arrival(int(posting["time_ms"]), int(posting["sequence"]), posting["reference"].tobytes())
        found[owners[part]].append(_Posting(distance, arrival))
    return [
        _choose(record, found.get(owner, []), settings, truncated=any(rows[key].truncated for key in keys))
        for owner, (record, keys) in enumerate(probes)
    ]


def _near_by_code(
    parts: Sequence[PostingArray], codes: Sequence[int], limits: Sequence[int]
) -> list[tuple[int, int, int]]:
    """(part, index in it, distance in bits) of every posting within its part's limit."""
    sizes = np.fromiter((len(part) for part in parts), np.int64, len(parts))
    theirs: NDArray[np.uint64] = np.concatenate([part["code"] for part in parts]).astype(np.uint64)
    ours = np.repeat(np.array(codes, np.uint64), sizes)
    distances = np.bitwise_count(ours ^ theirs)
    hits = np.flatnonzero(distances <= np.repeat(np.array(limits, np.uint8), sizes))
    ends = np.cumsum(sizes)
    part_of = np.searchsorted(ends, hits, side="right")
    index_in = hits - (ends - sizes)[part_of]
    return list(zip(part_of.tolist(), index_in.tolist(), distances[hits].tolist(), strict=True))


def _choose(record: Record, postings: Sequence[_Posting], settings: JudgeSettings, *, truncated: bool) -> Candidates:
    own = record.arrival
    best: dict[bytes, _Posting] = {}
    last_before: dict[bytes, Arrival] = {}
    for posting in postings:
        arrival = posting.arrival
        owner = arrival.reference[:ID_HASH_BYTES]
        if owner == record.id_hash or abs(arrival.time_ms - own.time_ms) > settings.window_ms:
            continue
        known = best.get(arrival.reference)
        if known is None or posting.distance < known.distance:
            best[arrival.reference] = posting
        if arrival < own:
            last_before[owner] = max(last_before.get(owner, arrival), arrival)
    # Of an id's versions that came before, only the last can still be in force: the others need no reading.
    chosen = sorted(
        posting
        for posting in best.values()
        if posting.arrival > own or posting.arrival == last_before[posting.arrival.reference[:ID_HASH_BYTES]]
    )
    kept = tuple(posting.arrival.reference for posting in chosen[: settings.verifications_max])
    return Candidates(kept, len(chosen), truncated or len(chosen) > len(kept))
