"""A store whose calls wait, or fail, while a test says so."""

import threading

from storage.errors import StoreUnavailable
from storage.interface import Store
from storage.watched import WatchedStore
from tests.unit.service.serving import WAIT_S


class Gate:
    """Lets calls of a store pass, holds them up, or makes them fail."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._changed = threading.Condition()
        self.waiting = 0
        self.is_away = False

    def around(self, store: Store) -> Store:
        """Return a store whose calls pass here first."""
        return WatchedStore.interruptible(store, self._pass)

    def close(self) -> None:
        """Hold up calls from now on."""
        self._open.clear()

    def open(self) -> None:
        """Let them pass."""
        self._open.set()

    def wait_for(self, calls: int) -> None:
        """Wait until so many calls are held up."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.waiting == calls, WAIT_S), self.waiting

    def _pass(self) -> None:
        if self.is_away:
            raise StoreUnavailable("the gateway at 10.1.2.3:9090 refuses connections")
        self._note(1)
        try:
            assert self._open.wait(WAIT_S)
        finally:
            self._note(-1)

    def _note(self, more: int) -> None:
        with self._changed:
            self.waiting += more
            self._changed.notify_all()
