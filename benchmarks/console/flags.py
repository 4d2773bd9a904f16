"""A console's database with so many flags, made without the console: rows are inserted before the indexes are.

One story has a tenth of all flags; the others are small. Sources are of very different sizes, and one of them fell
silent long ago, so that what is in force there is at the end of every order.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, Table, func, insert, select, text, update

from benchmarks.speed.report import tell
from consumer.reviews.database import Database
from consumer.reviews.tables import FLAGS, METADATA, SOURCES, STORIES, TALLY

NOW_MS: Final = 1_790_000_000_000
DAYS: Final = 90
DAY_MS: Final = 86_400_000
LARGE_STORY: Final = 1
"""The number of the story with a tenth of all flags."""
SOURCES_MADE: Final = 300
_IN_A_STORY: Final = 3
_SILENT: Final = 40
_STATES: Final = ("open", "skipped", "right", "wrong", "released")
_SHARES: Final = (0.72, 0.04, 0.14, 0.06, 0.04)
_NEAR_MISSES: Final = 0.02
_UNVERIFIED: Final = 0.03
_AT_ONCE: Final = 20_000


class Filled(NamedTuple):
    """What queries can ask for: sources that many, few and no recent flags have."""

    common: str
    rare: str
    silent: str


def fill(database: Database, flags: int, seed: int, open_share: float = _SHARES[0]) -> Filled:
    """Insert so many flags into an empty database, of which this share is open."""
    others = [share * (1 - open_share) / (1 - _SHARES[0]) for share in _SHARES[1:]]
    indexes = [index for table in METADATA.sorted_tables for index in table.indexes if table in {FLAGS, STORIES}]
    with database.write_transaction() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))
        for index in indexes:
            index.drop(connection)
        _insert(connection, SOURCES, ({"source_id": n + 1, "name": f"source-{n}"} for n in range(SOURCES_MADE)))
        _insert(connection, STORIES, _stories(flags))
        _insert(connection, FLAGS, _flags(flags, seed, [open_share, *others]))
        tell("indexes …")
        for index in indexes:
            index.create(connection)
        _count(connection)
    if connection.dialect.name == "postgresql":
        # What autovacuum does by itself, after some minutes.
        with database.read_connection() as connection:
            connection.rollback()
            connection.connection.driver_connection.autocommit = True  # type: ignore[union-attr]
            connection.exec_driver_sql("VACUUM ANALYZE")
            connection.connection.driver_connection.autocommit = False  # type: ignore[union-attr]
    return Filled("source-0", f"source-{SOURCES_MADE - 1}", f"source-{_SILENT}")


def _stories(flags: int) -> Iterator[dict[str, Any]]:
    for number in range(max(1, flags // _IN_A_STORY)):
        times = {"first_ms": NOW_MS, "last_ms": NOW_MS}
        yield {"story_id": number + 1, "root_id": f"root-{number}", "copies": 0, "open_copies": 0, **times}


def _flags(flags: int, seed: int, shares: Sequence[float]) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, SOURCES_MADE + 1)
    weights /= weights.sum()
    for start in range(0, flags, _AT_ONCE):
        count = min(_AT_ONCE, flags - start)
        sources, originals = (random.choice(SOURCES_MADE, count, p=weights) for _ in range(2))
        # In order of arrival, with a little disorder.
        share = (start + np.arange(count) + random.normal(0, 50, count)) / flags
        arrived_ms = NOW_MS - ((1 - np.clip(share, 0, 1)) * DAYS * DAY_MS).astype(np.int64)
        is_silent = share > 0.2  # of the time
        sources[is_silent & (sources == _SILENT)] = 0
        states = random.choice(len(_STATES), count, p=shares)
        similarity = np.round(np.clip(1 - random.exponential(0.08, count), 0.7, 1), 4)
        is_near_miss, is_unverified = random.random(count) < _NEAR_MISSES, random.random(count) < _UNVERIFIED
        stories = np.where(
            random.random(count) < 0.1,
            LARGE_STORY,
            2 + random.integers(0, max(1, flags // _IN_A_STORY - 1), count),
        )
        for at in range(count):
            verified = None if is_unverified[at] and not is_near_miss[at] else float(similarity[at])
            state = "open" if is_near_miss[at] and states[at] == len(_STATES) - 1 else _STATES[states[at]]
            story = int(stories[at])
            yield {
                "kind": "near_miss" if is_near_miss[at] else "flag",
                "article_id": f"article-{start + at:09}",
                "version": "0" * 32,
                "original_id": f"root-{story - 1}",
                "original_version": "1" * 32,
                "story_id": story,
                "source_id": int(sources[at]) + 1,
                "original_source_id": int(originals[at]) + 1,
                "similarity": verified,
                "distance": 3,
                "certainty": -4 / 65 if verified is None else verified,
                "sampled_in": 1.0,
                "truncated": False,
                "arrived_ms": int(arrived_ms[at]),
                "decided_ms": int(arrived_ms[at]) + 50,
                "state": state,
            }


def _insert(connection: Connection, table: Table, rows: Iterator[dict[str, Any]]) -> None:
    tell(f"{table.name} …")
    driver = connection.connection.driver_connection
    assert driver is not None
    if connection.dialect.name != "postgresql":
        while portion := list(islice(rows, _AT_ONCE)):
            connection.execute(insert(table), portion)
        return
    with closing(driver.cursor()) as cursor:
        names: Sequence[str] = ()
        while portion := list(islice(rows, _AT_ONCE)):
            names = names or list(portion[0])
            with cursor.copy(f"COPY {table.name} ({', '.join(names)}) FROM STDIN") as copy:
                for row in portion:
                    copy.write_row([row[name] for name in names])
    key = next(iter(table.primary_key)).name
    connection.execute(
        text(f"SELECT setval(pg_get_serial_sequence('{table.name}', '{key}'), max({key})) FROM {table.name}")
    )


def _count(connection: Connection) -> None:
    of_story = FLAGS.c.story_id == STORIES.c.story_id
    in_force = (FLAGS.c.kind == "flag", of_story)
    undecided = select(func.count()).where(*in_force, FLAGS.c.state.in_(("open", "skipped")))
    copies = select(func.count()).where(*in_force, FLAGS.c.state.in_(("open", "skipped", "right")))
    first, last = (select(of(FLAGS.c.arrived_ms)).where(of_story) for of in (func.min, func.max))
    connection.execute(
        update(STORIES).values(
            copies=copies.scalar_subquery(),
            open_copies=undecided.scalar_subquery(),
            first_ms=func.coalesce(first.scalar_subquery(), STORIES.c.first_ms),
            last_ms=func.coalesce(last.scalar_subquery(), STORIES.c.last_ms),
        )
    )
    of_state = (FLAGS.c.kind == TALLY.c.kind, FLAGS.c.state == TALLY.c.state)
    connection.execute(update(TALLY).values(flags=select(func.count()).where(*of_state).scalar_subquery()))
