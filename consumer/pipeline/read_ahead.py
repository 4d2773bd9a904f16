"""Reads the next batches and sends them to the workers while one is judged."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, Queue
from typing import Generic, TypeVar

Item = TypeVar("Item")


class _End(Generic[Item]):
    """The last item in the queue; with an error, why there are no more."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def read_ahead(items: Iterator[Item], ahead: int) -> Iterator[Item]:
    """Yield the items in order while a thread fetches up to ``ahead`` more; an error is raised in place of its item.

    If ``items`` blocks, only the thread waits: items that were read already are not delayed.
    """
    queue: Queue[Item | _End[Item]] = Queue(ahead)
    closed = threading.Event()

    def fetch() -> None:
        end = _End[Item](None)
        try:
            for item in items:
                queue.put(item)
                if closed.is_set():
                    return
        except BaseException as error:  # noqa: BLE001  # raised again in place of the item; a panic of Rust is no Exception
            end = _End(error)
        queue.put(end)

    threading.Thread(target=fetch, name="read-ahead", daemon=True).start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        closed.set()
        # A thread that waits for room gets it, sees that the reader has left, and ends.
        with suppress(Empty):
            while True:
                queue.get_nowait()
