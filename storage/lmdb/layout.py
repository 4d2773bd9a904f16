"""The keys and values of the embedded store's databases, byte by byte, as described in ``docs/operate/row_keys.md``.

All numbers are unsigned and big-endian, so that LMDB sorts them by value.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

import msgspec

from storage.bodies import UnreadableBodyError, unpack_body
from storage.layouts import LAYOUTS
from storage.postings import POSTING_LAYOUTS, PostingLayout
from storage.records import (
    DIGEST_BYTES,
    ID_HASH_BYTES,
    REFERENCE_BYTES,
    Arrival,
    CapacityPlan,
    Record,
    Release,
    Tombstone,
    decode_planned,
)
from storage.seen import SeenTimes, decode_seen, encode_seen

DatabaseName = Literal[
    "postings", "records", "tombstones", "verdicts", "releases", "timeline", "expiry", "bodies", "seen", "meta"
]

DATABASES: Final[dict[DatabaseName, dict[str, bool]]] = {
    "postings": {"dupsort": True, "dupfixed": True},
    "records": {},
    "tombstones": {},
    "verdicts": {},
    "releases": {},
    "timeline": {},
    "expiry": {},
    "bodies": {},
    "seen": {},
    "meta": {},
}
"""The named databases, with LMDB's flags for each."""
ADDED: Final[frozenset[DatabaseName]] = frozenset({"releases", "seen"})
"""Databases that a store created by an earlier version lacks until it is opened for writing."""

LAYOUT_KEY: Final = b"layout"
BY_ARRIVAL: Final = b"4"
"""The layout of this program. In earlier ones all rows of a version are stored under its reference."""
KNOWN_LAYOUTS: Final = (*LAYOUTS, BY_ARRIVAL)
"""The layouts that this program reads. Opening a store for writing raises its layout to the last."""
SETTINGS_KEY: Final = b"settings"
PLAN_KEY: Final = b"plan"
"""The capacity plan; absent unless ``dupwatch store init --articles`` was used."""
CODE_BYTES_KEY: Final = b"code_bytes"
"""The width of the codes of postings, written with the first posting: LMDB packs values of one width only."""

VERSION_KIND: Final = b"v"
TOMBSTONE_KIND: Final = b"t"

_TIMELINE: Final = struct.Struct(f">{ID_HASH_BYTES}sQQ{DIGEST_BYTES}s")
_PLACE_MARK: Final = b"\xff"
"""The byte after the id hash in the key of a place. No arrival's time begins with it."""
_WRITTEN: Final = struct.Struct(">Q")
_ROW: Final = struct.Struct(f">Q{REFERENCE_BYTES}s")


