"""Findings on the store: gateways, tables, settings and free space."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.doctor.finding import Finding, ok, unchecked, warning, wrong
from consumer.judge.settings import JudgeSettings, differences
from consumer.model.errors import ConfigError, StoreBroken, StoreMismatch
from consumer.wiring import stores
from storage.errors import StoreRefused, StoreUnavailable
from storage.hbase import parse_place
from storage.hbase.options import Place
from storage.hbase.schema import APPLY
from storage.hbase.store import HbaseStore
from storage.kind import OnDisk

GATEWAY_S: Final = 5.0
"""Deadline of a gateway for listing the tables."""
FREE_BYTES_MIN: Final = 64 << 20
FREE_BYTES_LITTLE: Final = 1 << 30
MAP_SHARE_MAX: Final = 0.8
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


def check_gateways(config: Config) -> Iterator[Finding]:
    """Ask each gateway of an HBase store for the tables, and check those."""
    place = parse_place(config.store.url)
    options = stores.hbase_options(config)
    options = replace(
        options,
        deadline_s=min(options.deadline_s, GATEWAY_S),
        call_s=min(options.call_s, GATEWAY_S),
        ttl_min_s=config.lifetime_s,
        readonly=True,
    )
    away: dict[str, str] = {}
    refused: str | None = None
    for address in place.addresses:
        try:
            HbaseStore.open(Place((address,), place.namespace), options).close()
        except StoreUnavailable as error:
            away[str(address)] = str(error)
            continue
        except StoreRefused as error:
            refused = str(error)
        yield ok(f"The gateway {address} answers.")
    everyone = len(away) == len(place.addresses)
    for name, why in away.items():
        if everyone:
            yield wrong(StoreBroken, f"The gateway {name} does not answer: {why}", "Start it, or correct store.url.")
        else:
            yield warning(
                f"The gateway {name} does not answer, so only the others are used: {why}",
                "Start it, or remove it from store.url.",
            )
    if refused is not None:
        yield wrong(StoreMismatch, refused, f"Show what would be altered: {APPLY.replace('--apply', '--print')}.")
    elif not everyone:
        yield ok(f"The tables of {place.namespace} are correct, as far as a gateway shows.")


def check_binding(config: Config, settings: Callable[[], JudgeSettings]) -> Iterator[Finding]:
    """Check that the store is bound to the configured settings."""
    ours = settings()
    try:
        with stores.opened_store(config, readonly=True) as store:
            stored = store.settings()
    except StoreUnavailable as error:
        yield unchecked(f"The store does not answer: {error}", "Fix that first.")
        return
    if stored is None:
        yield ok(f"The store is not bound to any settings yet; the first run binds it to {ours.short_digest()}.")
        return
    try:
        differing = differences(stored, ours)
    except (json.JSONDecodeError, AttributeError) as error:
        yield wrong(StoreMismatch, f"The settings of the store cannot be read: {error}.", "Name another store.")
        return
    if differing:
        yield wrong(
            StoreMismatch,
            f"The store is bound to settings that differ from {ours.short_digest()}: {'; '.join(differing)}.",
            "Use the settings of the store (dupwatch store stats --json shows them), or name another store.",
        )
    else:
        yield ok(f"The store is bound to these settings, {ours.short_digest()}.")


def directory_at(place: OnDisk) -> Directory:
    """Describe a store's directory, or its nearest parent that exists where the store is yet to be created."""
    existing = place.directory.resolve()
    while not existing.exists():
        existing = existing.parent
    data_file = place.files[0]
    return Directory(
        place.directory,
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


def directory_findings(found: Directory, map_bytes_max: int) -> Iterator[Finding]:
    """Check that an LMDB store can be kept there and has space to grow."""
    if not found.writable:
        yield wrong(StoreMismatch, f"No permission to write in {found.path}.", "Give this user write permission.")
    kind = found.file_system
    if kind in _REMOTE or kind.startswith(_REMOTE_FUSE):
        yield wrong(
            ConfigError,
            f"{found.path} is on {kind}, but LMDB's locks and memory map work only within one machine.",
            "Use a local disk, or an HBase store.",
        )
    elif kind in _PASSING:
        yield warning(f"{found.path} is on {kind}: {_PASSING[kind]}.", "Name a directory on a disk or a volume.")
    yield from _room(found, map_bytes_max)


def _room(found: Directory, map_bytes_max: int) -> Iterator[Finding]:
    free = f"{found.free_bytes / _MIB:,.0f} MiB are free for {found.path}"
    if found.free_bytes < FREE_BYTES_MIN:
        yield wrong(StoreBroken, f"{free}.", "Free some space: a full disk stops the run.")
    elif found.free_bytes < FREE_BYTES_LITTLE:
        yield warning(f"{free}.", "Free some space before the disk is full: a full disk stops the run.")
    if found.size_bytes is None:
        yield ok(f"No store at {found.path} yet; {free}, on {found.file_system}.")
    elif found.size_bytes > MAP_SHARE_MAX * map_bytes_max:
        yield warning(
            f"The store has {found.size_bytes / _MIB:,.0f} MiB of at most {map_bytes_max / _MIB:,.0f}.",
            "Raise store.map_bytes_max: at the limit the run stops.",
        )
    else:
        yield ok(
            f"The store has {found.size_bytes / _MIB:,.0f} MiB of at most {map_bytes_max / _MIB:,.0f}; {free}, "
            f"on {found.file_system}."
        )
