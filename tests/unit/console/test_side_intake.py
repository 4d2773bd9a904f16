"""How batches of topics with other entries than flags get into the database."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from consumer.console.intake import event_reading
from consumer.console.intake.intake import ConsoleStopped
from consumer.console.intake.side_intake import (
    BANK_MATCHES,
    NEAR_MISSES,
    REPEATS_OF_RETRACTED,
    SideEntryKind,
    SideIntake,
)
from consumer.model.hooks import Hooks, Outage
from consumer.model.near_miss import encode
from consumer.model.verdict import Verdict, decode_verdict
from consumer.model.verdict import encode as encode_verdict
from consumer.reviews import queue
from consumer.reviews.database import Connection, Database, DatabaseUnavailable
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.kinds.bank_mentions import mentions_of
from consumer.reviews.queue import Filters
from consumer.telemetry.metrics.console import EventSkipped, EventsTaken
from tests.unit.console.events_made import (
    ScriptedSource,
    batch,
    flag,
    matched,
    matched_batch,
    missed,
    missed_batch,
    repeat,
    unique,
)
from tests.unit.reviews.made import check_counts, database_in


class Taking:
    """An intake over a database, and what it reports."""

    def __init__(self, database: Database, side: SideEntryKind[Any] = NEAR_MISSES) -> None:
        self.database = database
        self.stopping = threading.Event()
        self.reported: list[object] = []
        hooks = Hooks()
        for kind in (EventsTaken, EventSkipped, Outage):
            hooks.on(kind, self.reported.append)
        self.hooks = hooks
        self.intake: SideIntake[Any] = SideIntake(side, database, hooks, self.stopping)

    def take(self, *batches: object, lost: int = 0) -> ScriptedSource:
        """Take batches in."""
        source = ScriptedSource(*batches, lost=lost)  # type: ignore[arg-type]
        self.intake.take_all(source)
        return source

    def rows(self) -> list[FlagRow]:
        """What is there, in order of the ids."""
        with self.database.read_connection() as connection:
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


def test_a_database_that_is_away_is_waited_for(taking: Taking) -> None:
    """Nothing is committed before it is stored."""
    away = [True, True]

    def failing(*arguments: Any) -> int:  # noqa: ANN401  # whatever they are
        if away:
            away.pop()
            raise DatabaseUnavailable("no connection")
        return NEAR_MISSES.add(*arguments)

    side = replace(NEAR_MISSES, add=failing)
    taking.intake = SideIntake(side, taking.database, taking.hooks, taking.stopping)
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
    with pytest.raises(ConsoleStopped):
        taking.intake.take_all(source)
    begun, ended = taking.reported
    assert isinstance(begun, Outage)
    assert "update the console" in (begun.reason or "")
    assert ended == Outage("source", "newer event, near misses", None)
    assert source.committed == []
    assert taking.rows() == []


def test_a_flag_of_a_story_and_a_near_miss_of_it_are_one_story(taking: Taking) -> None:
    """Whichever came first; the near miss is no copy."""
    taking.take(missed_batch(missed(1), missed(2)))
    first, second = taking.rows()
    assert first.story_id == second.story_id
    assert first.copies == 0


def test_bank_matches_of_one_version_are_one_entry(taking: Taking) -> None:
    """With what was found later; what is broken, or names no item, is counted."""
    found = Taking(taking.database, BANK_MATCHES)
    allowed = matched(2, action="allow")
    found.take(matched_batch(matched(1), matched(1, item="late", similarity=0.9, retroactive=True), allowed, b"{"))
    (row,) = found.rows()
    assert (row.kind, row.article_id, row.similarity, row.source) == ("bank_match", "a1", 0.9, None)
    with taking.database.read_connection() as connection:
        (mentions,) = mentions_of(connection, [row.flag_id]).values()
    assert [mention.item for mention in mentions] == ["late", "offer"]
    assert [each for each in found.reported if not isinstance(each, Outage)] == [
        EventSkipped("not_an_event"),
        EventSkipped("not_an_event"),
        EventsTaken("bank_match", 1),
        EventsTaken("known", 1),
    ]


def test_of_all_verdicts_only_repeats_of_ended_articles_are_taken(
    taking: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are passed over by their bytes: nothing is decoded, and no transaction begins."""
    decoded: list[bytes] = []

    def noted(data: bytes) -> Verdict:
        decoded.append(data)
        return decode_verdict(data)

    monkeypatch.setattr(event_reading, "decode_verdict", noted)
    transactions: list[object] = []

    def counted(work: Callable[[Connection], Any]) -> Any:  # noqa: ANN401  # whatever the work returns
        transactions.append(work)
        return Database.write(taking.database, work)

    monkeypatch.setattr(taking.database, "write", counted)
    found = Taking(taking.database, REPEATS_OF_RETRACTED)
    named = unique(3, id='"ended_before"')
    source = found.take(batch(unique(1), flag(2), named), batch(unique(4), repeat(5), b"{", begin=3))
    assert source.committed == [3, 6]
    (row,) = found.rows()
    assert (row.kind, row.article_id, row.original_id, row.similarity) == ("ended_before", "a5", "a0", 0.8)
    assert decoded == [encode_verdict(repeat(5)), b"{"]
    assert len(transactions) == 1
    assert [each for each in found.reported if isinstance(each, EventsTaken)] == [
        EventsTaken("other", 3),
        EventsTaken("other", 1),
        EventsTaken("ended_before", 1),
    ]


def test_a_verdict_of_a_newer_version_is_not_passed_over(taking: Taking) -> None:
    """It may say such a thing in other words."""
    found = Taking(taking.database, REPEATS_OF_RETRACTED)
    found.stopping.set()
    newer = encode_verdict(unique(1)).replace(b"verdict/1", b"verdict/2")
    with pytest.raises(ConsoleStopped):
        found.intake.take_all(ScriptedSource(batch(newer)))
    assert [each.reporter for each in found.reported if isinstance(each, Outage) and each.reason] == [
        "newer event, repeats of retracted articles"
    ]
