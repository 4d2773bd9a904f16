"""The directory of a store on this machine: its file system, its free space, and what that means for the store."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from storage.checks import StoreFinding

FREE_BYTES_MIN: Final = 64 << 20
FREE_BYTES_LITTLE: Final = 1 << 30
_MIB: Final = 1 << 20
_REMOTE: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "virtiofs"}
)
_REMOTE_FUSE: Final = "fuse."
_PASSING: Final = {
    "tmpfs": "in memory, lost at the next restart of the machine",
    "ramfs": "in memory, lost at the next restart of the machine",
    "overlay": "the layer of a container, lost with the container",
}


class Directory(NamedTuple):
    """The directory of a store that exists or will be created: file system, free space, and size of the store."""

    path: Path
    file_system: str
    free_bytes: int
    writable: bool
    size_bytes: int | None

    @property
    def is_remote(self) -> bool:
        """Whether other machines can reach the file system too."""
        return self.file_system in _REMOTE or self.file_system.startswith(_REMOTE_FUSE)


def directory_at(path: Path, data_file: Path) -> Directory:
    """Describe a store's directory, or its nearest parent that exists where the store is yet to be created."""
    existing = path.resolve()
    while not existing.exists():
        existing = existing.parent
    return Directory(
        path,
        file_system_of(existing, Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")),
        shutil.disk_usage(existing).free,
        os.access(existing, os.W_OK | os.X_OK),
        data_file.stat().st_size if data_file.exists() else None,
    )


def file_system_of(path: Path, mounts: str) -> str:
    """Return the type of the file system of a path; ``mounts`` is the text of /proc/self/mountinfo (proc(5))."""
    best, kind = -1, "unknown"
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        # Spaces and other special characters in a path are octal escapes.
        point = Path(before.split(" ")[4].encode().decode("unicode_escape"))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


def permission_findings(found: Directory) -> Iterator[StoreFinding]:
    """Check that this user may write there."""
    if not found.writable:
        yield StoreFinding("refused", f"No permission to write in {found.path}.", "Give this user write permission.")


def lasting_findings(found: Directory) -> Iterator[StoreFinding]:
    """Check that what is written there survives a restart."""
    kind = found.file_system
    if kind in _PASSING:
        yield StoreFinding(
            "warning", f"{found.path} is on {kind}: {_PASSING[kind]}.", "Name a directory on a disk or a volume."
        )


def space_findings(found: Directory) -> Iterator[StoreFinding]:
    """Check that there is space to grow."""
    free = free_space(found)
    if found.free_bytes < FREE_BYTES_MIN:
        yield StoreFinding("broken", f"{free}.", "Free some space: a full disk stops the run.")
    elif found.free_bytes < FREE_BYTES_LITTLE:
        yield StoreFinding("warning", f"{free}.", "Free some space before the disk is full: a full disk stops the run.")


def free_space(found: Directory) -> str:
    """Return how much space is free, as a clause."""
    return f"{found.free_bytes / _MIB:,.0f} MiB are free for {found.path}"
