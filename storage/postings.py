"""Postings: how a version is found by its keys.

A posting is 56 bytes, the same in every store::

    0      8                              40        48         56
    | code | reference (id hash, digest)  | time_ms | sequence |
    | 8    | 32                           | 8       | 8        |

*code* is what candidates are told apart by without reading their records: the fingerprint in lane 0, the one-bit minima
in lane 1. *time_ms* and *sequence* are the arrival, unsigned: the window is checked from them, and which of an id's
versions can be in force. All numbers are big-endian, so that the postings of a row sort by code, then by reference.
The first byte of a key is ``lane << 4 | number``.
"""

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.records import REFERENCE_BYTES, Record

POSTING = np.dtype(
    [("code", ">u8"), ("reference", f"V{REFERENCE_BYTES}"), ("time_ms", ">u8"), ("sequence", ">u8")],
)
POSTING_BYTES = POSTING.itemsize
_LANE_SHIFT = 4
_ARRIVAL = struct.Struct(">QQ")

PostingArray = NDArray[Any]
"""A one-dimensional array of dtype ``POSTING``."""


class Row(NamedTuple):
    """What was read under one key; ``truncated``: the row is wider than the store's cap, and its rest was not read."""

    postings: PostingArray
    truncated: bool


def lane_of(key: bytes) -> int:
    """The lane that a posting key belongs to."""
    return key[0] >> _LANE_SHIFT


def postings_of(record: Record) -> list[tuple[bytes, bytes]]:
    """Every (key, posting) under which a version is to be found; none where it has no keys."""
    tail = record.reference + _ARRIVAL.pack(record.time_ms, record.sequence)
    codes = (record.fingerprint, record.one_bits)
    return [(key, codes[lane_of(key)] + tail) for key in record.keys]
