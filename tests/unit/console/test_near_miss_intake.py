"""How batches of the topic of near misses get into the database."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.console.intake import intake as module
from consumer.console.intake.intake import NearMissIntake, Stopped
from consumer.model.hooks import Hooks, Outage
from consumer.model.near_miss import encode
from consumer.reviews import queue
from consumer.reviews.database import Database, DatabaseUnavailable
from consumer.reviews.flag_events import add_near_misses
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.queue import Filters
from consumer.telemetry.metrics.console import EventSkipped, EventsTaken
from tests.unit.console.events_made import ScriptedSource, missed, missed_batch
from tests.unit.reviews.made import check_counts, database_in


class Taking:
    """An intake over a database, and what it reports."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.stopping = threading.Event()
        self.reported: list[object] = []
        hooks = Hooks()
        for kind in (EventsTaken, EventSkipped, Outage):
            hooks.on(kind, self.reported.append)
        self.intake = NearMissIntake(database, hooks, self.stopping)

    def take(self, *batches: object, lost: int = 0) -> ScriptedSource:
        """Take batches in."""
        source = ScriptedSource(*batches, lost=lost)  # type: ignore[arg-type]
        self.intake.take_all(source)
        return source

    def rows(self) -> list[FlagRow]:
        """What is there, in order of the ids."""
        with self.database.reading() as connection:
            found = queue.page(connection, Filters(state=None), "oldest", 100).rows
        return sorted(found, key=lambda row: row.article_id)


@pytest.fixture
def taking(tmp_path: Path) -> Iterator[Taking]:
    """An intake over a database that is empty."""
    opened = database_in(tmp_path)
    yield Taking(opened)
    check_counts(opened)
    opened.close()


def test_a_batch_is_stored_and_then_committed(taking: Taking) -> None:
    """With both sources, which the events name; what comes again changes nothing, and is counted."""
    source = taking.take(missed_batch(missed(1), missed(2, sampled_in=100.0), missed(1)))
    assert source.committed == [3]
    first, second = taking.rows()
    assert (first.kind, first.state, first.source, first.original_source) == ("near_miss", "open", "post", "wire")
    assert (first.similarity, first.distance, first.sampled_in) == (0.7, 9, 20.0)
    assert (second.article_id, second.sampled_in) == ("a2", 100.0)
    taking.take(missed_batch(missed(1), missed(2)))
    assert taking.rows() == [first, second]
    taken = [each for each in taking.reported if isinstance(each, EventsTaken)]
    assert taken == [EventsTaken("near_miss", 2), EventsTaken("known", 1), EventsTaken("known", 2)]


def test_what_is_broken_costs_nobody_elses_data(taking: Taking) -> None:
    """It is counted, and its batch is stored and committed; a batch of nothing else is committed, too."""
    source = taking.take(missed_batch(b"{", missed(1), None), missed_batch(b"x", begin=3))
    assert source.committed == [3, 4]
    assert [row.article_id for row in taking.rows()] == ["a1"]
    skipped = [each for each in taking.reported if isinstance(each, EventSkipped)]
    assert skipped == [EventSkipped("not_an_event"), EventSkipped("null_value"), EventSkipped("not_an_event")]


def test_a_database_that_is_away_is_waited_for(taking: Taking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is committed before it is stored."""
    away = [True, True]

    def failing(*arguments: object) -> object:
        if away:
            away.pop()
            raise DatabaseUnavailable("no connection")
        return add_near_misses(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "add_near_misses", failing)
    assert taking.take(missed_batch(missed(1))).committed == [1]
    assert [row.article_id for row in taking.rows()] == ["a1"]
    outages = [each for each in taking.reported if isinstance(each, Outage)]
    assert outages == [Outage("database", "near misses", why) for why in ("no connection", "no connection", None)]


def test_a_batch_that_others_have_is_left_to_them(taking: Taking) -> None:
    """It is not committed; what was stored of it meanwhile comes again, and changes nothing."""
    source = taking.take(missed_batch(missed(1)), missed_batch(missed(2), begin=1), lost=1)
    assert (source.committed, source.abandoned) == ([2], 1)
    taking.take(missed_batch(missed(1)))
    assert [row.article_id for row in taking.rows()] == ["a1", "a2"]


def test_one_of_a_newer_version_is_waited_with(taking: Taking) -> None:
    """Nothing of its batch is committed, and readiness says what to do."""
    newer = encode(missed(1)).replace(b"dupwatch.near-miss/1", b"dupwatch.near-miss/2")
    source = ScriptedSource(missed_batch(missed(2), newer))
    taking.stopping.set()
    with pytest.raises(Stopped):
        taking.intake.take_all(source)
    begun, ended = taking.reported
    assert isinstance(begun, Outage)
    assert "update the console" in (begun.why or "")
    assert ended == Outage("source", "newer event, near misses", None)
    assert source.committed == []
    assert taking.rows() == []


def test_a_flag_of_a_story_and_a_near_miss_of_it_are_one_story(taking: Taking) -> None:
    """Whichever came first; the near miss is no copy."""
    taking.take(missed_batch(missed(1), missed(2)))
    first, second = taking.rows()
    assert first.story_id == second.story_id
    assert first.copies == 0
