"""No statement of every day reads a whole table: SQLite says how it finds rows."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer.reviews import attempts, audit, discussion, queue, sending, sessions, stories
from consumer.reviews.database import Connection, Database, open_database
from consumer.reviews.decisions import decide, undo
from consumer.reviews.discussion import add_note, history
from consumer.reviews.flag_events import FlagSources, set_sources, sources_missing
from consumer.reviews.floods import floods, note_floods, unannounced_floods
from consumer.reviews.moderation import claims
from consumer.reviews.outbox import deliveries, sink_events, webhooks
from consumer.reviews.outbox.story_events import write_growth_events
from consumer.reviews.pairs import reports, reviewed_pairs
from consumer.reviews.pairs.reports import MissedPair
from consumer.reviews.pairs.reviewed_pairs import pairs
from consumer.reviews.queue import Filters
from consumer.reviews.ranking.preferred import MemberChanges, preferred_members, update_preferred_in
from consumer.reviews.ranking.preferring import refresh_preferred
from consumer.reviews.ranking.rank_changes import apply_ranks, configure_ranks, set_rank
from consumer.reviews.repairs import merge, split
from consumer.reviews.repairs.in_force import stories_above
from consumer.reviews.repairs.repair_list import merges_into
from consumer.reviews.standing.application import apply
from consumer.reviews.standing.standing_decisions import (
    NewStandingDecision,
    begin,
    end,
    end_all_of,
    ended_since,
    in_force,
    pair_history,
)
from tests.unit.reviews.made import (
    NOW_MS,
    Execution,
    add,
    add_missed,
    add_person,
    executions,
    flagged,
    near_miss,
    read,
    released,
    write,
)
from tests.unit.reviews.webhooks_made import add_webhook, happened, settings, tell

SMALL_TABLES = {
    "alembic_version",
    "tally",
    "people",
    "reasons",
    "looking",
    "floods",
    "webhooks",
    "reports",
    "story_merges",
    "story_splits",
    "sign_in_failures",
    "standing_decisions",
    "candidates",
    "below",
    "above",
    "merged",
    "some",
    "source_ranks",
    "taking_part",
}
"""Tables that stay small, and what a query has made itself."""


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Database]:
    """A new database in a file."""
    database = open_database(f"sqlite:///{tmp_path / 'console.db'}")
    yield database
    database.close()


def distinct(executed: Iterable[Execution]) -> list[Execution]:
    """Return the first execution of each statement."""
    return list({each.sql: each for each in reversed([*executed])}.values())[::-1]


def whole_tables(database: Database, executed: Iterable[Execution]) -> list[str]:
    """Return which statements read a table from one end to the other."""
    found = []
    with database.read_connection() as connection:
        for statement, parameters in distinct(executed):
            if not statement.startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
                continue
            for *_, said in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all():
                table = said.removeprefix("SCAN ").split()[0]
                if said.startswith("SCAN") and table not in SMALL_TABLES and not table.startswith(("anon_", "(")):
                    found.append(f"{said}: {statement}")
    return [each for each in found if " CONSTANT ROW" not in each]


def everything(database: Database) -> None:
    """Do what the console does every day."""
    middle = flagged("b", "a", sources=(None, None))
    add(database, flagged("c", "b"), flagged("d", "b", sources=(None, "x")))
    added = add(database, middle, released(flagged("c", "b")))
    add(database, released(middle), flagged("e", "c"))
    add_missed(database, near_miss("n", "b"))
    write(database, note_floods, added.stories, NOW_MS, 9.0, 1)
    write(database, write_growth_events, added.grown, NOW_MS)
    write(database, sink_events.hold_lease, "w", NOW_MS, 9)
    for kinds in (["story"], ["flood"], ["flood", "story"]):
        waiting = read(database, sink_events.pending_events, kinds, 0, 2)  # type: ignore[arg-type]  # kinds
        write(database, sink_events.mark_events_sent, [each.event_id for each in waiting])
    missing = read(database, sources_missing, 9)
    ranked = add_person(database, "Wei", "admin").person_id
    write(database, configure_ranks, {"a": 3}, NOW_MS)
    write(database, apply_ranks, NOW_MS)
    write(database, set_rank, "s", 5, ranked, NOW_MS)
    write(database, set_sources, [FlagSources(row.flag_id, "s", "t") for row in missing])
    write(database, refresh_preferred, MemberChanges(joined=[1, 2], left=[3], stories=[1]), NOW_MS)
    write(database, update_preferred_in, [1, 2])
    ann = add_person(database, "Ann").person_id
    made = write(database, decide, [2, 4], ann, "wrong", "", NOW_MS, 5).review_ids
    write(database, undo, made[:1], ann, NOW_MS)
    write(database, sending.claim_due, "w", NOW_MS + 9, 9, 9)
    write(database, sending.mark_sent, made[0], NOW_MS)
    read(database, sending.backlog, NOW_MS)
    write(database, add_note, 2, ann, "note", NOW_MS)
    claims.record_opening(database, read(database, claims.viewers, 2), 2, ann, NOW_MS)
    left = read(database, queue.flags, [2])[0]
    bob = add_person(database, "Bob").person_id
    claims.next_flag(database, Filters(), "certainty", left, bob, NOW_MS)
    secret = write(database, sessions.begin_session, ann, NOW_MS, 9)
    sessions.person_of(database, secret, NOW_MS, 9)
    write(database, sessions.sweep, NOW_MS)
    (begun,), _ = write(database, attempts.begin, [attempts.AttemptLimit("name:Ann", 3)], NOW_MS)
    write(database, attempts.take_back, begun)
    write(database, attempts.forget, "name:Ann")
    muted = NewStandingDecision("wrong", ann, NOW_MS + 9, "", sources=(1, 2))
    new = NewStandingDecision("right", ann, NOW_MS + 9, "", story_id=1)
    standing = [write(database, begin, each, NOW_MS) for each in (muted, new)]
    for are_stored in (False, True):
        late = add(database, flagged(f"late-{are_stored}", "b", at_ms=NOW_MS))
        write(database, apply, late.flag_ids, NOW_MS, 5, are_stored=are_stored)
    write(database, end, standing[0].standing_id, NOW_MS + 1)
    write(database, end_all_of, ann, NOW_MS + 1)
    missed = MissedPair(
        article_id="b", version="aa", original_id="a", original_version="aa", source="s", original_source="t",
        similarity=0.7, distance=9, arrived_ms=NOW_MS,
    )  # fmt: skip
    made_report = write(database, reports.add, missed, ann, "", NOW_MS, 5)
    read(database, reports.report_of, missed)
    read(database, reports.flag_of_pair, missed)
    write(database, reports.undo, made_report or 0, ann, NOW_MS)
    read(database, audit.has_entry, "session.begin", "Ann", "::1", NOW_MS)
    sent_to_webhooks(database)


def sent_to_webhooks(database: Database) -> None:
    """Do what the console does for each event and each webhook."""
    hook = add_webhook(database, settings())
    tell(database, happened("a", 1), happened("b", 1), happened("c"))
    read(database, deliveries.destinations, NOW_MS)
    read(database, deliveries.is_any_due, hook, NOW_MS)
    first, last = write(database, deliveries.claim_due_deliveries, hook, NOW_MS, 9, 9)
    write(database, deliveries.note_failed, deliveries.Failure(first, 500, "status", NOW_MS), NOW_MS)
    read(database, deliveries.failing_since, hook)
    write(database, deliveries.note_accepted, [last], NOW_MS)
    write(database, webhooks.send_waiting, hook, NOW_MS)
    write(database, deliveries.end_long_waits, NOW_MS)
    add(database, flagged("g", "f"), flagged("h", "g"), flagged("j", "i"))
    person = add_person(database, "Cleo")
    (flag_id,) = [flag.flag_id for flag in read(database, reports.flags_of_article, "g", 5)]
    read(database, split.moving_copies, flag_id)
    write(database, split.split, flag_id, person, NOW_MS)
    one, other = (read(database, stories.story_of_article, name) for name in "gi")
    assert one is not None
    assert other is not None
    write(database, merge.merge, one.story_id, other.story_id, person, NOW_MS)
    add(database, flagged("k", "g"))
    read(database, merges_into, other.story_id, 5)
    write(database, merge.undo_merge, one.story_id, person, NOW_MS)
    write(database, split.undo_split, flag_id, person, NOW_MS)


def looked_at(connection: Connection) -> None:
    """Show what the console shows every day."""
    ranges: list[dict[str, Any]] = [{}, {"similarity_min": 0.1}, {"arrived_from_ms": 1, "arrived_to_ms": 2}]
    chosen: list[dict[str, Any]] = [
        {},
        {"source": "s"},
        {"original_source": "t"},
        {"source": "s", "original_source": "t"},
    ]
    for order in queue.ORDERS:
        for filters in [*chosen, {"story_id": 1}, {"story_id": 1, "source": "s"}]:
            for range_ in ranges:
                for state in ("open", None):
                    queue.page(connection, Filters(**{"state": state, **filters, **range_}), order, 5)
    for filters in [*chosen, {"story_id": 1, "source": "s"}]:
        for range_ in [*ranges, {"similarity_min": 0.1, "arrived_from_ms": 1}]:
            queue.state_counts(connection, Filters(**filters, **range_))
            queue.count_new(connection, Filters(**filters, **range_), 1)
    queue.counts(connection)
    queue.latest_flag_id(connection)
    queue.flag(connection, 1)
    history(connection, 2)
    story = stories.Story(1, "r", None, copies=1, open_copies=1, first_ms=0, last_ms=4_000)
    stories.story(connection, 1)
    stories.copies(connection, 1, None, 5)
    stories.timeline(connection, story, 1_000)
    stories.largest_stories(connection, 0, 5)
    stories.fastest_stories(connection, 0, 5)
    stories.pairs_of_sources(connection, 0, 5)
    stories.source_names(connection, [1, 2])
    stories.count_sources(connection, [story], 0)
    preferred_members(connection, [1, 2])
    stories_above(connection, [1, 2])
    in_force(connection, NOW_MS)
    ended_since(connection, NOW_MS, NOW_MS)
    pair_history(connection, (1, 2), NOW_MS)
    discussion.deciders(connection, [1, 2])
    floods(connection, 5)
    unannounced_floods(connection, 5)
    audit.search(connection, audit.AuditFilters(person="Ann", action="x", from_ms=1), None, 5)
    list(pairs(connection))
    reports.latest_reports(connection, 5)
    reports.flags_of_article(connection, "b", 5)


def test_many_new_flags_are_found_by_number(kept: Database) -> None:
    """SQLite's plan depends on how many are named. By an index of states it would read all that are open."""
    with executions(kept) as executed:
        add(kept, *(flagged(f"copy-{number}", "original") for number in range(100)))
    named = [each for each in distinct(executed) if "flags.flag_id IN" in each.sql]
    assert len(named) == 2
    for statement, parameters in named:
        with kept.read_connection() as connection:
            said = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        assert "SEARCH flags USING INTEGER PRIMARY KEY (rowid=?)" in said, (statement, said)


