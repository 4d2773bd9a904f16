"""How an embedded store is opened."""

from dataclasses import dataclass
from typing import Literal

from storage.clock import Clock, now_ms
from storage.files import FILE_MODE


@dataclass(frozen=True, slots=True)
class LmdbOptions:
    """How a store is opened.

    ``durability``: with ``"power"`` every commit is on the disk before the call returns. With ``"process"`` (LMDB's
    ``MDB_NOSYNC``) it is in the system's page cache: a killed process loses nothing, while a crash of the machine may
    lose the last calls, and may damage the file unless the file system keeps writes in order.
    ``map_bytes`` is the size of the map at first and ``map_bytes_max`` the most it doubles to; ``readers_max`` the
    number of read transactions at one time in all processes, set by the process that comes first. ``file_mode`` is
    that of the files of a new store; its folder has the same with leave to enter.
    """

    durability: Literal["power", "process"] = "power"
    keep_bodies: bool = True
    row_postings_max: int = 10_000
    map_bytes: int = 1 << 30
    map_bytes_max: int = 1 << 38
    readers_max: int = 126
    readonly: bool = False
    file_mode: int = FILE_MODE
    clock: Clock = now_ms
