"""Postings of anchors, in a lane of their own."""

from storage.interface import Store
from storage.postings import all_keys, part_keys, postings_of
from storage.records import Version
from tests.builders import make_record, make_version

ANCHORS = bytes(range(16 * 8))


def test_anchors_are_posted_and_found_like_other_keys(store: Store) -> None:
    """Sixteen rows more, with the fingerprint as the code; deleted with the others."""
    record, other = make_record("a", anchors=ANCHORS, sample=b"sample"), make_record("b", b"other")
    store.add([record, other])
    keys = part_keys(record)
    assert keys == [b"\x20" + ANCHORS[start : start + 5] for start in range(0, 128, 8)]
    assert [row.packed for row in store.look_up(keys)] == [
        posting for key, posting in postings_of(record) if key in keys
    ]
    store.remove([record])
    assert [row.packed for row in store.look_up(sorted(all_keys(record)))] == [b""] * len(all_keys(record))
    assert [len(row.postings) for row in store.look_up(other.keys)] == [1] * len(other.keys)


def test_a_version_keeps_its_anchors_and_its_sample(store: Store) -> None:
    """Those that were stored first: a replay may have others."""
    version = make_version("a")
    first = Version(make_record("a", anchors=ANCHORS, sample=b"1234"), version.body)
    assert store.create([first])[0].record == first.record
    again = Version(make_record("a", anchors=ANCHORS[:8], sample=b"1234"), version.body)
    assert store.create([again])[0].record == first.record
    assert store.settle([(first.record.reference, b"kept")], [first.record]) == [True]
    (stored,) = store.read([first.record.reference])
    assert stored is not None
    assert (stored.record.anchors, stored.record.sample) == (ANCHORS, b"1234")
