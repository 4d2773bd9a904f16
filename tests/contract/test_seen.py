"""What is remembered of texts beyond the window."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.interface import Store
from storage.seen import SeenChange, SeenTimes
from tests.builders import TIME_MS
from tests.contract.conftest import Kind, SetClock

DAY_MS = 86_400_000
ONE, TWO = b"1" * 16, b"2" * 16
FIRST = SeenTimes(TIME_MS, TIME_MS, 7, 1)
SECOND = SeenTimes(TIME_MS, TIME_MS + DAY_MS, 8, 2)


def test_nothing_is_remembered_at_first(store: Store) -> None:
    """Of no text, and there is nothing to iterate over."""
    assert store.seen([ONE, TWO]) == [None, None]
    assert list(store.scan_seen()) == []
    assert store.stats().seen_texts == 0
    assert store.seen([]) == []
    assert store.change_seen([]) == []


def test_an_entry_is_changed_from_what_it_was(store: Store) -> None:
    """Each text by itself; what is stored otherwise stays, and a call that is repeated succeeds again."""
    assert store.change_seen([SeenChange(ONE, None, FIRST), SeenChange(TWO, FIRST, SECOND)]) == [True, False]
    assert store.seen([TWO, ONE]) == [None, FIRST]
    assert store.change_seen([SeenChange(ONE, None, FIRST)]) == [True]
    assert store.change_seen([SeenChange(ONE, None, SECOND)]) == [False]
    assert store.change_seen([SeenChange(ONE, FIRST, SECOND), SeenChange(TWO, None, FIRST)]) == [True, True]
    assert dict(store.scan_seen()) == {ONE: SECOND, TWO: FIRST}
    assert store.stats().seen_texts == 2


def test_of_many_that_change_one_entry_at_once_one_succeeds(store: Store) -> None:
    """The others are told, and find what the one has written."""
    wanted = [SeenTimes(TIME_MS, TIME_MS + number, number, 2) for number in range(8)]
    store.change_seen([SeenChange(ONE, None, FIRST)])
    with ThreadPoolExecutor(len(wanted)) as threads:
        done = list(threads.map(lambda after: store.change_seen([SeenChange(ONE, FIRST, after)])[0], wanted))
    assert done.count(True) == 1
    assert store.seen([ONE]) == [wanted[done.index(True)]]


def test_a_whole_batch_and_a_long_scan(store: Store) -> None:
    """More entries than a page of a scan has."""
    entries = {number.to_bytes(16, "big"): SeenTimes(number, TIME_MS, number, 1) for number in range(2_500)}
    assert all(store.change_seen([SeenChange(digest, None, seen) for digest, seen in entries.items()]))
    assert dict(store.scan_seen()) == entries
    assert store.seen(list(entries)) == list(entries.values())


def test_what_was_not_seen_for_long_is_forgotten(kind: Kind, store: Store, clock: SetClock) -> None:
    """By when it was seen and written last, whichever is later; what remains can be found."""
    if not kind.sweeps:
        assert store.forget_seen(1 << 62, 1_000) == 0
        return
    entries = {number.to_bytes(16, "big"): SeenTimes(0, TIME_MS + number, number, 1) for number in range(100)}
    clock.ms = TIME_MS
    store.change_seen([SeenChange(digest, None, seen) for digest, seen in entries.items()])
    assert sum(store.forget_seen(TIME_MS + 40, 30) for _ in range(6)) == 40
    assert dict(store.scan_seen()) == {digest: seen for digest, seen in entries.items() if seen.last_ms >= TIME_MS + 40}
    clock.ms = TIME_MS + DAY_MS
    latest = max(entries)
    store.change_seen([SeenChange(latest, entries[latest], entries[latest]._replace(times=2))])
    # The last one was written again: it is older than that by its arrival alone.
    assert sum(store.forget_seen(TIME_MS + DAY_MS, 30) for _ in range(6)) == 59
    assert [digest for digest, _ in store.scan_seen()] == [latest]


@pytest.mark.parametrize("texts_max", [0, 1])
def test_forgetting_looks_at_no_more_than_it_may(kind: Kind, store: Store, clock: SetClock, texts_max: int) -> None:
    """It is called between batches, and may not hold up the next one."""
    clock.ms = TIME_MS
    store.change_seen([SeenChange(digest, None, FIRST) for digest in (ONE, TWO)])
    forgotten = [store.forget_seen(TIME_MS + 1, texts_max) for _ in range(4)]
    assert max(forgotten) == (texts_max if kind.sweeps else 0)
    assert sum(forgotten) == (2 * texts_max if kind.sweeps else 0)


def test_what_together_undoes_was_never_seen(store: Store) -> None:
    """A store that writes at once writes this too at once."""

    def work() -> None:
        store.change_seen([SeenChange(ONE, None, FIRST)])
        assert store.seen([ONE]) == [FIRST]
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        store.together(work)
    assert store.seen([ONE]) in ([None], [FIRST])
