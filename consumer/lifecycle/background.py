"""Work in threads of its own: calls that may take very long and can be abandoned, and looks at files."""

import logging
import threading
from collections.abc import Callable
from typing import Final, Generic, Self, TypeVar

from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.turns import Turns
from consumer.model.errors import StoppedBeforeStart

log = logging.getLogger("dupwatch")

Result = TypeVar("Result")

PAUSE_S: Final = 1.0
"""The pause between two looks: what changes in a file counts this much later."""
_END_S: Final = 1.0
"""How long the end waits for the last look. One that hangs is left behind; its thread does not keep the process."""
_CHECK_EVERY_S: Final = 0.1


class Call(Generic[Result]):
    """One call in a thread. An abandoned thread ends when its call returns, and releases the client then."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._over = threading.Event()
        self._answers: list[Result] = []
        self._error: Exception | None = None
        threading.Thread(target=self._run, args=(call,), name="call", daemon=True).start()

    def ended(self, wait_s: float) -> bool:
        """Wait up to ``wait_s`` seconds, and return whether the call has ended."""
        return self._over.wait(wait_s)

    def result(self) -> Result:
        """Return the result of the call, or raise its error; only after it has ended."""
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
    """Calls ``look`` with pauses while the context is open, so that nobody else waits for a file system that hangs.

    For one of its own errors ``look`` raises nothing.
    """

    def __init__(self, name: str, look: Callable[[], None], pause_s: float = PAUSE_S) -> None:
        self._look = look
        self._pause_s = pause_s
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        while not self._left.wait(self._pause_s):
            try:
                self._look()
            except Exception:
                # The next look may find another file.
                log.exception("A look at files failed (%s)", self._thread.name)


class StartUpCalls:
    """Makes calls to stores and brokers while a run is built, and reports progress ten times a second meanwhile."""

    def __init__(self, stopping: StopSignal, turns: Turns) -> None:
        self._stopping = stopping
        self._turns = turns

    def proceed(self) -> None:
        """Report progress. Raises ``StoppedBeforeStart`` if the run was asked to stop: there is no batch to finish."""
        self._turns.turn()
        if self._stopping.asked():
            raise StoppedBeforeStart("the run was asked to stop before it had begun")

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call and raise its errors; if the run is asked to stop, abandon the call."""
        call = Call(work)
        while not call.ended(_CHECK_EVERY_S):
            self.proceed()
        return call.result()
