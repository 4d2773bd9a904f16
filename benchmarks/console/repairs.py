"""How long repairs of a large story take: ``python -m benchmarks.console.repairs``.

A database of its own, SQLite in a file or with ``--postgresql`` a server of its own, is filled
(``benchmarks.console.flags``), so that one story has a tenth of all flags. Its page is opened. Then an article is split
off, a small story is merged into it, it is merged into a small one, and an article that all others of it repeat is
split off; each time with its undoing.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Final

import typer
from sqlalchemy import select

from benchmarks.console.flags import LARGE_STORY, NOW_MS, fill
from benchmarks.console.queue import PAGE_ROWS, opened, took
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.console.pages.repairs.repaired import repairs_of
from consumer.console.story_chart import bar_length_ms
from consumer.model.verdict import Verdict
from consumer.reviews import people, stories
from consumer.reviews.database import Connection, Database
from consumer.reviews.flag_events import add_events
from consumer.reviews.people import Person
from consumer.reviews.repairs import merge, split
from consumer.reviews.tables import FLAGS
from consumer.text.timestamps import rfc3339

PART: Final = "console_repairs"
SMALL_STORY: Final = 77
MS_PER_S: Final = 1_000

Repair = Callable[[Connection], object]


def main(
    flags: Annotated[int, typer.Option(min=1_000)] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    seed: int = 1,
    *,
    postgresql: Annotated[
        bool, typer.Option("--postgresql", help="A PostgreSQL of its own in place of SQLite.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure the page of a large story, and its repairs."""
    with (
        tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder,
        opened(Path(folder), postgresql=postgresql) as database,
    ):
        fill(database, flags, seed)
        opened_ms, _ = took(database, _page, rounds)
        rows: list[Row] = [{"a large story": "its page: itself, copies, timeline, repairs", "median, ms": opened_ms}]
        rows += _measured(database, rounds)
    kind = "PostgreSQL" if postgresql else "SQLite"
    publish(PART, f"{flags:,} flags in {kind}", rows, out=out, flags=flags, rounds=rounds, postgresql=postgresql)


def _page(connection: Connection) -> None:
    """Read what the page of the story shows."""
    story = stories.story(connection, LARGE_STORY)
    assert story is not None
    stories.copies(connection, LARGE_STORY, None, PAGE_ROWS)
    stories.timeline(connection, story, bar_length_ms(story.first_ms, story.last_ms))
    stories.root_versions(connection, [story.root_id, *repairs_of(connection, story).root_ids])


def _measured(database: Database, rounds: int) -> Iterator[Row]:
    ann = database.write(partial(people.add_person, name="Ann", role="reviewer", now_ms=NOW_MS))
    yield from _repaired(database, rounds, "split off an article", *_split(_copy(database), ann))
    yield from _repaired(database, rounds, "merge a small story into it", *_merge(SMALL_STORY, LARGE_STORY, ann))
    yield from _repaired(database, rounds, "merge it into a small story", *_merge(LARGE_STORY, SMALL_STORY, ann))
    middle = database.write(_repeated)
    yield from _repaired(database, rounds, "split off what all others repeat", *_split(middle, ann))


def _split(flag_id: int, by: Person) -> tuple[Repair, Repair]:
    return (
        partial(split.split, flag_id=flag_id, person=by, now_ms=NOW_MS),
        partial(split.undo_split, flag_id=flag_id, person=by, now_ms=NOW_MS),
    )


def _merge(story_id: int, into_id: int, by: Person) -> tuple[Repair, Repair]:
    return (
        partial(merge.merge, story_id=story_id, into_id=into_id, person=by, now_ms=NOW_MS),
        partial(merge.undo_merge, story_id=story_id, person=by, now_ms=NOW_MS),
    )


def _repaired(database: Database, rounds: int, name: str, repair: Repair, undo: Repair) -> Iterator[Row]:
    """Repair and undo in turn, and yield the medians."""
    tell(f"{name} …")
    times: dict[Repair, list[float]] = {repair: [], undo: []}
    for _ in range(rounds):
        for work, taken in times.items():
            began_s = time.perf_counter()
            database.write(work)
            taken.append(MS_PER_S * (time.perf_counter() - began_s))
    for said, work in ((name, repair), (f"{name}: undo", undo)):
        yield {"a large story": said, "median, ms": median(times[work]), "slowest, ms": max(times[work])}


def _copy(database: Database) -> int:
    """Return a copy of the story that can be split off."""
    of_story = (FLAGS.c.story_id == LARGE_STORY, FLAGS.c.kind == "flag", FLAGS.c.released_ms.is_(None))
    with database.read_connection() as connection:
        flag_id: int = connection.execute(select(FLAGS.c.flag_id).where(*of_story).limit(1)).scalar_one()
    return flag_id


def _repeated(connection: Connection) -> int:
    """Let the original of the story be a copy, which all others repeat then; return the number of its flag."""
    at = rfc3339(NOW_MS)
    flag = Verdict(
        id="root-0", version="1" * 32, outcome="duplicate", duplicate_of="earlier", duplicate_of_version="2" * 32,
        cluster="earlier", distance=3, similarity=0.9, arrived_at=at, decided_at=at, source="a", original_source="b",
    )  # fmt: skip
    add_events(connection, [flag])
    named = (FLAGS.c.article_id == "root-0", FLAGS.c.version == "1" * 32)
    flag_id: int = connection.execute(select(FLAGS.c.flag_id).where(*named)).scalar_one()
    return flag_id


if __name__ == "__main__":
    typer.run(main)
