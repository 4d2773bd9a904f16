"""Options of the embedded store."""

from dataclasses import dataclass
from typing import Literal

from storage.clock import Clock, now_ms
from storage.files import FILE_MODE


@dataclass(frozen=True, slots=True)
class LmdbOptions:
    """Options for opening a store.

    ``durability``: with ``"power"`` every commit is on the disk before the call returns. With ``"process"`` (LMDB's
    ``MDB_NOSYNC``) it is in the system's page cache: a killed process loses nothing, but a crash of the machine may
    lose the last calls, and may damage the file unless the file system keeps writes in order.
    ``map_bytes`` is the initial size of the map, ``map_bytes_max`` the size up to which it is doubled. ``readers_max``
    is the number of concurrent read transactions in all processes, set by the first process. ``file_mode`` is the mode
    of the files of a new store; users who may read them may also enter its folder.
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
