"""Waits for the lock of a file, for a bounded time."""

import fcntl
import time
from typing import Final

_RETRY_S: Final = 0.02


def lock_file(descriptor: int, wait_s: float) -> None:
    """Take the exclusive ``flock`` of an open file or folder; it goes with the descriptor, or the process.

    Raises ``TimeoutError``, which is an ``OSError``, if another process still has it after ``wait_s`` seconds.
    """
    until_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                raise TimeoutError(f"another process has kept it locked for {wait_s:g} s") from None
            time.sleep(_RETRY_S)
        else:
            return
