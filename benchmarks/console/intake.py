"""How fast the console takes in flags over HBase: ``python -m benchmarks.console.intake``.

An HBase of its own is filled with judged articles: originals, and copies of them from other sources. Then the flags of
the copies come in, in batches as large as the console reads. Flags of this version name both sources. Flags of earlier
versions do not: their sources are read from the store, and the clock stops once all are known. Both kinds take turns,
each with flags of its own, and the ratio is taken round by round.
"""

import random
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
import typer

from benchmarks.console.queue import opened
from benchmarks.hbase.servers import empty_store, servers
from benchmarks.hbase_store import version
from benchmarks.speed.harness import Contender, ratios, take_turns
from benchmarks.speed.report import OUT, publish, tell
from consumer.config.sections.console import ConsoleSection
from consumer.console.intake.event_reading import place_in_topic
from consumer.console.intake.intake import Intake, IntakeParts
from consumer.console.intake.store_reading import fill_in_sources
from consumer.judge.decision import Duplicate, Neighbour
from consumer.judge.events import duplicate_event, kept_event
from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent, encode
from consumer.reviews.database import Database
from consumer.wiring.console_feed import LIMITS
from consumer.wiring.console_store import StoredArticleReader
from storage.clock import now_ms
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.store import HbaseStore
from storage.interface import Store
from storage.records import Version

PART: Final = "console_intake"
SOURCES: Final = 300
COPIES: Final = 3
"""Copies of each original."""
HEAP_MB: Final = 1024
_STORIES_AT_ONCE: Final = 64


class Turn(NamedTuple):
    """The same flags, as records of a topic, with sources and without."""

    named: list[RawRecord]
    unnamed: list[RawRecord]


def turn(store: Store, flags: int, chance: random.Random) -> Turn:
    """Store originals and copies with their verdicts, and return this many flags of the copies."""
    events: list[VerdictEvent] = []
    while len(events) < flags:
        judged = [each for _ in range(_STORIES_AT_ONCE) for each in _story(chance)]
        store.create([article for article, _ in judged])
        store.settle([(article.reference, event.encoded) for article, event in judged])
        events += [event for _, event in judged if event.verdict.outcome == "duplicate"]
    unset = msgspec.UNSET
    earlier = [msgspec.structs.replace(each.verdict, source=unset, original_source=unset) for each in events[:flags]]
    return Turn([_record(each.encoded) for each in events[:flags]], [_record(encode(each)) for each in earlier])


def _story(chance: random.Random) -> Iterator[tuple[Version, VerdictEvent]]:
    """Yield an original and its copies, each with its verdict."""
    original = _article(chance)
    yield original, kept_event(original.record, truncated=False, decided_ms=now_ms())
    near = Neighbour(original.record, 3, 0.9)
    for _ in range(COPIES):
        copy = _article(chance)
        found = Duplicate(copy.record, near, (near,))
        yield copy, duplicate_event(found, truncated=False, decided_ms=now_ms())


def _article(chance: random.Random) -> Version:
    made = version(chance)
    source = f"source-{chance.randrange(SOURCES)}"
    return made._replace(record=msgspec.structs.replace(made.record, source=source))


def _record(event: bytes) -> RawRecord:
    return RawRecord(line=0, start=0, data=event, size_bytes=len(event), sha256=None, fault=None)


class Console:
    """The console's intake over a store and a database."""

    def __init__(self, store: Store, database: Database) -> None:
        self._parts = IntakeParts(database, ConsoleSection(), now_ms, Hooks(), lambda: None)
        self._intake = Intake(self._parts, threading.Event())
        self._articles = StoredArticleReader(lambda: store)

    def take_in(self, flags: Sequence[RawRecord]) -> int:
        """Take in flags, and return how many there were once their sources are known."""
        for start in range(0, len(flags), LIMITS.batch_records_max):
            events = self._intake.read(flags[start : start + LIMITS.batch_records_max], place_in_topic)
            self._intake.take_in(events, self._intake.proceed)
        while fill_in_sources(self._parts, self._articles):
            pass
        return len(flags)


def main(
    flags: Annotated[int, typer.Option(min=1, help="Flags in a turn.")] = 2_000,
    rounds: Annotated[int, typer.Option(min=1)] = 9,
    seed: int = 1,
    *,
    postgresql: Annotated[
        bool, typer.Option("--postgresql", help="A PostgreSQL of its own in place of SQLite.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure the intake of flags with and without sources."""
    with (
        tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder,
        servers(None, heap_mb=HEAP_MB) as running,
        opened(Path(folder), postgresql=postgresql) as database,
    ):
        store = HbaseStore.open(parse_place(empty_store(running)), HbaseOptions())
        tell("articles …")
        turns = [turn(store, flags, random.Random(seed + number)) for number in range(2 * (rounds + 1))]
        console = Console(store, database)
        named, unnamed = take_turns(
            [
                Contender("with sources", lambda number: console.take_in(turns[2 * number].named)),
                Contender("without", lambda number: console.take_in(turns[2 * number + 1].unnamed)),
            ],
            rounds,
        )
        store.close()
    rows = [
        {"flags": unnamed.name, "flags/s": unnamed.rate},
        {"flags": named.name, "flags/s": named.rate, "times as fast": ratios(named, unnamed)},
    ]
    kind = "PostgreSQL" if postgresql else "SQLite"
    publish(PART, f"Intake over HBase into {kind}", rows, out=out, flags=flags, rounds=rounds, postgresql=postgresql)


if __name__ == "__main__":
    typer.run(main)
