"""A schema registry that is out of reach: who waits for it, for how long, and who is told."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from consumer.errors import Abandoned
from consumer.monitoring import Monitoring
from consumer.patience import Waiting
from consumer.stopping import Stopping
from consumer.values.registry import RegistryUnavailable

BRIEFLY_S: Final = 15.0
_PAUSE_S: Final = 1.0

Result = TypeVar("Result")


class Briefly:
    """For a command that somebody watches: the registry is asked again for a while, and then the command ends."""

    def __init__(self, seconds: float = BRIEFLY_S, pause_s: float = _PAUSE_S) -> None:
        self._seconds = seconds
        self._pause_s = pause_s

    def call(self, work: Callable[[], Result]) -> Result:
        """As the port says; RegistryUnavailable when the time is up."""
        until_s = time.monotonic() + self._seconds
        while True:
            try:
                return work()
            except RegistryUnavailable:
                if time.monotonic() > until_s:
                    raise
            time.sleep(self._pause_s)


@dataclass(frozen=True, slots=True)
class InputMonitoring(Monitoring):
    """Monitoring of a run whose input needs a registry too: the source is in trouble while either is out of reach.

    It is told by two threads, each of which knows of its own part only.
    """

    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _troubles: dict[str, str] = field(default_factory=dict, init=False)

    def source_trouble(self, why: str | None) -> None:
        """The brokers are out of reach, or are back (None)."""
        self._tell("brokers", why)

    def registry_trouble(self, why: str | None) -> None:
        """The registry is out of reach, or is back (None)."""
        self._tell("registry", why)

    def _tell(self, part: str, why: str | None) -> None:
        with self._lock:
            before = dict(self._troubles)
            if why is None:
                self._troubles.pop(part, None)
            else:
                self._troubles[part] = why
            if self._troubles != before:
                # In a class with slots, super() is another class's.
                Monitoring.source_trouble(self, "; ".join(self._troubles.values()) or None)


def waiting_for_registry(monitoring: InputMonitoring, stopping: Stopping) -> Waiting:
    """What waits for as long as the registry is away, or until the run is to stop: the batch was not begun."""

    def check() -> None:
        if stopping.asked():
            raise Abandoned("the schema registry is out of reach, and the run is to stop")

    return Waiting(check, monitoring.registry_trouble, RegistryUnavailable, "The schema registry")
