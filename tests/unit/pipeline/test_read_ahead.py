"""Reading ahead: in order, bounded, with errors in their place, and without threads left over."""

import threading
import time
from collections.abc import Iterator
from itertools import count

import pytest

from consumer.pipeline.preparation import read_ahead

PATIENCE_S = 120.0


def threads() -> list[threading.Thread]:
    """The threads that read ahead."""
    return [thread for thread in threading.enumerate() if thread.name == "read-ahead"]


def await_end() -> None:
    """Wait until no thread reads ahead."""
    for thread in threads():
        thread.join(PATIENCE_S)
    assert threads() == []


@pytest.mark.parametrize("ahead", [1, 2, 50])
def test_items_come_in_order_and_all_of_them(ahead: int) -> None:
    """For any number of items that are read ahead."""
    assert list(read_ahead(iter(range(20)), ahead)) == list(range(20))
    assert list(read_ahead(iter(()), ahead)) == []
    await_end()


class Panic(BaseException):
    """What a compiled library raises where it has a defect."""


@pytest.mark.parametrize("error", [LookupError("broken off"), Panic("broken off")])
def test_an_error_is_raised_in_its_place(error: BaseException) -> None:
    """It is raised unchanged, after the items before it; the reader would wait forever for what is never read."""

    def failing() -> Iterator[int]:
        yield 1
        yield 2
        raise error

    items = read_ahead(failing(), 5)
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(type(error), match="broken off"):
        next(items)
    await_end()


def test_no_more_is_read_ahead_than_asked() -> None:
    """While the first item is processed, at most ``ahead`` items wait, and the thread has one more."""
    fetched: list[int] = []

    def noted() -> Iterator[int]:
        for number in range(100):
            fetched.append(number)
            yield number

    items = read_ahead(noted(), 3)
    next(items)
    deadline_s = time.monotonic() + PATIENCE_S
    while len(fetched) < 5 and time.monotonic() < deadline_s:
        time.sleep(0.001)
    time.sleep(0.05)
    waiting = len(fetched) - 1
    list(items)
    await_end()
    assert waiting == 4


def test_closing_ends_a_thread_that_waits_for_room() -> None:
    """A reader that stops early leaves no thread behind that uses the source."""
    for _ in range(20):
        items = read_ahead(count(), 1)
        next(items)
        items.close()  # type: ignore[attr-defined]  # a generator
    await_end()


def test_what_was_read_is_not_held_up_by_a_slow_source() -> None:
    """An item is passed on although the next one has not arrived."""
    released = threading.Event()

    def slow() -> Iterator[str]:
        yield "at once"
        released.wait(PATIENCE_S)
        yield "later"

    items = read_ahead(slow(), 2)
    assert next(items) == "at once"
    assert not released.is_set()
    released.set()
    assert list(items) == ["later"]
    await_end()
