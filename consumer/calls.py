"""Calls of a client that may not come back: each in a thread of its own, which can be left behind."""

import threading
from collections.abc import Callable


class Call:
    """One call under way. A thread that was left ends when its call does, and then lets go of the client."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._over = threading.Event()
        self._error: Exception | None = None
        threading.Thread(target=self._run, args=(call,), name="kafka-call", daemon=True).start()

    def ended(self, wait_s: float) -> bool:
        """Whether it came back, within so many seconds."""
        return self._over.wait(wait_s)

    def result(self) -> None:
        """Raise what the call raised, once it has come back."""
        if self._error is not None:
            raise self._error

    def _run(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001  # raised again where the result is asked for
            self._error = error
        finally:
            self._over.set()
