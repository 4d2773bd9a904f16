"""How much memory a process has taken for itself at most, watched from outside."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumer.telemetry.own_memory import own_memory_bytes

_EVERY_S = 0.002
MB = 1 << 20


class Peak:
    """The most that was seen, in megabytes."""

    def __init__(self) -> None:
        self.mb = 0.0


@contextmanager
def watched(pid: int) -> Iterator[Peak]:
    """Watch a process until this is left."""
    peak, left = Peak(), threading.Event()
    status = Path(f"/proc/{pid}/status")

    def run() -> None:
        while not left.wait(_EVERY_S):
            peak.mb = max(peak.mb, own_memory_bytes(status) / MB)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        left.set()
        thread.join()
