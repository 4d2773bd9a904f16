"""The machine a figure was taken on, and how a measurement is kept to one core of it."""

import ctypes
import gc
import os
import platform
import resource
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

PACKAGES = (
    "numpy", "lmdb", "msgspec", "rjieba", "jieba", "simhash", "datasketch", "rensa", "faiss-cpu",
)  # fmt: skip
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LIBC = ctypes.CDLL(None)


class Machine(msgspec.Struct, frozen=True):
    """What a reader needs to know to compare figures; ``load`` is the load average of the last minute at the start."""

    cpu: str
    cores: int
    cores_allowed: int
    memory_bytes: int
    system: str
    python: str
    versions: dict[str, str]
    load: float


def machine() -> Machine:
    """Ask the machine what it is."""
    return Machine(
        cpu=_cpu_model(Path("/proc/cpuinfo")),
        cores=os.cpu_count() or 1,
        cores_allowed=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions={name: found for name in PACKAGES if (found := _version(name))},
        load=os.getloadavg()[0],
    )


def single_threaded() -> None:
    """Start this program again with one thread for BLAS and OpenMP, which read that when they are loaded."""
    if all(os.environ.get(name) == "1" for name in _THREAD_VARIABLES):
        return
    os.environ |= dict.fromkeys(_THREAD_VARIABLES, "1")
    sys.stdout.flush()
    os.execv(sys.executable, sys.orig_argv)


def keep_to_one_core() -> None:
    """Run on one core from now on, the last one allowed: the first ones serve most interrupts."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def resident_bytes() -> int:
    """Memory that this process holds just now, after giving back what it no longer needs."""
    gc.collect()
    _LIBC.malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _cpu_model(cpuinfo: Path) -> str:
    names = (line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line)
    return next(names, platform.processor() or "unknown")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
