"""Reading ahead: the next batches are read and sent to the workers while one is judged."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, Queue
from typing import Generic, TypeVar

Item = TypeVar("Item")


class _End(Generic[Item]):
    """The last thing in the queue: there is no more, or this is why."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error


def read_ahead(items: Iterator[Item], ahead: int) -> Iterator[Item]:
    """Pass the items on in order while a thread fetches up to ``ahead`` more; its error is raised in its place.

    The thread blocks where ``items`` does, so that a slow source delays nothing that has been read already.
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
        except Exception as error:  # noqa: BLE001  # it is raised again where the item would have been
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
        # A thread that waits for room finds some, sees that nobody reads any more, and ends.
        with suppress(Empty):
            while True:
                queue.get_nowait()
