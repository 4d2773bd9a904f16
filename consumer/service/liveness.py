"""Whether the threads that work on records make progress: what ``/healthz`` says, and what the log has of it."""

import logging

from consumer.telemetry.health import Health

log = logging.getLogger("dupwatch")


class Liveness:
    """Tells which threads hang. The stack of each is logged, once, and not answered: probes need no token."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._told: frozenset[str] = frozenset()

    def troubles(self) -> list[str]:
        """Return a line for each thread that hangs; nothing if the service is alive."""
        hanging = self._health.hanging_threads()
        for late in hanging:
            if late.thread not in self._told:
                log.error(
                    "The %s thread has made no progress for %.0f s. Its stack:\n%s",
                    late.thread,
                    late.silent_s,
                    late.stack,
                )
        self._told = frozenset(late.thread for late in hanging)
        return [f"The {late.thread} thread has made no progress for {late.silent_s:.0f} s." for late in hanging]
