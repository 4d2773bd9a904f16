"""Events, people and checks for the tests of the console's data."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from unittest.mock import patch

from sqlalchemy import Connection, delete, event, func, select, update

from consumer.judge.events import released_event
from consumer.model.bank_match import BankMatchEvent
from consumer.model.near_miss import NearMiss
from consumer.model.verdict import BankMention, EndedBefore, Verdict
from consumer.reviews import people
from consumer.reviews.database import Database, open_database
from consumer.reviews.flag_events import IntakeCounts, add_events
from consumer.reviews.flag_row import IN_FORCE, UNDECIDED, FlagRow, flag_row, flag_rows, tally
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.kinds.side_entries import add_bank_matches, add_ended_before, add_near_misses
from consumer.reviews.tables import FLAGS, METADATA, STORIES, TALLY
from consumer.reviews.word_index.words import WordCutter
from consumer.text.timestamps import rfc3339
from consumer.wiring import components
from consumer.workers.word_files import load_lexicon

NOW_MS = 1_790_000_000_000
Result = TypeVar("Result")
Given = ParamSpec("Given")


class Address(NamedTuple):
    """What a database is opened with."""

    url: str
    password: str | None


@cache
def _empty_database() -> bytes:
    """Return a file with all tables: making them takes longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "console.db"
        open_database(f"sqlite:///{path}").close()
        return path.read_bytes()


def empty_database(folder: Path) -> Address:
    """Put an empty database with all tables into a folder; all of them have the same identity."""
    path = folder / "console.db"
    path.write_bytes(_empty_database())
    return Address(f"sqlite:///{path}", None)


def database_in(folder: Path) -> Database:
    """Open an empty database in a folder."""
    return open_database(*empty_database(folder))


def flagged(
    article: str,
    original: str,
    *,
    version: str = "aa",
    original_version: str = "aa",
    cluster: str | None = None,
    similarity: float | None = 0.9,
    at_ms: int = NOW_MS,
    sources: tuple[str | None, str | None] = ("a", "b"),
    **fields: Any,  # noqa: ANN401  # whichever of a verdict's
) -> Verdict:
    """The event of a flag. Sources that are None are not in it, as in those of earlier versions."""
    named = {name: of for name, of in zip(("source", "original_source"), sources, strict=True) if of is not None}
    values = {
        "id": article,
        "version": version,
        "outcome": "duplicate",
        "duplicate_of": original,
        "duplicate_of_version": original_version,
        "cluster": cluster if cluster is not None else original,
        "distance": 2,
        "similarity": similarity,
        "fingerprint": "0" * 16,
        "scheme": "made",
        "arrived_at": rfc3339(at_ms),
        "decided_at": rfc3339(at_ms + 5),
        **named,
        **fields,
    }
    return Verdict(**values)


def released(flag: Verdict, *, at_ms: int = NOW_MS + 1_000) -> Verdict:
    """The event of the release of a flag."""
    return released_event(flag, by=None, reason=None, decided_ms=at_ms).verdict


def near_miss(article: str, original: str, *, similarity: float = 0.78, sampled_in: float = 20.0) -> NearMiss:
    """A sampled pair."""
    return NearMiss(
        id=article, version="aa", original=original, original_version="aa", source="a", original_source="b",
        similarity=similarity, threshold=0.8, distance=9, sampled_in=sampled_in, truncated=False,
        arrived_at=rfc3339(NOW_MS), decided_at=rfc3339(NOW_MS + 5),
    )  # fmt: skip


def repeat_of_ended(article: str, ended: str, *, similarity: float | None = 0.9, **fields: Any) -> Verdict:  # noqa: ANN401
    """The verdict on an article that was kept, although it repeats one that had ended."""
    before = EndedBefore(id=ended, version="aa", ended_at=rfc3339(NOW_MS - 1), similarity=similarity)
    return Verdict(
        **{
            "id": article, "version": "aa", "outcome": "unique", "arrived_at": rfc3339(NOW_MS),
            "decided_at": rfc3339(NOW_MS + 5), "ended_before": before, **fields,
        }
    )  # fmt: skip


def denied(name: str, similarity: float = 1.0, bank: str = "scams") -> BankMention:
    """An item of a bank that denies."""
    return BankMention(bank=bank, item=name, action="deny", form="similar", similarity=similarity)


def bank_match(article: str, *items: BankMention, version: str = "aa") -> BankMatchEvent:
    """The event of an article that repeats items of banks."""
    return BankMatchEvent(
        id=article, version=version, outcome="unique", banks=items, arrived_at=rfc3339(NOW_MS),
        decided_at=rfc3339(NOW_MS + 5),
    )  # fmt: skip


@cache
def word_cutter() -> WordCutter:
    """What cuts texts and searches into words, with its tables: loading them takes longer than most tests."""
    return components.word_cutter(load_lexicon())


