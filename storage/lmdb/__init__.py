"""The embedded store: one directory, any number of processes on one machine, no server."""

from storage.lmdb.options import LmdbOptions
from storage.lmdb.store import LmdbStore

__all__ = ["LmdbOptions", "LmdbStore"]
