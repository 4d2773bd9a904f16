"""Known originals: bounded, forgotten in order, recalled by shared keys."""

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.judge.known_originals import ORIGINALS_A_KEY_MAX, KnownOriginals
from storage.records import Record
from tests.builders import make_key, make_record
from tests.chaos.near_articles import SETTINGS, new_text, version_of


def known_record(number: int, *values: int) -> Record:
    """Return a record under these keys."""
    return make_record(f"article {number}", sequence=number, keys=tuple(make_key(value) for value in values))


def flipped(code: bytes, bits: int) -> bytes:
    """Return the code with this many bits flipped."""
    return (int.from_bytes(code) ^ ((1 << bits) - 1)).to_bytes(len(code))


def test_the_one_that_shares_most_keys_is_recalled_first() -> None:
    """The others follow, and originals without a shared key are left out."""
    known = KnownOriginals(10)
    first, two, none = known_record(1, 1, 9), known_record(2, 1, 2), known_record(3, 8)
    for record in (first, two, none):
        known.remember(record)
    assert known.recall(known_record(4, 1, 2, 3), 10) == [two.reference, first.reference]
    assert known.recall(known_record(4, 1, 2, 3), 1) == [two.reference]
    assert known.recall(known_record(4), 10) == []


def test_the_least_recently_repeated_one_is_forgotten() -> None:
    """An original that is repeated again is kept."""
    known = KnownOriginals(2)
    first, second, third = (known_record(number, 7) for number in range(3))
    for record in (first, second, first, third):
        known.remember(record)
    assert set(known.recall(known_record(9, 7), 10)) == {first.reference, third.reference}


def test_copies_are_counted_while_the_original_is_remembered() -> None:
    """Each original has its own count, which restarts after it was forgotten or displaced."""
    known = KnownOriginals(2)
    first, second, third = (known_record(number, number) for number in range(3))
    assert [known.remember(record) for record in (first, first, second, first)] == [1, 2, 1, 3]
    known.forget(first.reference)
    assert known.remember(first) == 1
    assert [known.remember(record) for record in (third, second)] == [1, 1]


def test_what_is_forgotten_is_recalled_no_more() -> None:
    """Forgetting an unknown original does nothing."""
    known = KnownOriginals(2)
    record = known_record(1, 7)
    known.forget(record.reference)
    known.remember(record)
    known.forget(record.reference)
    assert known.recall(record, 10) == []


def test_a_memory_of_none_remembers_nothing() -> None:
    """A capacity of 0 turns it off."""
    known = KnownOriginals(0)
    known.remember(known_record(1, 7))
    assert known.recall(known_record(2, 7), 10) == []


numbers = some.integers(0, 9)


@given(steps=some.lists(some.tuples(some.booleans(), numbers), max_size=60), originals_max=some.integers(0, 5))
def test_it_never_holds_more_than_it_may(steps: list[tuple[bool, int]], originals_max: int) -> None:
    """After any calls it holds the most recent originals that were not forgotten, and only their keys."""
    known = KnownOriginals(originals_max)
    expected: list[int] = []
    for remember, number in steps:
        expected = [remembered for remembered in expected if remembered != number]
        if remember:
            known.remember(known_record(number, number, number + 1))
            expected = [*expected, number][-originals_max:] if originals_max else []
        else:
            known.forget(known_record(number, number, number + 1).reference)
    everything = known_record(99, *range(12))
    assert set(known.recall(everything, 100)) == {known_record(n, n, n + 1).reference for n in expected}
    assert set(known._by_key) == {make_key(value) for n in expected for value in (n, n + 1)}
    assert len(known._copies) == len(expected)


def test_a_key_of_a_crowd_is_passed_over() -> None:
    """Thousands of originals may share a fingerprint; keys that few of them share tell which was copied."""
    known = KnownOriginals(10_000)
    crowd = [known_record(number, 1, 100 + number) for number in range(ORIGINALS_A_KEY_MAX)]
    for record in crowd:
        known.remember(record)
    copy = known_record(99_999, 1, 103)
    assert known.recall(copy, 100) == [crowd[3].reference, *sorted(r.reference for r in crowd if r is not crowd[3])]
    known.remember(known_record(5_000, 1, 7_000))
    assert known.recall(copy, 100) == [crowd[3].reference]


def test_only_what_a_look_up_may_find_is_a_candidate() -> None:
    """Near enough by fingerprint or by one-bit minima; an equal fingerprint is named, as it may be an equal text."""
    known = KnownOriginals(10)
    settings = replace(SETTINGS, reach=8, one_bits_distance_max=12)
    new = known_record(9, 7)
    distances = [(8, 13), (9, 12), (9, 13), (0, 0), (8, 12)]
    originals = [
        msgspec.structs.replace(
            known_record(number, 7),
            fingerprint=flipped(new.fingerprint, bits),
            one_bits=flipped(new.one_bits, one_bits),
        )
        for number, (bits, one_bits) in enumerate(distances)
    ]
    for original in originals:
        known.remember(original)
    known.forget(originals[4].reference)
    found = known.candidates(new, 10, settings)
    assert found.references == tuple(sorted(originals[place].reference for place in (0, 1, 3)))
    assert (found.found, found.truncated, found.same_code) == (3, False, frozenset({originals[3].reference}))
    assert known.candidates(new, 2, settings).found <= 2


def test_a_text_without_keys_is_never_recalled() -> None:
    """No record matches it."""
    known = KnownOriginals(5)
    text = new_text(random.Random("known"))
    empty = version_of("empty", replace(text, bands=()), 0).record
    known.remember(make_record("none", keys=()))
    assert known.recall(empty, 10) == []


@pytest.fixture
def impatient_threads() -> Iterator[None]:
    """Threads that interrupt each other all the time."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before_s)


@pytest.mark.usefixtures("impatient_threads")
def test_threads_may_share_it() -> None:
    """Each remembers, recalls and forgets; no key is lost, and no original is left behind."""
    known, threads = KnownOriginals(20), 4

    def use(thread: int) -> None:
        chance = random.Random(thread)
        for _ in range(3_000):
            number = chance.randrange(40)
            record = known_record(number, number % 3, number)
            known.remember(record)
            known.recall(record, 10)
            if chance.random() < 0.3:
                known.forget(record.reference)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(use, range(threads)))
    for number in range(40):
        known.forget(known_record(number, number % 3, number).reference)
    assert [known.recall(known_record(number, number % 3, number), 10) for number in range(40)] == 40 * [[]]
    assert known.remember(known_record(1, 1)) == 1