class _RecordHead(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of a record up to its sketch, in order; all but the first and the last are skipped."""

    reference: bytes
    id: msgspec.Raw
    time_ms: msgspec.Raw
    sequence: msgspec.Raw
    scheme: msgspec.Raw
    kind: msgspec.Raw
    fingerprint: msgspec.Raw
    one_bits: msgspec.Raw
    keys: msgspec.Raw
    sketch: bytes


_Decoded = TypeVar("_Decoded", Record, _RecordHead)

_decode_record: Final = msgspec.msgpack.Decoder(Record).decode
_decode_record_head: Final = msgspec.msgpack.Decoder(_RecordHead).decode
_decode_tombstone: Final = msgspec.msgpack.Decoder(Tombstone).decode
_MALFORMED: Final = (msgspec.DecodeError, UnicodeDecodeError)


class UnreadableError(Exception):
    """Bytes of the store that this layout cannot have written; the message says what is wrong."""


def decode_record(reference: bytes, value: bytes) -> Record:
    """Decode the record stored under this reference. Raises ``UnreadableError``."""
    record = _record(reference, value, _decode_record)
    width_bytes = len(record.fingerprint)
    if width_bytes not in POSTING_LAYOUTS:
        raise UnreadableError(f"the record of {reference.hex()} has a fingerprint of {width_bytes} bytes")
    return record


def decode_sketch(reference: bytes, value: bytes) -> bytes:
    """Decode only the sketch of the record stored under this reference. Raises ``UnreadableError``."""
    return _record(reference, value, _decode_record_head).sketch


def decode_tombstone(reference: bytes, value: bytes | None) -> Tombstone:
    """Decode the tombstone stored under this reference. Raises ``UnreadableError``, including when it is missing."""
    try:
        tombstone = _decode_tombstone(value or b"")
    except _MALFORMED as error:
        raise UnreadableError(f"the tombstone {reference.hex()} cannot be read ({error})") from error
    if tombstone.reference != reference:
        raise UnreadableError(f"the tombstone stored under {reference.hex()} belongs to another retraction")
    return tombstone


def decode_body(reference: bytes, packed: bytes) -> str:
    """Decompress the text of a version. Raises ``UnreadableError``."""
    try:
        return unpack_body(packed)
    except UnreadableBodyError as error:
        raise UnreadableError(f"the text of {reference.hex()} cannot be read") from error


def decode_code_bytes(value: bytes) -> PostingLayout:
    """Return the layout of the postings whose codes have this width. Raises ``UnreadableError``."""
    try:
        return POSTING_LAYOUTS[int(value)]
    except (ValueError, KeyError) as error:
        raise UnreadableError(f"the width of the postings' codes cannot be {value!r}") from error


def read_planned(value: bytes) -> CapacityPlan:
    """Decode the capacity plan of the store. Raises ``UnreadableError``."""
    try:
        return decode_planned(value)
    except ValueError as error:
        raise UnreadableError(f"its plan cannot be read ({error})") from error


def timeline_key(arrival: Arrival) -> bytes:
    """Encode id hash, time, sequence and digest, so that an id's versions and tombstones sort by arrival."""
    reference = arrival.reference
    return _TIMELINE.pack(reference, arrival.time_ms, arrival.sequence, reference[ID_HASH_BYTES:])


def timeline_end(id_hash: bytes) -> bytes:
    """Return a key after all arrivals of this id, and before the places of its versions."""
    return id_hash + _PLACE_MARK


def place_key(reference: bytes) -> bytes:
    """Return the key in ``timeline`` under which a version's place is stored.

    It sorts after the arrivals of the version's id, so that one page usually holds the timeline of an id and the places
    of its versions.
    """
    return reference[:ID_HASH_BYTES] + _PLACE_MARK + reference[ID_HASH_BYTES:]


def is_place(timeline_key: bytes) -> bool:
    """Return whether this key of ``timeline`` is that of a place rather than of an arrival."""
    return timeline_key[ID_HASH_BYTES : ID_HASH_BYTES + 1] == _PLACE_MARK


def placed_reference(place_key: bytes) -> bytes:
    """Return the reference in the key of a place."""
    return place_key[:ID_HASH_BYTES] + place_key[ID_HASH_BYTES + 1 :]


def place_of(row_key: bytes) -> bytes:
    """Return the place of a version: what its row key has before the reference."""
    return row_key[:-REFERENCE_BYTES]


def decode_arrival(key: bytes) -> Arrival:
    """Return the arrival in a timeline key."""
    id_hash, time_ms, sequence, digest = _unpack(_TIMELINE, key)
    return Arrival(time_ms, sequence, id_hash + digest)


def encode_release(release: Release) -> bytes:
    """Encode the reference that the released version was flagged against, then the event."""
    return release.released_from + release.event


def decode_release(reference: bytes, value: bytes) -> Release:
    """Decode the release of a version. Raises ``UnreadableError``."""
    if len(value) < REFERENCE_BYTES:
        raise UnreadableError(f"the release of {reference.hex()} has {len(value)} bytes")
    return Release(reference, value[REFERENCE_BYTES:], value[:REFERENCE_BYTES])


def encode_seen_entry(written_ms: int, seen: SeenTimes) -> bytes:
    """Encode the time of writing, by which entries expire, then the entry of a text."""
    return _WRITTEN.pack(written_ms) + encode_seen(seen)


def decode_seen_entry(digest: bytes, value: bytes) -> tuple[int, SeenTimes]:
    """Decode the time of writing and the entry of the text with this digest. Raises ``UnreadableError``."""
    try:
        return _WRITTEN.unpack_from(value)[0], decode_seen(value[_WRITTEN.size :])
    except (ValueError, struct.error) as error:
        raise UnreadableError(f"the entry of the text {digest.hex()} cannot be read ({error})") from error


def row_key(at_ms: int, reference: bytes) -> bytes:
    """Encode the time after which an article may be swept, then its reference.

    It is the key of an article in ``expiry``, and of a version's record, verdict and body, so that the rows of a batch
    are next to each other, and the oldest sort first.
    """
    return _ROW.pack(at_ms, reference)


def decode_row_key(key: bytes) -> tuple[int, bytes]:
    """Return the time in milliseconds and the reference in a key of ``expiry``."""
    at_ms, reference = _unpack(_ROW, key)
    return at_ms, reference


def reference_in(key: bytes) -> bytes:
    """Return the reference in the key of a record or body. Earlier layouts have the reference alone as the key."""
    return key[-REFERENCE_BYTES:]


def _record(reference: bytes, value: bytes, decode: Callable[[bytes], _Decoded]) -> _Decoded:
    try:
        record = decode(value)
    except _MALFORMED as error:
        raise UnreadableError(f"the record of {reference.hex()} cannot be read ({error})") from error
    if record.reference != reference:
        raise _misplaced_record(reference)
    return record


def _misplaced_record(reference: bytes) -> UnreadableError:
    return UnreadableError(f"the record stored under {reference.hex()} belongs to another version")


def _unpack(form: struct.Struct, key: bytes) -> tuple[Any, ...]:
    try:
        return form.unpack(key)
    except struct.error as error:
        raise UnreadableError(f"a key has {len(key)} bytes instead of {form.size}") from error
