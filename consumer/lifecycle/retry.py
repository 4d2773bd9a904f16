"""Retrying calls to what is out of reach, a store most often: how long, and what is reported meanwhile."""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeVar

from typing_extensions import override

from consumer.model.hooks import Hooks, Outage, RunPart
from storage.backoff import Backoff
from storage.errors import StoreUnavailable

log = logging.getLogger("dupwatch")

Result = TypeVar("Result")

_PAUSES: Final = Backoff(0.1, 5.0, jitter=0.5)
_SLICE_S: Final = 0.1


class RetryPolicy(Protocol):
    """What a run does while its store, or its schema registry, is out of reach."""

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call, more than once if need be, and return its result.

        Called for each call of the detector, and for each request to the registry. Raises the error of ``work``, or
        ``Abandoned`` where it is not worth waiting any more.
        """
        ...


class NoRetry(RetryPolicy):
    """Makes each call once, for interactive runs: the store has retried until its own deadline, so the run ends."""

    @override
    def call(self, work: Callable[[], Result]) -> Result:
        return work()


class RetrySubject(NamedTuple):
    """What is waited for: its part of the run, who reports its outages, the error of one, and its name in the log."""

    part: RunPart
    reporter: str
    error: type[Exception]
    what: str


class RetryUntilReachable(RetryPolicy):
    """Repeats a call until it succeeds, with random pauses that grow up to 5 seconds.

    ``awaited`` is out of reach when a call raises its error. The outage is reported with the reason each time, and with
    None after success. ``proceed`` is called ten times a second meanwhile, and what it raises ends the wait.
    """

    def __init__(self, proceed: Callable[[], None], hooks: Hooks, awaited: RetrySubject) -> None:
        self._proceed = proceed
        self._hooks = hooks
        self._awaited = awaited

    @override
    def call(self, work: Callable[[], Result]) -> Result:
        pauses = _PAUSES.pauses()
        what, waited = self._awaited.what, False
        while True:
            try:
                result = work()
            except self._awaited.error as error:
                if not waited:
                    log.warning("%s is out of reach, waiting for it: %s", what, error)
                waited = True
                self._report(str(error))
                self._sleep(next(pauses))
                continue
            if waited:
                log.warning("%s is within reach again.", what)
            self._report(None)
            return result

    def _report(self, why: str | None) -> None:
        self._hooks.report(Outage(self._awaited.part, self._awaited.reporter, why))

    def _sleep(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self._proceed()
            time.sleep(min(left_s, _SLICE_S))


class StoreRetry(RetryUntilReachable):
    """Waits for a store, and reports its outage."""

    def __init__(self, proceed: Callable[[], None], hooks: Hooks) -> None:
        super().__init__(proceed, hooks, RetrySubject("store", "run", StoreUnavailable, "The store"))
