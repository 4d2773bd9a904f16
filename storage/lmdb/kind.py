"""How an embedded store is named and opened, and whether it can be kept where it is."""

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
"""The share of the largest map from which the store is nearly full."""
_MIB: Final = 1 << 20
FREE_BYTES_MIN: Final = 64 << 20
FREE_BYTES_LITTLE: Final = 1 << 30
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


def _directory(url: str) -> Path:
    return Path(url.removeprefix(_SCHEME))


def _on_disk(url: str) -> DiskLocation:
    directory = _directory(url)
    return DiskLocation(directory, (directory / DATA_FILE, directory / LOCK_FILE))


def _identity(url: str) -> str:
    return _SCHEME + os.path.realpath(_directory(url))


def _same(url: str, other_url: str) -> bool:
    return _identity(url) == _identity(other_url)


def _open(url: str, opening: StoreArguments) -> LmdbStore:
    own = opening.own_options(LmdbOptions)
    options = replace(
        own,
        durability=opening.durability,
        keep_bodies=opening.keep_bodies,
        row_postings_max=opening.row_postings_max or own.row_postings_max,
        readonly=opening.readonly,
        file_mode=opening.file_mode,
        parts=opening.parts,
        banks=opening.banks,
    )
    return LmdbStore.open(_directory(url), options, opening.report)


def _plan_for(url: str, opening: StoreArguments, planned: CapacityPlan) -> CapacityPlan:
    with closing(_open(url, opening)) as store:
        return store.plan_for(planned)


def _checks(url: str, opening: StoreArguments) -> tuple[StoreCheck, ...]:
    directory = _directory(url)
    map_bytes_max = opening.own_options(LmdbOptions).map_bytes_max

    def run() -> Iterator[StoreFinding]:
        return directory_findings(directory_at(directory, directory / DATA_FILE), map_bytes_max)

    return (StoreCheck("room", run),)


def directory_findings(found: Directory, map_bytes_max: int) -> Iterator[StoreFinding]:
    """Check permissions, the file system, free space, and the size of the map."""
    if not found.writable:
        yield StoreFinding("refused", f"No permission to write in {found.path}.", "Give this user write permission.")
    kind = found.file_system
    if found.is_remote:
        yield StoreFinding(
            "misconfigured",
            f"{found.path} is on {kind}, but LMDB's locks and memory map work only within one machine.",
            "Use a local disk, or an HBase store.",
        )
    if kind in _PASSING:
        yield StoreFinding(
            "warning", f"{found.path} is on {kind}: {_PASSING[kind]}.", "Name a directory on a disk or a volume."
        )
    free = f"{found.free_bytes / _MIB:,.0f} MiB are free for {found.path}"
    if found.free_bytes < FREE_BYTES_MIN:
        yield StoreFinding("broken", f"{free}.", "Free some space: a full disk stops the run.")
    elif found.free_bytes < FREE_BYTES_LITTLE:
        yield StoreFinding("warning", f"{free}.", "Free some space before the disk is full: a full disk stops the run.")
    if found.size_bytes is None:
        yield StoreFinding("ok", f"No store at {found.path} yet; {free}, on {kind}.")
        return
    size = f"The store has {found.size_bytes / _MIB:,.0f} MiB of at most {map_bytes_max / _MIB:,.0f}"
    if found.size_bytes > MAP_SHARE_MAX * map_bytes_max:
        yield StoreFinding("warning", f"{size}.", "Raise store.map_bytes_max: at the limit the run stops.")
    else:
        yield StoreFinding("ok", f"{size}; {free}, on {kind}.")


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
