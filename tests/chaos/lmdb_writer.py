"""The process that the kill test kills: it writes into an LMDB store for ever, and prints what was acknowledged.

Run as ``python -m tests.chaos.lmdb_writer PATH ROUND DURABILITY``. Each line on its standard output is one call that
has returned: the call's name and the number of the step.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal

from storage.lmdb import LmdbOptions, LmdbStore
from storage.records import Tombstone, Version
from tests.builders import TIME_MS, make_tombstone, make_version

Durability = Literal["power", "process"]
OLD_MS = 1_000
VERDICT = b'{"verdict":"kept"}'


def options(durability: Durability) -> LmdbOptions:
    """A map that starts small, so that some of the kills come while it grows; what is old has always been."""
    return LmdbOptions(durability=durability, map_bytes=1 << 16, clock=lambda: 0)


def kept(round_number: int, step: int) -> list[Version]:
    """Versions that stay."""
    return [_version("kept", round_number, step, item, TIME_MS) for item in range(8)]


def passing(round_number: int, step: int) -> list[Version]:
    """Versions that are swept in the same step."""
    return [_version("passing", round_number, step, item, OLD_MS) for item in range(8)]


def retracted(round_number: int, step: int) -> Tombstone:
    """The retraction of the first of the versions that stay."""
    return make_tombstone(kept(round_number, step)[0].record.id, time_ms=TIME_MS + 1)


def _version(name: str, round_number: int, step: int, item: int, time_ms: int) -> Version:
    place = f"{name} {round_number} {step} {item}"
    return make_version(place, place.encode(), body=place * 20, time_ms=time_ms, sequence=item)


def write(path: Path, round_number: int, durability: Durability) -> None:
    """Every writing call of the contract, over and over: in every other step one by one, else as one batch."""
    store = LmdbStore.open(path, options(durability))
    _acknowledge("open", 0)
    for step in count():
        calls = calls_of(store, round_number, step)
        if is_batch(step):
            store.together(lambda calls=calls: [call() for call in calls.values()])  # type: ignore[misc]
            for name in calls:
                _acknowledge(name, step)
        else:
            for name, call in calls.items():
                call()
                _acknowledge(name, step)


def is_batch(step: int) -> bool:
    """Whether the calls of this step are written at once."""
    return step % 2 == 1


def calls_of(store: LmdbStore, round_number: int, step: int) -> dict[str, Callable[[], object]]:
    """The calls of a step by name, in order."""
    staying, going = kept(round_number, step), passing(round_number, step)
    both = staying + going
    return {
        "create": partial(store.create, both),
        "add": partial(store.add, [version.record for version in both]),
        "settle": partial(store.settle, [(version.record.reference, VERDICT) for version in both]),
        "retract": partial(store.retract, [retracted(round_number, step)]),
        "remove": partial(store.remove, [staying[0].record]),
        "sweep": partial(store.sweep, OLD_MS + 1, 1_000),
    }


def _acknowledge(call: str, step: int) -> None:
    # One write of one short line reaches the pipe whole or not at all.
    os.write(sys.stdout.fileno(), f"{call} {step}\n".encode())


if __name__ == "__main__":
    _, path_given, round_given, durability_given = sys.argv
    write(Path(path_given), int(round_given), "power" if durability_given == "power" else "process")
