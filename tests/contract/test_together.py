"""Calls that a store is asked to write together: they work as by themselves, and the store has all of them after."""

import pytest

from storage.interface import Store
from storage.postings import KeyedCode
from tests.builders import make_tombstone, make_version

VERSIONS = [make_version(f"article {number}", b"content %d" % number) for number in range(3)]
FIRST = VERSIONS[0].record
VERDICT = b'{"outcome":"unique"}'


def calls_of_a_batch(store: Store) -> list[object]:
    """Call all that a batch calls; what each call returned."""
    references = [version.record.reference for version in VERSIONS]
    records = [version.record for version in VERSIONS]
    answers: list[object] = [
        store.retract([make_tombstone(FIRST.id, sequence=9)]),
        store.create(VERSIONS),
    ]
    store.add(records)
    answers += [
        [sorted(row.postings["reference"].tolist()) for row in store.look_up(FIRST.keys)],
        [len(row.postings) for row in store.seek([KeyedCode(FIRST.keys[0], FIRST.fingerprint)], 9)],
        store.settle([(reference, VERDICT) for reference in references[:2]]),
        store.settle([(references[0], b"another")]),
        store.read([*references, b"?" * len(references[0])]),
    ]
    store.remove(records[1:])
    return [
        *answers,
        [len(row.postings) for row in store.look_up(records[1].keys)],
        store.bodies(references),
        store.history(FIRST.id_hash),
    ]


def contents(store: Store) -> list[object]:
    """Return what the store holds."""
    keys = sorted({key for version in VERSIONS for key in version.record.keys})
    return [
        sorted(map(repr, store.scan())),
        [row.postings.tobytes() for row in store.look_up(keys)],
        store.bodies([version.record.reference for version in VERSIONS]),
    ]


def test_calls_within_answer_as_by_themselves(store: Store) -> None:
    """Each sees what those before it wrote, and everything is there afterwards; a repetition changes nothing."""
    answers = store.together(lambda: calls_of_a_batch(store))
    held = contents(store)
    assert answers[3:5] == [[1], [True, True]]
    assert calls_of_a_batch(store)[2:] == answers[2:]
    assert contents(store) == held


def test_one_within_another_is_part_of_it(store: Store) -> None:
    """The result is that of the work."""
    stored = store.together(lambda: store.together(lambda: store.create(VERSIONS)) + store.create(VERSIONS[:1]))
    assert [entry.record for entry in stored] == [version.record for version in [*VERSIONS, VERSIONS[0]]]
    assert all(store.read([version.record.reference for version in VERSIONS]))


def test_what_the_work_raises_is_raised(store: Store) -> None:
    """Whatever it is, unchanged; the calls can be repeated."""
    error = OSError("a pipe is closed")

    def work() -> None:
        store.create(VERSIONS)
        raise error

    with pytest.raises(OSError, match="a pipe is closed") as raised:
        store.together(work)
    assert raised.value is error
    assert len(store.together(lambda: store.create(VERSIONS))) == len(VERSIONS)
