"""Ends a process that was asked to stop and does not."""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from consumer.lifecycle.stopping import Stopping
from consumer.telemetry.health import main_stack

log = logging.getLogger("dupwatch")

_LOOK_S: Final = 0.1
EXIT_CODE: Final = 1


def enforce(stopping: Stopping, ending: Callable[[], None], limit_s: float) -> None:
    """Call ``ending`` when the run is asked to stop, and end the process if it still runs ``limit_s`` later.

    Ending it at any moment is safe: what was not committed is read again. Runs on a daemon thread.
    """

    def watch() -> None:
        while stopping.asked_at_s is None:
            time.sleep(_LOOK_S)
        ending()
        time.sleep(max(0.0, stopping.asked_at_s + limit_s - time.monotonic()))
        log.error(
            "The run did not stop within %.0f s; ending it now. Stack of the main thread:\n%s", limit_s, main_stack()
        )
        os._exit(EXIT_CODE)

    threading.Thread(target=watch, name="deadline", daemon=True).start()
