"""Whether an embedded store can be kept where it is, and has space to grow."""

from collections.abc import Iterator
from typing import Final

from storage.checks import StoreFinding
from storage.directory import Directory, free_space, lasting_findings, permission_findings, space_findings

MAP_SHARE_MAX: Final = 0.8
"""The share of the largest map from which the store is nearly full."""
_MIB: Final = 1 << 20


def directory_findings(found: Directory, map_bytes_max: int) -> Iterator[StoreFinding]:
    """Check permissions, the file system, free space, and the size of the map."""
    yield from permission_findings(found)
    if found.is_remote:
        yield StoreFinding(
            "misconfigured",
            f"{found.path} is on {found.file_system}, but LMDB's locks and memory map work only within one machine.",
            "Use a local disk, or an HBase store.",
        )
    yield from lasting_findings(found)
    yield from space_findings(found)
    yield _size_finding(found, map_bytes_max)


def _size_finding(found: Directory, map_bytes_max: int) -> StoreFinding:
    free = f"{free_space(found)}, on {found.file_system}."
    if found.size_bytes is None:
        return StoreFinding("ok", f"No store at {found.path} yet; {free}")
    size = f"The store has {found.size_bytes / _MIB:,.0f} MiB of at most {map_bytes_max / _MIB:,.0f}"
    if found.size_bytes > MAP_SHARE_MAX * map_bytes_max:
        return StoreFinding("warning", f"{size}.", "Raise store.map_bytes_max: at the limit the run stops.")
    return StoreFinding("ok", f"{size}; {free}")
