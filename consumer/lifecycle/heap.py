"""Returns freed memory to the system, and excludes permanent objects from Python's garbage collection.

The C library keeps freed memory for later. glibc returns only memory at the end of a heap, and each thread may have its
own heap. After a backlog, 50 MB of a consumer's memory for fetched records and full batches stayed unused until the
next backlog, and memory seemed to grow each time.
"""

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

EVERY_S: Final = 30.0
_MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD of <malloc.h>."""
_LARGE_BYTES: Final = 1 << 20


@contextmanager
def periodic_trim(every_s: float = EVERY_S) -> Iterator[None]:
    """Trim the heap in a thread until the block ends, and make the C library return large pieces when they are freed.

    Does nothing without ``malloc_trim`` (macOS, musl).
    """
    # See malloc_trim(3). A call through ctypes does not hold the GIL.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        yield
        return
    # By default, freeing a large piece raises the threshold to its size, up to 32 MB, and later pieces of that size go
    # to the heap. See mallopt(3).
    getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)(_MMAP_THRESHOLD, _LARGE_BYTES)
    closed = threading.Event()

    def run() -> None:
        while not closed.wait(every_s):
            trim(ctypes.c_size_t(0))

    thread = threading.Thread(target=run, name="heap-trim", daemon=True)
    thread.start()
    try:
        yield
    finally:
        closed.set()
        thread.join()


def settle_heap() -> None:
    """Collect garbage once, and exclude all objects that are alive now from later collections.

    Modules, dictionaries and routes live as long as the process. A full collection that includes them takes some 50 ms
    every few seconds, during which no thread runs Python; one request in a hundred had to wait for it. Without them it
    takes less than a millisecond. Call this once, after they are loaded.
    """
    gc.collect()
    gc.freeze()
