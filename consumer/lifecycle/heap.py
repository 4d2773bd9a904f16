"""Returns freed memory to the system, and keeps Python's collector from what stays.

The C library keeps freed memory for later. glibc itself returns only what is at the end of a heap, and each thread may
have a heap of its own. After a backlog that was 50 MB of a consumer's memory, for fetched records and full batches,
unused until the next backlog: memory seemed to grow with each of them.
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
def trimming(every_s: float = EVERY_S) -> Iterator[None]:
    """Trim the heap in a thread of its own until the block ends, and have large pieces returned at once.

    Do nothing without ``malloc_trim`` (macOS, musl).
    """
    # See malloc_trim(3). Called through ctypes it does not hold the GIL.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        yield
        return
    # By default the threshold rises to 32 MB once large pieces are freed, and later ones go to the heap. See
    # mallopt(3).
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


def settle_heap() -> None:
    """Collect garbage once, and leave out of later collections whatever is alive now.

    Modules, words and routes live as long as the process. With them a full collection takes some 50 ms, every few
    seconds, during which no thread runs Python: one request in a hundred waited for one. Without them it takes less
    than a millisecond. Called once, when everything is loaded.
    """
    gc.collect()
    gc.freeze()
