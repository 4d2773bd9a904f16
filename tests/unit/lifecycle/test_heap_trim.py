"""Freed memory is returned to the system. Only glibc can be asked to do so."""

import ctypes
import threading
import time

import pytest

from consumer.lifecycle.heap import periodic_trim
from consumer.telemetry.metrics.run import own_memory_bytes

WAIT_S = 120.0
BLOCK = 64 << 10
BLOCKS = 1024
_C = ctypes.CDLL(None)
_C.malloc.restype, _C.malloc.argtypes, _C.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]


def own_mb() -> float:
    """Return the private memory of this process."""
    return own_memory_bytes() / (1 << 20)


@pytest.mark.skipif(not hasattr(_C, "malloc_trim"), reason="the C library is not glibc")
def test_memory_freed_below_a_block_in_use_is_returned() -> None:
    """The process keeps 64 MB below a block in use until the heap is trimmed."""
    blocks = [_C.malloc(BLOCK) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    full = own_mb()
    for block in blocks[:-1]:
        _C.free(block)
    kept = own_mb()
    try:
        assert kept > full - 16
        with periodic_trim(0.05):
            end_s = time.monotonic() + WAIT_S
            while own_mb() >= full - 48:
                assert time.monotonic() < end_s
                time.sleep(0.01)
        assert not [thread for thread in threading.enumerate() if thread.name == "heap-trim"]
    finally:
        _C.free(blocks[-1])
