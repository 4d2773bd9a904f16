"""From the rows of a look-up to the candidates worth reading.

An article's rows are joined lane by lane, and one pass of numpy over the codes says which postings are near: a look-up
for one article costs a few calls however many rows it read, and a batch is as many of them (docs/decisions/0012).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from consumer.fingerprint import LANE_MINHASH, LANE_SIMHASH
from consumer.settings import ONE_BITS_DISTANCE_MAX, JudgeSettings
from storage.postings import Row, lane_of, layout_of
from storage.records import ID_HASH_BYTES, Arrival, Record


class Candidates(NamedTuple):
    """The versions worth comparing with one article, nearest first, and what was left out to get there.

    ``found`` counts them before the limit was applied, ``suspects`` those of them that are further away than
    ``max_distance`` by fingerprint, or were found by lane 1 only. ``truncated`` says that a row or the list was cut.
    """

    references: tuple[bytes, ...]
    found: int
    truncated: bool
    suspects: int = 0


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
    neighbours = settings.plan.probe_keys(code[np.newaxis], settings.radius).tobytes()
    width = settings.plan.key_bytes
    of_blocks = [neighbours[start : start + width] for start in range(0, len(neighbours), width)]
    return of_blocks + [key for key in record.keys if lane_of(key) != LANE_SIMHASH]


def find_candidates(probes: Sequence[Probe], rows: Mapping[bytes, Row], settings: JudgeSettings) -> list[Candidates]:
    """Pick for each probe what is near by code and within the window, from the rows read under its keys."""
    return [_find(record, keys, rows, settings) for record, keys in probes]


def _find(record: Record, keys: Sequence[bytes], rows: Mapping[bytes, Row], settings: JudgeSettings) -> Candidates:
    lanes: dict[int, list[bytes]] = {LANE_SIMHASH: [], LANE_MINHASH: []}
    truncated = False
    for key in keys:
        row = rows[key]
        lanes[lane_of(key)].append(row.packed)
        truncated |= row.truncated
    by_blocks = _near(record, record.fingerprint, b"".join(lanes[LANE_SIMHASH]), settings.suspect_distance_max)
    by_bands = _near(record, record.one_bits, b"".join(lanes[LANE_MINHASH]), ONE_BITS_DISTANCE_MAX)
    chosen = _choose(record, by_blocks + by_bands, settings)
    kept = tuple(posting.arrival.reference for posting in chosen[: settings.verifications_max])
    within = {one.arrival.reference for one in by_blocks if one.distance <= settings.max_distance}
    suspects = sum(posting.arrival.reference not in within for posting in chosen)
    return Candidates(kept, len(chosen), truncated or len(chosen) > len(kept), suspects)


def _near(record: Record, code: bytes, postings: bytes, distance_max: int) -> list[_Posting]:
    """The postings whose code is within so many bits of this one."""
    if not postings:
        return []
    layout = layout_of(record)
    near = layout.within(postings, code, distance_max)
    return [_Posting(distance, layout.arrival(posting)) for posting, distance in near.items()]


def _choose(record: Record, postings: Sequence[_Posting], settings: JudgeSettings) -> list[_Posting]:
    """One posting of each version that is worth reading, nearest first."""
    own = record.arrival
    best: dict[bytes, _Posting] = {}
    last_before: dict[bytes, Arrival] = {}
    for posting in postings:
        arrival = posting.arrival
        known = best.get(arrival.reference)
        if known is not None and known.distance <= posting.distance:
            continue
        owner = arrival.reference[:ID_HASH_BYTES]
        if owner == record.id_hash or abs(arrival.time_ms - own.time_ms) > settings.window_ms:
            continue
        best[arrival.reference] = posting
        if arrival < own:
            last_before[owner] = max(last_before.get(owner, arrival), arrival)
    # Of an id's versions that came before, only the last can still be in force: the others need no reading.
    return sorted(
        posting
        for posting in best.values()
        if posting.arrival > own or posting.arrival == last_before[posting.arrival.reference[:ID_HASH_BYTES]]
    )
