"""How an embedded store is named and opened."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from storage.checks import StoreCheck, StoreFinding
from storage.directory import directory_at
from storage.kind import OnDisk, Opening, StoreKind
from storage.lmdb.checks import directory_findings
from storage.lmdb.data_file import DATA_FILE
from storage.lmdb.opening import LOCK_FILE
from storage.lmdb.options import LmdbOptions
from storage.lmdb.store import LmdbStore
from storage.planned import Planned

_SCHEME: Final = "lmdb:"


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
