"""Retrying calls to what is out of reach, a store most often: how long, and what is reported meanwhile."""

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from typing_extensions import override

from consumer.model.hooks import Hooks, Outage
from storage.backoff import Backoff
from storage.errors import StoreUnavailable

log = logging.getLogger("dupwatch")

Result = TypeVar("Result")

_PAUSES: Final = Backoff(0.1, 5.0, jitter=0.5)
_SLICE_S: Final = 0.1


class Patience(Protocol):
    """What a run does while its store, or its schema registry, is out of reach."""

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call, more than once if need be, and return its result.

        Called for each call of the detector, and for each request to the registry. Raises the error of ``work``, or
        ``Abandoned`` where it is not worth waiting any more.
        """
        ...


class NoPatience(Patience):
    """Makes each call once, for interactive runs: the store has retried until its own deadline, so the run ends."""

    @override
    def call(self, work: Callable[[], Result]) -> Result:
        return work()


class UntilReachable(Patience):
    """Repeats a call until it succeeds, with random pauses that grow up to 5 seconds.

    ``what`` names the thing that is waited for in the log. It is out of reach when a call raises ``away``; ``report``
    is called with the reason each time, and with None after success. ``proceed`` is called ten times a second
    meanwhile, and what it raises ends the wait.
    """

    def __init__(
        self, proceed: Callable[[], None], report: Callable[[str | None], None], away: type[Exception], what: str
    ) -> None:
        self._proceed = proceed
        self._report = report
        self._away = away
        self._what = what

    @override
    def call(self, work: Callable[[], Result]) -> Result:
        pauses = _PAUSES.pauses()
        waited = False
        while True:
            try:
                result = work()
            except self._away as error:
                if not waited:
                    log.warning("%s is out of reach, waiting for it: %s", self._what, error)
                waited = True
                self._report(str(error))
                self._sleep(next(pauses))
                continue
            if waited:
                log.warning("%s is within reach again.", self._what)
            self._report(None)
            return result

    def _sleep(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self._proceed()
            time.sleep(min(left_s, _SLICE_S))


class UntilStoreReachable(UntilReachable):
    """Waits for a store, and reports its outage."""

    def __init__(self, proceed: Callable[[], None], hooks: Hooks) -> None:
        def report(why: str | None) -> None:
            hooks.report(Outage("store", "run", why))

        super().__init__(proceed, report, StoreUnavailable, "The store")
