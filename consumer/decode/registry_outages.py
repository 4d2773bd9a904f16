"""Waiting for a schema registry that is out of reach: for how long, and what is reported meanwhile."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from typing_extensions import override

from consumer.decode.registry import RegistryUnavailable
from consumer.lifecycle.retry import Patience, UntilReachable
from consumer.lifecycle.stopping import Stopping
from consumer.lifecycle.turns import Turns
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage

BRIEFLY_S: Final = 15.0
_PAUSE_S: Final = 1.0

Result = TypeVar("Result")


class Briefly(Patience):
    """For an interactive command: the registry is retried for a while, then the command ends."""

    def __init__(self, seconds: float = BRIEFLY_S, pause_s: float = _PAUSE_S) -> None:
        self._seconds = seconds
        self._pause_s = pause_s

    @override
    def call(self, work: Callable[[], Result]) -> Result:
        """Raise RegistryUnavailable when the time is over."""
        until_s = time.monotonic() + self._seconds
        while True:
            try:
                return work()
            except RegistryUnavailable:
                if time.monotonic() > until_s:
                    raise
            time.sleep(self._pause_s)


def waiting_for_registry(hooks: Hooks, stopping: Stopping) -> UntilReachable:
    """Return what waits until the registry is back or the run is asked to stop: the batch has not begun."""
    turns = Turns(hooks)

    def proceed() -> None:
        turns.turn()
        if stopping.asked():
            raise Abandoned("the schema registry is out of reach, and the run is to stop")

    def report(why: str | None) -> None:
        hooks.report(Outage("source", "registry", why))

    return UntilReachable(proceed, report, RegistryUnavailable, "The schema registry")
