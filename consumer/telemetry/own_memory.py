"""The memory that only this process uses, as Linux reports it."""

from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")
_ANONYMOUS: Final = "RssAnon:"
_KILOBYTE: Final = 1024


def own_memory_bytes(status: Path = _STATUS) -> float:
    """Return resident memory that belongs to no file, ``RssAnon`` of proc_pid_status(5); 0 if it is not reported."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) * _KILOBYTE for line in lines if line.startswith(_ANONYMOUS)), 0.0)
