"""The kind of embedded stores: their URLs, how they are opened, and checks of their directories."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from storage.kind import DiskLocation, StoreArguments, StoreCheck, StoreFinding, StoreKind
from storage.lmdb.data_file import DATA_FILE
from storage.lmdb.opening import LOCK_FILE
from storage.lmdb.options import LmdbOptions
from storage.lmdb.store import LmdbStore
from storage.records import CapacityPlan

_SCHEME: Final = "lmdb:"
MAP_SHARE_MAX: Final = 0.8
"""The share of the largest map above which the store counts as nearly full."""
_MIB: Final = 1 << 20
FREE_BYTES_MIN: Final = 64 << 20
FREE_BYTES_LITTLE: Final = 1 << 30
_REMOTE: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "virtiofs"}
)
_REMOTE_FUSE: Final = "fuse."
_VOLATILE: Final = {
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
    """Describe the directory of a store or, if it does not exist yet, its nearest existing parent."""
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


def _directory(url: str) -> Path:
    return Path(url.removeprefix(_SCHEME))


def _on_disk(url: str) -> DiskLocation:
    directory = _directory(url)
    return DiskLocation(directory, (directory / DATA_FILE, directory / LOCK_FILE))


def _identity(url: str) -> str:
    return _SCHEME + os.path.realpath(_directory(url))


def _same(url: str, other_url: str) -> bool:
    return _identity(url) == _identity(other_url)


def _open(url: str, arguments: StoreArguments) -> LmdbStore:
    defaults = arguments.own_options(LmdbOptions)
    options = replace(
        defaults,
        durability=arguments.durability,
        keep_bodies=arguments.keep_bodies,
        row_postings_max=arguments.row_postings_max or defaults.row_postings_max,
        readonly=arguments.readonly,
        file_mode=arguments.file_mode,
    )
    return LmdbStore.open(_directory(url), options, arguments.report)


def _plan_for(url: str, arguments: StoreArguments, planned: CapacityPlan) -> CapacityPlan:
    with closing(_open(url, arguments)) as store:
        return store.plan_for(planned)


def _checks(url: str, arguments: StoreArguments) -> tuple[StoreCheck, ...]:
    directory = _directory(url)
    map_bytes_max = arguments.own_options(LmdbOptions).map_bytes_max

    def run() -> Iterator[StoreFinding]:
        return directory_findings(directory_at(directory, directory / DATA_FILE), map_bytes_max)

    return (StoreCheck("room", run),)


def directory_findings(directory: Directory, map_bytes_max: int) -> Iterator[StoreFinding]:
    """Check the permissions of a directory, its file system, its free space, and the size of the store."""
    if not directory.writable:
        yield StoreFinding(
            "refused", f"No permission to write in {directory.path}.", "Give this user write permission."
        )
    file_system = directory.file_system
    if directory.is_remote:
        yield StoreFinding(
            "misconfigured",
            f"{directory.path} is on {file_system}, but LMDB's locks and memory map work only within one machine.",
            "Use a local disk, or an HBase store.",
        )
    if file_system in _VOLATILE:
        yield StoreFinding(
            "warning",
            f"{directory.path} is on {file_system}: {_VOLATILE[file_system]}.",
            "Name a directory on a disk or a volume.",
        )
    free = f"{directory.free_bytes / _MIB:,.0f} MiB are free for {directory.path}"
    if directory.free_bytes < FREE_BYTES_MIN:
        yield StoreFinding("broken", f"{free}.", "Free some space: a full disk stops the run.")
    elif directory.free_bytes < FREE_BYTES_LITTLE:
        yield StoreFinding("warning", f"{free}.", "Free some space before the disk is full: a full disk stops the run.")
    if directory.size_bytes is None:
        yield StoreFinding("ok", f"No store at {directory.path} yet; {free}, on {file_system}.")
        return
    size = f"The store has {directory.size_bytes / _MIB:,.0f} MiB of at most {map_bytes_max / _MIB:,.0f}"
    if directory.size_bytes > MAP_SHARE_MAX * map_bytes_max:
        yield StoreFinding("warning", f"{size}.", "Raise store.map_bytes_max: at the limit the run stops.")
    else:
        yield StoreFinding("ok", f"{size}; {free}, on {file_system}.")


LMDB: Final = StoreKind(
    name="LMDB",
    form="lmdb:PATH",
    example="lmdb:PATH",
    note="a directory",
    pattern=r"lmdb:.+",
    open=_open,
    on_disk=_on_disk,
    identity=_identity,
    same=_same,
    checks=_checks,
    plan_for=_plan_for,
)
