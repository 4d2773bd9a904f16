"""What other processes do in the tests of the LMDB store, and how they are started."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from storage.errors import StoreError, StoreFull
from storage.lmdb import LmdbOptions, LmdbStore
from storage.lmdb.environment import Transaction
from storage.records import Record, Version
from tests.builders import make_record, make_version
from tests.prefork import forkserver

ROOT = Path(__file__).parents[3]
CHILD_TIMEOUT_S = 180
SMALL = LmdbOptions(durability="process", map_bytes=1 << 16, clock=lambda: 0)
"""A map that has to grow at once, and a clock that lets tests say what is old."""


def run_together(work: Callable[..., Any], path: Path, arguments: Sequence[Any]) -> list[Any]:
    """Run ``work(path, argument)`` in one new process for each argument, all at once; what each returned."""
    context = forkserver()
    barrier = context.Barrier(len(arguments))
    started = []
    for argument in arguments:
        ours, theirs = context.Pipe()
        process = context.Process(target=_report, args=(theirs, barrier, work, path, argument))
        process.start()
        theirs.close()
        started.append((process, ours))
    try:
        results = [ours.recv() if ours.poll(CHILD_TIMEOUT_S) else "timed out" for _, ours in started]
    finally:
        for process, _ in started:
            process.join(CHILD_TIMEOUT_S)
            process.kill()
    return results


def _report(pipe: Connection, barrier: Any, work: Callable[..., Any], path: Path, argument: Any) -> None:  # noqa: ANN401
    barrier.wait(CHILD_TIMEOUT_S)
    pipe.send(work(path, argument))


def batch_of(writer: int, number: int, size: int = 20) -> list[Version]:
    """The versions of one call of one writer, different from all others."""
    return [make_version(f"{writer}-{number}-{item}", b"%d %d %d" % (writer, number, item)) for item in range(size)]


def write_batches(path: Path, writer: int) -> int:
    """Write fifty batches into a map that others grow too; how often this process saw a larger map than before."""
    store = LmdbStore.open(path, SMALL)
    sizes = set()
    for number in range(50):
        versions = batch_of(writer, number)
        records = [version.record for version in versions]
        store.create(versions)
        store.add(records)
        assert all(store.read([record.reference for record in records]))
        sizes.add(store._environment._map_bytes())
    store.close()
    return len(sizes) - 1


def settle_with(path: Path, verdict: bytes) -> list[bool]:
    """Give the versions ``shared_references`` this verdict, some at a call; what each call said."""
    store = LmdbStore.open(path, SMALL)
    references = shared_references()
    won = [
        outcome
        for start in range(0, len(references), 5)
        for outcome in store.settle([(reference, verdict) for reference in references[start : start + 5]])
    ]
    store.close()
    return won


def create_with(path: Path, sequence: int) -> list[Record]:
    """Create the shared versions with this sequence; what each call said is stored."""
    store = LmdbStore.open(path, SMALL)
    stored = [store.create([make_version(f"shared {n}", sequence=sequence)])[0].record for n in range(300)]
    store.close()
    return stored


def shared_references() -> list[bytes]:
    """The references of three hundred versions that several processes fight for."""
    return [make_record(f"shared {number}").reference for number in range(300)]


def start_reader(path: Path) -> ForkServerProcess:
    """A process that is in the middle of a read transaction."""
    context = forkserver()
    ours, theirs = context.Pipe()
    process = context.Process(target=read_for_ever, args=(path, theirs))
    process.start()
    theirs.close()
    assert ours.poll(CHILD_TIMEOUT_S)
    assert ours.recv() == "reading"
    return process


def read_for_ever(path: Path, ready: Connection) -> None:
    """Begin a read transaction, say so, and never end it."""
    store = LmdbStore.open(path, SMALL)

    def wait(transaction: Transaction) -> None:
        transaction.stat()
        ready.send("reading")
        time.sleep(CHILD_TIMEOUT_S)

    store._environment.read(wait)


def without_rights() -> None:
    """Give up root's rights, which no file mode limits."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65_534)
        os.setuid(65_534)


def open_as_nobody(path: Path) -> str:
    """Open a store without root's rights; the error."""
    without_rights()
    try:
        LmdbStore.open(path, SMALL)
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    return "opened"


def fill_disk(path: Path, file_bytes_max: int | None) -> dict[str, Any]:
    """Write until there is no room, a few times over, then open the store again and count what is there."""
    if file_bytes_max is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))
    store = LmdbStore.open(path, SMALL)
    acknowledged: list[bytes] = []
    errors: list[str] = []
    for number in range(10_000):
        versions = batch_of(0, number)
        try:
            store.create(versions)
            acknowledged += [version.record.reference for version in versions]
            store.add([version.record for version in versions])
        except StoreFull as error:
            errors.append(str(error))
            if len(errors) == 5:
                break
    before = store.read(acknowledged)
    store.close()
    store = LmdbStore.open(path, SMALL)
    found = store.read(acknowledged)
    return {
        "acknowledged": len(acknowledged),
        "errors": errors,
        "found": sum(stored is not None for stored in found),
        "is_unchanged": before == found,
        "scanned": sum(1 for _ in store.scan()),
    }


def on_small_disk(mount: Path, size: str, call: str) -> subprocess.CompletedProcess[str]:
    """Evaluate ``call`` of this module with a new disk of that size at ``mount``; it prints its result as JSON."""
    script = f"import json, pathlib; from {__name__} import *; print(json.dumps({call}))"
    command = f'mount -t tmpfs -o size={size} tmpfs "$1" && exec "$2" -c "$3"'
    return subprocess.run(
        ["unshare", "-Urm", "sh", "-c", command, "sh", str(mount), sys.executable, script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=CHILD_TIMEOUT_S,
        capture_output=True,
        text=True,
        check=False,
    )


def open_without_room(path: Path) -> str:
    """Fill the disk to its last block, then open a new store on it; the error."""
    path.mkdir()
    with (path.parent / "fill").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 12))
        except OSError:
            pass
    try:
        LmdbStore.open(path, SMALL)
    except StoreError as error:
        return json.dumps([type(error).__name__, sorted(entry.name for entry in path.iterdir())])
    return "opened"


def look_at_read_only_medium(disk: Path) -> list[object]:
    """Read a store on a disk that became read-only, also while another process has it open by another path."""
    path, mirror = disk / "store", disk.parent / "mirror"
    store = LmdbStore.open(path, SMALL)
    store.create([make_version()])
    store.close()
    mirror.mkdir()
    for options in (["--bind", str(disk)], ["-o", "remount,bind,ro"]):
        subprocess.run(["mount", *options, str(mirror)], check=True)
    readonly = replace(SMALL, readonly=True)
    looking = LmdbStore.open(mirror / "store", readonly)
    found = looking.stats().versions
    # Another process writes by the path that can be written to.
    with forkserver().Pool(1) as pool:
        pool.apply(hold_open, (path,))
        try:
            answer = f"read {looking.stats().versions}"
        except StoreError as error:
            answer = str(error)
    looking.close()
    return [found, answer]


def hold_open(path: Path) -> None:
    """Open a store and keep it open until this process ends."""
    _HELD.append(LmdbStore.open(path, SMALL))


_HELD: list[LmdbStore] = []