def add(database: Database, *events: Verdict) -> IntakeCounts:
    """Take in events as one batch."""
    return write(database, add_events, events)


def add_missed(database: Database, *pairs: NearMiss) -> int:
    """Take in near misses as one batch."""
    return write(database, add_near_misses, pairs)


def add_repeats(database: Database, *verdicts: Verdict) -> int:
    """Take in repeats of ended articles as one batch."""
    return write(database, add_ended_before, verdicts)


def add_matches(database: Database, *events: BankMatchEvent) -> int:
    """Take in bank matches as one batch."""
    return write(database, add_bank_matches, events)


def add_person(database: Database, name: str, role: people.Role = "reviewer") -> people.Person:
    """Add somebody without a password."""
    return write(database, people.add_person, name, role, NOW_MS)


def read(
    database: Database,
    work: Callable[Concatenate[Connection, Given], Result],
    *args: Given.args,
    **fields: Given.kwargs,
) -> Result:
    """Return what a function reads."""
    with database.read_connection() as connection:
        return work(connection, *args, **fields)


def write(
    database: Database,
    work: Callable[Concatenate[Connection, Given], Result],
    *args: Given.args,
    **fields: Given.kwargs,
) -> Result:
    """Return what a function returns that writes."""
    return database.write(lambda connection: work(connection, *args, **fields))


def rows_of(database: Database) -> dict[str, FlagRow]:
    """Return all flags and near misses by article."""
    with database.read_connection() as connection:
        return {row.article_id: row for row in map(flag_row, connection.execute(flag_rows().order_by(FLAGS.c.flag_id)))}


def flag_ids(database: Database) -> list[int]:
    """Return the numbers of all flags, in order."""
    with database.read_connection() as connection:
        return list(connection.execute(select(FLAGS.c.flag_id).order_by(FLAGS.c.flag_id)).scalars())


def check_counts(database: Database) -> None:
    """Check that what is counted is what there is: in stories, and of each kind and state."""
    with database.read_connection() as connection:
        flags = connection.execute(select(FLAGS.c.story_id, FLAGS.c.kind, FLAGS.c.state, FLAGS.c.arrived_ms)).all()
        stories = connection.execute(select(STORIES)).all()
        counted = tally(connection)
    for story in stories:
        own = [flag for flag in flags if flag.story_id == story.story_id]
        copies = [flag.state for flag in own if flag.kind in COPY_KINDS]
        assert story.copies == sum(state in IN_FORCE for state in copies), story
        assert story.open_copies == sum(state in UNDECIDED for state in copies), story
        if own:
            times = [flag.arrived_ms for flag in own]
            assert (story.first_ms, story.last_ms) == (min(times), max(times)), story
    for (kind, state), number in counted.items():
        assert number == sum((flag.kind, flag.state) == (kind, state) for flag in flags), (kind, state)


def cleared(database: Database) -> Database:
    """Delete everything: the next example of a property begins."""
    with database.write_transaction() as connection:
        for table in reversed(METADATA.sorted_tables):
            if table is TALLY:
                connection.execute(update(TALLY).values(flags=0))
            else:
                connection.execute(delete(table))
    return database


def number_of(database: Database, table: Any) -> int:  # noqa: ANN401  # any of the tables
    """Return how many rows a table has."""
    with database.read_connection() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


@contextmanager
def counted_writes(database: Database) -> Iterator[list[None]]:
    """Yield a list that gets an item with each transaction that writes."""
    begun: list[None] = []

    def begin() -> AbstractContextManager[Connection]:
        begun.append(None)
        return Database.write_transaction(database)

    with patch.object(database, "write_transaction", begin):
        yield begun


class Execution(NamedTuple):
    """A statement that was executed, and its parameters: those of the first row if there are several."""

    sql: str
    parameters: Any


@contextmanager
def executions(database: Database) -> Iterator[list[Execution]]:
    """Yield the statements that are executed within."""
    found: list[Execution] = []

    def keep(_c: object, _cursor: object, sql: str, parameters: Any, *_: object) -> None:  # noqa: ANN401  # as it is called
        found.append(Execution(sql, parameters[0] if isinstance(parameters, list) else parameters))

    event.listen(database._engine, "before_cursor_execute", keep)
    try:
        yield found
    finally:
        event.remove(database._engine, "before_cursor_execute", keep)


def at_once(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Let each work be done by a thread of its own, all at the same time; return what they return."""
    gate = threading.Barrier(len(works))
    found: list[Result | BaseException | None] = [None] * len(works)

    def run(number: int) -> None:
        gate.wait()
        try:
            found[number] = works[number]()
        except BaseException as error:  # noqa: BLE001  # raised again below
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results: list[Result] = []
    for each in found:
        if isinstance(each, BaseException):
            raise each
        results.append(each)  # type: ignore[arg-type]
    return results
