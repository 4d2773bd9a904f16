"""How an embedded store is named and opened, and whether it can be kept where it is."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from storage.checks import StoreCheck, StoreFinding
from storage.directory import Directory, directory_at, free_space, lasting_findings, permission_findings, space_findings
from storage.kind import OnDisk, Opening, StoreKind
from storage.lmdb.data_file import DATA_FILE
from storage.lmdb.opening import LOCK_FILE
from storage.lmdb.options import LmdbOptions
from storage.lmdb.store import LmdbStore
from storage.planned import Planned

_SCHEME: Final = "lmdb:"
MAP_SHARE_MAX: Final = 0.8
"""The share of the largest map from which the store is nearly full."""
_MIB: Final = 1 << 20


def _directory(url: str) -> Path:
    return Path(url.removeprefix(_SCHEME))


def _on_disk(url: str) -> OnDisk:
    directory = _directory(url)
    return OnDisk(directory, (directory / DATA_FILE, directory / LOCK_FILE))


def _identity(url: str) -> str:
    return _SCHEME + os.path.realpath(_directory(url))


def _same(url: str, other_url: str) -> bool:
    return _identity(url) == _identity(other_url)


def _open(url: str, opening: Opening) -> LmdbStore:
    own = opening.own_options(LmdbOptions)
    options = replace(
        own,
        durability=opening.durability,
        keep_bodies=opening.keep_bodies,
        row_postings_max=opening.row_postings_max or own.row_postings_max,
        readonly=opening.readonly,
        file_mode=opening.file_mode,
        parts=opening.parts,
    )
    return LmdbStore.open(_directory(url), options, opening.report)


def _plan_for(url: str, opening: Opening, planned: Planned) -> Planned:
    store = _open(url, opening)
    try:
        return store.plan_for(planned)
    finally:
        store.close()


def _checks(url: str, opening: Opening) -> tuple[StoreCheck, ...]:
    directory = _directory(url)
    map_bytes_max = opening.own_options(LmdbOptions).map_bytes_max

    def run() -> Iterator[StoreFinding]:
        return directory_findings(directory_at(directory, directory / DATA_FILE), map_bytes_max)

    return (StoreCheck("room", run),)


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
