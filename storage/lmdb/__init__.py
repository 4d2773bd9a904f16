"""The embedded store: one directory, several processes, no server."""

from storage.lmdb.options import LmdbOptions
from storage.lmdb.store import LmdbStore

__all__ = ["LmdbOptions", "LmdbStore"]
