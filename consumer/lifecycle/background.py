"""Background threads: calls that may hang and can be abandoned, and periodic checks."""

import logging
import threading
from collections.abc import Callable
from typing import Final, Generic, Self, TypeVar

from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.errors import StoppedBeforeStart

log = logging.getLogger("dupwatch")

Result = TypeVar("Result")

PAUSE_S: Final = 1.0
"""The pause between two checks, and so about the longest time until a change of a file is noticed."""
_END_S: Final = 1.0
"""How long closing waits for a running check. A check that hangs is abandoned; it does not keep the process alive."""
_CHECK_EVERY_S: Final = 0.1


class Call(Generic[Result]):
    """A call in its own thread. An abandoned call continues there, and may keep a client in use until it returns."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._over = threading.Event()
        self._answers: list[Result] = []
        self._error: Exception | None = None
        threading.Thread(target=self._run, args=(call,), name="call", daemon=True).start()

    def wait(self, wait_s: float) -> bool:
        """Wait up to ``wait_s`` seconds, and return whether the call has ended."""
        return self._over.wait(wait_s)

    def result(self) -> Result:
        """Return the result of the call, or raise its error. The call must have ended."""
        if self._error is not None:
            raise self._error
        return self._answers[0]

    def _run(self, call: Callable[[], Result]) -> None:
        try:
            self._answers.append(call())
        except Exception as error:  # noqa: BLE001  # raised again by result()
            self._error = error
        finally:
            self._over.set()


class PeriodicCheck:
    """A check that runs periodically while the context is open, in a thread, because a file system or broker may hang.

    ``check`` must handle expected errors itself. Other errors are logged, and do not end the checks.
    """

    def __init__(self, name: str, check: Callable[[], None], pause_s: float = PAUSE_S) -> None:
        self._check = check
        self._pause_s = pause_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        while not self._closed.wait(self._pause_s):
            try:
                self._check()
            except Exception:
                # Not fatal: the next check may succeed.
                log.exception("A periodic check failed (%s)", self._thread.name)


class StartUpCalls:
    """Calls to stores and brokers while a run is built; progress is reported ten times a second during each."""

    def __init__(self, stopping: StopSignal, progress: ThreadProgress) -> None:
        self._stopping = stopping
        self._progress = progress

    def proceed(self) -> None:
        """Report progress. Raises ``StoppedBeforeStart`` if the run was asked to stop, since no batch has begun."""
        self._progress.report()
        if self._stopping.requested():
            raise StoppedBeforeStart("the run was asked to stop before it had begun")

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call and return its result. Raises the errors of ``work``.

        If the run is asked to stop, abandons the call and raises ``StoppedBeforeStart``.
        """
        call = Call(work)
        while not call.wait(_CHECK_EVERY_S):
            self.proceed()
        return call.result()
