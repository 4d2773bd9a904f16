"""Names of classes: each names one thing, and none is a participle, a pronoun or another vague word."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("consumer", "storage")
ADAPTERS: Final = ("storage/hbase/", "storage/lmdb/")
VAGUE: Final = (
    "Added Adopted Allowed Asked Awaited Begun Between Briefly CaughtUp Changed Committed Compared Decided "
    "Denied Desk Differing Drawn Due Evaluated Extracted Failed Filtered Found Gathered Guess Held Hidden "
    "InTurns Kept Known Latest Learned Loaded Loading Look Lost Misfit Moved Near NoPatience NoWayBack "
    "NotBegun Nowhere OnDisk OneOf Opened Opening OutOfUse Overdue Packed Planned Prepared Ranked Read "
    "Recalled Refused Rejected Repeated Returned Said Seen Seldom Settled Side SidedCounts Stored Streamed "
    "Taken Told Trouble Unpacked Waiting Wanted Watched Way Wrapped"
)


def _classes() -> Iterator[tuple[str, str]]:
    """Yield the name of each class at the top of a module, and the module's path."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_bytes()).body:
                if isinstance(node, ast.ClassDef):
                    yield node.name, path.relative_to(ROOT).as_posix()


def test_no_two_public_classes_have_the_same_name() -> None:
    """A class of the HBase store may be called like its counterpart in the LMDB store, but like nothing else."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, path in _classes():
        if not name.startswith("_"):
            places[name].append(path)
    repeated = {name: paths for name, paths in places.items() if len(paths) > 1 and not _are_adapters(paths)}
    assert repeated == {}


def test_no_class_has_a_vague_name() -> None:
    """A name says what the object is: a release, a selection of the queue, a count of decisions."""
    vague = set(VAGUE.split())
    assert [(name, path) for name, path in _classes() if name.removeprefix("_") in vague] == []


def _are_adapters(paths: list[str]) -> bool:
    """Return whether these are one class of each store."""
    return len(paths) == len(ADAPTERS) and all(map(str.startswith, sorted(paths), ADAPTERS))