def counted(connection: Connection) -> None:
    """Count what thresholds are judged by."""
    reviewed_pairs.pair_counts(connection)
    reviewed_pairs.pair_counts(connection, 1)
    reviewed_pairs.reviews_by_source(connection)
    reviewed_pairs.count_unverified(connection)


def test_what_is_counted_of_all_pairs_is_in_the_index_that_has_its_order(kept: Database) -> None:
    """Every flag is counted, but neither is its row read for it, nor are similarities sorted."""
    with executions(kept) as executed:
        read(kept, counted)
    # It is asked whether standing decisions have decided anything.
    selects = [each for each in distinct(executed) if each.sql.startswith("SELECT") and "standing" not in each.sql]
    assert len(selects) == 6
    for statement, parameters in selects:
        with kept.read_connection() as connection:
            said = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        of_flags = [each for each in said if each.split()[1] == "flags"]
        # How near misses were sampled is not in it, and they are few.
        is_covered = "flags.sampled_in" not in statement
        assert of_flags
        assert all("INDEX" in each and ("COVERING" in each or not is_covered) for each in of_flags), said
        if statement.startswith("SELECT flags.certainty") and is_covered:
            assert not any("B-TREE FOR GROUP BY" in each for each in said), (statement, said)


def test_rows_are_found_by_index(kept: Database) -> None:
    """With a million of them, too, whatever a person or an event asks for."""
    with executions(kept) as executed:
        everything(kept)
        read(kept, looked_at)
    assert len(distinct(executed)) > 50
    assert whole_tables(kept, executed) == []


def test_a_whole_table_is_noticed(kept: Database) -> None:
    """Or the test above would say nothing."""
    with executions(kept) as executed:
        read(kept, lambda c: c.exec_driver_sql("SELECT * FROM flags WHERE distance = 3").all())
    (found,) = whole_tables(kept, executed)
    assert found.startswith("SCAN flags")
