"""What the librdkafka that is installed says of its own settings."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import confluent_kafka

_CLIENTS: Final = frozenset("CP*")
_CELLS_MIN: Final = 5
_SHOW: Final = """
import ctypes, sys
library, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fdopen(1, b"w"))
library.rd_kafka_conf_properties_show(stream)
libc.fflush(stream)
"""


class LibrarySetting(NamedTuple):
    """A setting as the library describes it; ``alias_of`` where it is another name of one."""

    name: str
    alias_of: str | None


@cache
def settings_of_library() -> tuple[LibrarySetting, ...]:
    """Every setting in the library's own table."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    (path,) = folder.glob("librdkafka-*.so*")
    ran = subprocess.run([sys.executable, "-c", _SHOW, path], capture_output=True, text=True, check=True)
    return tuple(_parse(ran.stdout))


def _parse(table: str) -> list[LibrarySetting]:
    found = []
    for line in table.splitlines():
        cells = line.split(" | ")
        if len(cells) >= _CELLS_MIN and cells[1].strip() in _CLIENTS:
            alias = re.search(r"Alias for `([^`]+)`", line)
            found.append(LibrarySetting(cells[0].strip(), alias[1] if alias else None))
    return found
