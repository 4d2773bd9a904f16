"""The bytes of the embedded layout are those of ``docs/operate/row_keys.md``, and change only with its version."""

import struct
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import snappy

from storage.bodies import pack_body
from storage.lmdb import LmdbStore, layout
from storage.lmdb.environment import Transaction
from storage.records import Arrival, BankMatch, Record, Release, Tombstone, encode_record, encode_tombstone
from storage.seen import SeenChange, SeenTimes
from tests.builders import make_key, make_record, make_tombstone, make_version
from tests.unit.storage.processes import SMALL

REFERENCE = bytes(range(32))
WRITTEN_MS = 5
ARRIVAL = Arrival(0x0102030405060708, 0x1112131415161718, REFERENCE)


def test_a_timeline_key_is_id_hash_time_sequence_digest() -> None:
    """48 bytes, and back."""
    key = layout.timeline_key(ARRIVAL)
    assert key == REFERENCE[:16] + bytes.fromhex("01020304050607081112131415161718") + REFERENCE[16:]
    assert layout.decode_arrival(key) == ARRIVAL


def test_a_row_key_is_time_and_reference() -> None:
    """40 bytes, and back."""
    key = layout.row_key(0x0102030405060708, REFERENCE)
    assert key == bytes.fromhex("0102030405060708") + REFERENCE
    assert layout.decode_row_key(key) == (0x0102030405060708, REFERENCE)
    assert layout.place_of(key) == bytes.fromhex("0102030405060708")
    assert layout.reference_in(key) == layout.reference_in(REFERENCE) == REFERENCE


def test_a_place_is_after_the_arrivals_of_its_id_and_before_the_next_id() -> None:
    """So that an id's last arrival is found by a step back, and a whole timeline ends there."""
    key = layout.place_key(REFERENCE)
    assert key == REFERENCE[:16] + b"\xff" + REFERENCE[16:]
    assert layout.placed_reference(key) == REFERENCE
    latest = layout.timeline_key(Arrival((1 << 63) - 1, (1 << 64) - 1, REFERENCE))
    assert latest < layout.timeline_end(REFERENCE[:16]) < key < REFERENCE[:15] + b"\x10"
    assert layout.is_place(key)
    assert not layout.is_place(latest)


def test_a_sketch_is_read_without_the_rest_of_its_record() -> None:
    """Of a record of any length; another record, or what is none, is an error."""
    record = make_record(sketch=bytes(range(256)), extracted="page/1", anchors=b"a" * 8, sample=b"b")
    assert layout.decode_sketch(record.reference, encode_record(record)) == record.sketch
    for value in (encode_record(make_record("another")), encode_record(record)[:-800], b"", b"\x90"):
        with pytest.raises(layout.UnreadableError):
            layout.decode_sketch(record.reference, value)


def test_a_body_is_utf8_in_snappy_blocks() -> None:
    """Any Snappy reads it."""
    packed = pack_body("渡轮" * 1_000)
    assert len(packed) < 500
    assert bytes(snappy.decompress(packed)) == ("渡轮" * 1_000).encode()


def test_a_store_holds_just_the_databases_and_bytes_that_are_documented(tmp_path: Path) -> None:
    """One version that is settled and released, one tombstone: every key and value of the file."""
    version = make_version("a", time_ms=5, sequence=6, keys=(make_key(0x0708, number=3), make_key(0x090A, lane=1)))
    record, tombstone = version.record, make_tombstone("b", time_ms=9, sequence=1, place=b"offset")
    store = LmdbStore.open(tmp_path, replace(SMALL, clock=lambda: WRITTEN_MS))
    store.create([version])
    store.add([record])
    store.settle([(record.reference, b"flagged")])
    store.release([Release(record.reference, b"kept", REFERENCE)])
    store.retract([tombstone])
    store.agree(b"settings")
    store.change_seen([SeenChange(record.text_digest, None, SeenTimes(1, 2, 3, 4))])
    databases = store._environment.databases

    def dump(transaction: Transaction) -> dict[str, list[tuple[bytes, bytes]]]:
        return {name: list(transaction.cursor(database).iternext()) for name, database in databases.items()}

    dumped = store._environment.read(dump)
    store.close()
    arrival = bytes(7) + b"\5" + bytes(7) + b"\6"
    row_key = bytes(7) + b"\5" + record.reference
    assert dumped == {
        "postings": [
            (b"\x03\x07\x08", record.fingerprint + record.reference + arrival),
            (b"\x10\x09\x0a", record.one_bits + record.reference + arrival),
        ],
        "records": [(row_key, msgspec.msgpack.encode(msgspec.structs.astuple(record)[:18]))],
        "tombstones": [(tombstone.reference, msgspec.msgpack.encode(msgspec.structs.astuple(tombstone)[:5]))],
        "verdicts": [(row_key, b"flagged")],
        "releases": [(record.reference, REFERENCE + b"kept")],
        "timeline": sorted(
            [
                (record.id_hash + arrival + record.reference[16:], b"v"),
                (record.id_hash + b"\xff" + record.reference[16:], bytes(7) + b"\5"),
                (tombstone.id_hash + bytes(7) + b"\x09" + bytes(7) + b"\1" + tombstone.reference[16:], b"t"),
            ]
        ),
        "expiry": [(row_key, b"v"), (bytes(7) + b"\x09" + tombstone.reference, b"t")],
        "seen": [(record.text_digest, b"".join(number.to_bytes(8, "big") for number in (WRITTEN_MS, 1, 2, 3, 4)))],
        "bodies": [(row_key, pack_body("The ferry came in at dawn."))],
        "meta": [(b"code_bytes", b"8"), (b"layout", b"4"), (b"settings", b"settings")],
    }


