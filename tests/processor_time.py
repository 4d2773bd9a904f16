"""Bounds of processor time: they catch work that grows with the square of a length, whatever else the machine does."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within_processor_s(seconds: float) -> Iterator[None]:
    """Fail unless the block takes less processor time of its thread.

    Give it ten times what the block needs on a quiet machine: neighbours cost caches and clock frequency.
    """
    began_s = time.thread_time()
    yield
    took_s = time.thread_time() - began_s
    assert took_s < seconds, f"{took_s:.2f} s of processor time, not less than {seconds:g} s"
