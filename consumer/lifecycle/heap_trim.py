"""Freed memory that the C library keeps for later, given back to the system now and then; large pieces at once.

glibc gives back by itself what lies at the end of a heap only, and each thread may have a heap of its own. After a
backlog that was 50 MB of a consumer's, of records that were fetched and of batches that were full, which nothing needed
again until the next backlog: memory looked as if it grew with every one of them.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

EVERY_S: Final = 30.0
_MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD of <malloc.h>."""
_LARGE_BYTES: Final = 1 << 20


@contextmanager
def trimming(every_s: float = EVERY_S) -> Iterator[None]:
    """Trim the heap from a thread of its own until this is left; nothing where the C library cannot (macOS, musl)."""
    # See malloc_trim(3). Called through ctypes it does not hold the GIL.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        yield
        return
    # Left alone, the threshold rises to 32 MB with the first large pieces that are freed, and later ones go to the
    # heap. See mallopt(3).
    getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)(_MMAP_THRESHOLD, _LARGE_BYTES)
    left = threading.Event()

    def run() -> None:
        while not left.wait(every_s):
            trim(ctypes.c_size_t(0))

    thread = threading.Thread(target=run, name="heap-trim", daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()
