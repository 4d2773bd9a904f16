"""Policies for retrying calls to a service that is out of reach: a store, a schema registry or a database."""

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
_PROCEED_EVERY_S: Final = 0.1


class RetryPolicy(Protocol):
    """The behaviour of a run while a service that it calls is out of reach."""

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call, repeatedly if necessary, and return its result.

        Raises the error of ``work``, or an error that ends the wait, such as ``Abandoned``.
        """
        ...


class NoRetry(RetryPolicy):
    """A policy that makes each call once, for runs that end with their input. Stores themselves retry for a while."""

    @override
    def call(self, work: Callable[[], Result]) -> Result:
        return work()


class RetrySubject(NamedTuple):
    """A service that calls wait for.

    ``part`` and ``reporter`` identify it in reports of outages. Calls raise ``error`` while it is out of reach.
    ``name`` is its name in the log.
    """

    part: RunPart
    reporter: str
    error: type[Exception]
    name: str


class RetryUntilReachable(RetryPolicy):
    """A policy that repeats a call until it succeeds, with random pauses that grow up to 5 seconds.

    ``subject`` is out of reach when a call raises its error. Each failure reports an outage with its reason, and
    each success reports that there is none. ``proceed`` is called ten times a second during the pauses; its exceptions
    end the wait.
    """

    def __init__(self, proceed: Callable[[], None], hooks: Hooks, subject: RetrySubject) -> None:
        self._proceed = proceed
        self._hooks = hooks
        self._subject = subject

    @override
    def call(self, work: Callable[[], Result]) -> Result:
        pauses = _PAUSES.pauses()
        name, waited = self._subject.name, False
        while True:
            try:
                result = work()
            except self._subject.error as error:
                if not waited:
                    log.warning("%s is out of reach; waiting for it: %s", name, error)
                waited = True
                self._report(str(error))
                self._sleep(next(pauses))
                continue
            if waited:
                log.warning("%s is within reach again", name)
            self._report(None)
            return result

    def _report(self, why: str | None) -> None:
        self._hooks.report(Outage(self._subject.part, self._subject.reporter, why))

    def _sleep(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self._proceed()
            time.sleep(min(left_s, _PROCEED_EVERY_S))


class StoreRetry(RetryUntilReachable):
    """A policy that waits for a store, and reports its outages."""

    def __init__(self, proceed: Callable[[], None], hooks: Hooks) -> None:
        super().__init__(proceed, hooks, RetrySubject("store", "run", StoreUnavailable, "The store"))
