"""Calls that may take very long: each runs in a thread of its own, which can be abandoned."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Call(Generic[_Answer]):
    """One call in a thread. An abandoned thread ends when its call returns, and releases the client then."""

    def __init__(self, call: Callable[[], _Answer]) -> None:
        self._over = threading.Event()
        self._answers: list[_Answer] = []
        self._error: Exception | None = None
        threading.Thread(target=self._run, args=(call,), name="call", daemon=True).start()

    def ended(self, wait_s: float) -> bool:
        """Wait up to ``wait_s`` seconds, and return whether the call has ended."""
        return self._over.wait(wait_s)

    def result(self) -> _Answer:
        """Return the result of the call, or raise its error; only after it has ended."""
        if self._error is not None:
            raise self._error
        return self._answers[0]

    def _run(self, call: Callable[[], _Answer]) -> None:
        try:
            self._answers.append(call())
        except Exception as error:  # noqa: BLE001  # raised again by result()
            self._error = error
        finally:
            self._over.set()
