"""How an embedded store is named and opened."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from storage.kind import OnDisk, Opening, StoreKind
from storage.lmdb.data_file import DATA_FILE
from storage.lmdb.opening import LOCK_FILE
from storage.lmdb.options import LmdbOptions
from storage.lmdb.store import LmdbStore

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
    )
    return LmdbStore.open(_directory(url), options)


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
)
