"""Calls that may not come back for long: each in a thread of its own, which can be left behind."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Call(Generic[_Answer]):
    """One call under way. A thread that was left ends when its call does, and then lets go of the client."""

    def __init__(self, call: Callable[[], _Answer]) -> None:
        self._over = threading.Event()
        self._answers: list[_Answer] = []
        self._error: Exception | None = None
        threading.Thread(target=self._run, args=(call,), name="call", daemon=True).start()

    def ended(self, wait_s: float) -> bool:
        """Whether it came back, within so many seconds."""
        return self._over.wait(wait_s)

    def result(self) -> _Answer:
        """What the call gave, or raise what it raised; once it has come back."""
        if self._error is not None:
            raise self._error
        return self._answers[0]

    def _run(self, call: Callable[[], _Answer]) -> None:
        try:
            self._answers.append(call())
        except Exception as error:  # noqa: BLE001  # raised again where the result is asked for
            self._error = error
        finally:
            self._over.set()
