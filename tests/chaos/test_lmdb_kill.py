"""kill -9 at any moment: nothing that was acknowledged is lost, and no article is half written."""

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from storage.lmdb import LmdbStore, layout
from storage.lmdb.environment import Transaction
from storage.postings import postings_of
from storage.records import Record
from tests.chaos.lmdb_writer import VERDICT, Durability, is_batch, kept, options, passing, retracted

ROOT = Path(__file__).parents[2]
KILLS = 8
WRITERS = 2
CALLS_MAX = 48
INTO_A_CALL_MAX_S = 0.005
Acknowledged = dict[str, int]
"""How many steps of each call of one writer were acknowledged."""


def kill_after(path: Path, numbers: range, durability: Durability, calls: int, pause_s: float) -> list[Acknowledged]:
    """Run writers on one store until the first has made ``calls`` calls; kill all ``pause_s`` later, within a call.

    Counting calls and not seconds makes the work before a kill the same on a slow machine. Returns what each writer was
    told.
    """
    command = [sys.executable, "-m", "tests.chaos.lmdb_writer", str(path)]
    writers = [
        subprocess.Popen(
            [*command, str(number), durability],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            # Nothing may be read ahead: ``communicate`` reads what is left from the descriptor.
            bufsize=0,
        )
        for number in numbers
    ]
    output = dict.fromkeys(writers, b"")
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"open 0\n"
        first = writers[0]
        assert first.stdout is not None
        for _ in range(calls):
            output[first] += first.stdout.readline()
        time.sleep(pause_s)
    finally:
        for writer in writers:
            writer.kill()
        outputs = [output[writer] + writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [-9] * len(writers)
    return [_count(output.decode()) for output in outputs]


def _count(output: str) -> Acknowledged:
    calls: Acknowledged = defaultdict(int)
    for line in output.splitlines():
        call, step = line.split()
        calls[call] = int(step) + 1
    return calls


def check_acknowledged(store: LmdbStore, number: int, done: Acknowledged, from_step: int = 0) -> None:
    """Every call that returned has left what it wrote."""
    for step in range(from_step, done["create"]):
        versions = kept(number, step)
        references = [version.record.reference for version in versions]
        found = store.read(references)
        assert [stored and stored.record for stored in found] == [version.record for version in versions]
        assert store.bodies(references) == [version.body for version in versions]
        if step < done["settle"]:
            assert [stored and stored.verdict for stored in found] == [VERDICT] * len(versions)
        if step < done["retract"]:
            assert found[0] is not None
            assert found[0].ends_at == retracted(number, step).arrival
        if step < done["add"]:
            assert all(_is_posted(store, version.record) for version in versions[1:])
        if step < done["remove"]:
            assert not _is_posted(store, versions[0].record)
        if step < done["sweep"]:
            assert not any(store.read([version.record.reference for version in passing(number, step)]))


def _is_posted(store: LmdbStore, record: Record) -> bool:
    postings = postings_of(record)
    rows = store.look_up([key for key, _ in postings])
    found = [posting in row.postings.tobytes() for (_, posting), row in zip(postings, rows, strict=True)]
    # All of an article's postings are written, and removed, together.
    assert all(found) == any(found)
    return all(found)


def check_batches(store: LmdbStore, number: int, done: Acknowledged) -> int:
    """Of a step whose calls are written at once, all is there, or nothing; return how many are there."""
    found = 0
    for step in filter(is_batch, range(done["create"] + 2)):
        versions = kept(number, step)
        if not any(store.read([version.record.reference for version in versions])):
            assert not store.history(retracted(number, step).id_hash)
            assert not any(_is_posted(store, version.record) for version in versions)
            continue
        found += 1
        check_acknowledged(store, number, dict.fromkeys(done, step + 1), from_step=step)
    return found


def check_whole(store: LmdbStore) -> None:
    """Record, place in time, expiry and body of a version are all there or none; a tombstone's likewise."""
    databases = store._environment.databases

    def keys(transaction: Transaction) -> dict[str, list[bytes]]:
        return {
            name: list(transaction.cursor(database).iternext(keys=True, values=False))
            for name, database in databases.items()
        }

    stored = store._environment.read(keys)
    rows = set(stored["records"])
    versions, tombstones = {layout.reference_in(row) for row in rows}, set(stored["tombstones"])
    assert len(versions) == len(rows)
    assert set(stored["bodies"]) == rows
    assert set(stored["verdicts"]) <= rows
    arrivals = [key for key in stored["timeline"] if not layout.is_place(key)]
    assert sorted(layout.decode_arrival(key).reference for key in arrivals) == sorted(versions | tombstones)
    places = [layout.placed_reference(key) for key in stored["timeline"] if layout.is_place(key)]
    assert sorted(places) == sorted(versions)
    assert rows <= set(stored["expiry"])
    assert sorted(layout.decode_row_key(key)[1] for key in stored["expiry"]) == sorted(versions | tombstones)
    assert len(list(store.scan())) == len(versions) + len(tombstones)


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_kill_loses_nothing_acknowledged_and_leaves_nothing_half_written(
    durability: Durability, tmp_path: Path
) -> None:
    """Two writers at once, killed at moments that a seed picks, time and again over the same store."""
    chance = random.Random(f"kill {durability}")
    path = tmp_path / "store"
    done: dict[int, Acknowledged] = {}
    batches = 0
    for first in range(0, KILLS, WRITERS):
        numbers = range(first, first + WRITERS)
        calls, pause_s = chance.randint(0, CALLS_MAX), chance.uniform(0, INTO_A_CALL_MAX_S)
        done |= zip(numbers, kill_after(path, numbers, durability, calls, pause_s), strict=True)
        store = LmdbStore.open(path, options(durability))
        for number in numbers:
            check_acknowledged(store, number, done[number])
            batches += check_batches(store, number, done[number])
        check_whole(store)
        store.close()
    store = LmdbStore.open(path, options(durability))
    for number, acknowledged in done.items():
        check_acknowledged(store, number, acknowledged)
    assert sum(calls["sweep"] for calls in done.values()) > KILLS
    assert batches > KILLS
    store.close()