def test_a_record_is_an_array_in_the_order_of_its_fields() -> None:
    """So that a field may be added at the end, and only there, without a new layout."""
    record = make_record(published_at=1.5)
    fields = msgspec.msgpack.decode(encode_record(record))
    assert fields[0] == record.reference
    assert fields[1:6] == [record.id, record.time_ms, record.sequence, record.scheme, record.kind]
    assert len(fields) == 18
    stamped = make_record(published_at=1.5, stamped_ms=7)
    assert msgspec.msgpack.decode(encode_record(stamped)) == [*fields, 7]
    assert layout.decode_record(stamped.reference, encode_record(stamped)) == stamped
    page = make_record(published_at=1.5, extracted="article")
    assert msgspec.msgpack.decode(encode_record(page)) == [*fields, None, "article"]
    assert layout.decode_record(page.reference, encode_record(page)) == page
    part = make_record(published_at=1.5, anchors=b"12345678", sample=b"1234")
    assert msgspec.msgpack.decode(encode_record(part)) == [*fields, None, None, b"12345678", b"1234"]
    assert layout.decode_record(part.reference, encode_record(part)) == part
    sent = make_record(published_at=1.5, feed="articles:3")
    assert msgspec.msgpack.decode(encode_record(sent)) == [*fields, None, None, None, None, "articles:3"]
    returned = make_record(published_at=1.5, feed="owner", key="a key", stretch=2)
    assert msgspec.msgpack.decode(encode_record(returned))[22:] == ["owner", "a key", 2]
    assert layout.decode_record(returned.reference, encode_record(returned)) == returned
    known = make_record(published_at=1.5, bank_matches=(BankMatch("spam", "offer", "deny", "part", 0.5),))
    matches = [["spam", "offer", "deny", "part", 0.5]]
    assert msgspec.msgpack.decode(encode_record(known)) == [*fields, *7 * [None], matches]
    assert layout.decode_record(known.reference, encode_record(known)) == known
    assert len(msgspec.structs.fields(Record)) == 26


def test_a_tombstone_keeps_its_bytes_and_may_have_an_origin() -> None:
    """The fields of an origin are omitted at the end if unset."""
    gone = make_tombstone()
    fields = [gone.reference, gone.id, gone.time_ms, gone.sequence, gone.event]
    assert msgspec.msgpack.decode(encode_tombstone(gone)) == fields
    sent = msgspec.structs.replace(gone, feed="articles:3")
    assert msgspec.msgpack.decode(encode_tombstone(sent)) == [*fields, "articles:3"]
    asked = msgspec.structs.replace(gone, feed="owner", key="a key")
    assert msgspec.msgpack.decode(encode_tombstone(asked)) == [*fields, "owner", "a key"]
    for tombstone in (gone, sent, asked):
        assert layout.decode_tombstone(gone.reference, encode_tombstone(tombstone)) == tombstone


class LaterRecord(Record, frozen=True, array_like=True, gc=False):
    """A record of a later version, with another field."""

    region: str | None = None


@pytest.mark.parametrize(("stamped_ms", "region"), [(None, None), (7, None), (None, "north"), (7, "north")])
def test_fields_that_are_added_later_are_encoded(stamped_ms: int | None, region: str | None) -> None:
    """An unset field is omitted at the end only: a field behind it keeps its place, and no value is lost."""
    record = make_record(published_at=1.5, stamped_ms=stamped_ms)
    later = LaterRecord(**msgspec.structs.asdict(record), region=region)
    data = encode_record(later)
    assert msgspec.msgpack.decode(data, type=LaterRecord) == later
    assert layout.decode_record(record.reference, data) == record
    if region is None:
        assert data == encode_record(record)


def test_fields_that_may_be_omitted_have_no_other_default() -> None:
    """What is omitted is read as None."""
    optional = msgspec.structs.fields(Record)[18:]
    names = ["stamped_ms", "extracted", "anchors", "sample", "feed", "key", "stretch", "bank_matches"]
    assert [(field.name, field.default) for field in optional] == [(name, None) for name in names]
    optional = msgspec.structs.fields(Tombstone)[5:]
    assert [(field.name, field.default) for field in optional] == [("feed", None), ("key", None)]


def test_a_record_written_before_a_field_was_added_is_read_with_its_default() -> None:
    """The last fields have defaults: a shorter array is a whole record."""
    record = make_record()
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(encode_record(record))[:-2])
    assert layout.decode_record(record.reference, older) == record


@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_numbers_that_do_not_fit_are_no_silent_wrap_around(number: int) -> None:
    """Such an arrival cannot be stored at all."""
    with pytest.raises(struct.error):
        layout.timeline_key(Arrival(number, 0, REFERENCE))
