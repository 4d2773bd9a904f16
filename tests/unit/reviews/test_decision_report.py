"""The report of decisions: what was flagged and decided on which day, and what became of it."""

from typing import Any, Final

import pytest
from sqlalchemy import insert, update

from consumer.reviews import sending
from consumer.reviews.database import Database
from consumer.reviews.decisions import decide, undo
from consumer.reviews.flag_row import tally
from consumer.reviews.moderation.decision_report import DaySpan, DecisionTally, ReportLine, lines_of_day, report
from consumer.reviews.moderation.reasons import add_reason
from consumer.reviews.tables import REVIEWS, STANDING_DECISIONS
from storage.clock import MS_PER_DAY
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_matches,
    add_missed,
    add_person,
    bank_match,
    database_in,
    denied,
    executions,
    flagged,
    near_miss,
    read,
    released,
    write,
)

MONDAY: Final = NOW_MS // MS_PER_DAY * MS_PER_DAY
TUESDAY: Final = MONDAY + MS_PER_DAY
WEEK: Final = DaySpan(MONDAY, MONDAY + 7 * MS_PER_DAY)


@pytest.fixture
def ann(database: Database) -> int:
    """The number of somebody who decides."""
    return add_person(database, "Ann").person_id


def decided(database: Database, flag_id: int, person_id: int, decision: Any, at_ms: int = MONDAY, **more: Any) -> int:  # noqa: ANN401  # as decide has them
    """Decide about a flag; the number of the review."""
    return write(database, decide, [flag_id], person_id, decision, "", at_ms, 9, **more).review_ids[0]


def standing(database: Database, review_id: int, person_id: int) -> None:
    """Let a standing decision have made a review."""
    with database.write_transaction() as connection:
        made = insert(STANDING_DECISIONS).values(
            decision="right", story_id=1, person_id=person_id, note="", at_ms=MONDAY, ends_ms=TUESDAY
        )
        number = connection.execute(made.returning(STANDING_DECISIONS.c.standing_id)).scalar_one()
        connection.execute(update(REVIEWS).where(REVIEWS.c.review_id == review_id).values(standing_id=number))


def refuse(database: Database, review_id: int, why: str) -> None:
    """Let the release of a review be refused."""
    write(database, sending.mark_refused, review_id, why, MONDAY)


def fill(database: Database, ann: int) -> None:
    """Decide about seven flags of three sources on two days, in every way."""
    xinhua, blog = ("xinhua", "wire"), ("blog", "wire")
    elsewhere = flagged("f", "a", sources=blog, at_ms=TUESDAY)
    add(
        database,
        *(flagged(name, "a", sources=xinhua, at_ms=MONDAY) for name in "bc"),
        *(flagged(name, "a", sources=blog, at_ms=MONDAY + MS_PER_DAY - 1) for name in "de"),
        elsewhere,
        flagged("g", "a", sources=(None, None), at_ms=TUESDAY),
        flagged("h", "a", sources=blog, at_ms=TUESDAY),
        flagged("old", "a", sources=blog, at_ms=MONDAY - 1),
    )
    timetable = write(database, add_reason, "Timetable").reason_id
    standing(database, decided(database, 1, ann, "right"), ann)
    write(database, sending.mark_sent, decided(database, 2, ann, "wrong", reason_id=timetable), TUESDAY)
    refuse(database, decided(database, 3, ann, "wrong", TUESDAY, reason_id=timetable), "'d' is not in the store: …")
    refuse(database, decided(database, 4, ann, "wrong", TUESDAY), "'e' is unique: only a flag can be undone")
    decided(database, 5, ann, "wrong", TUESDAY)
    add(database, released(elsewhere))
    decided(database, 6, ann, "wrong", TUESDAY)
    write(database, undo, [decided(database, 7, ann, "wrong", TUESDAY)], ann, TUESDAY)
    decided(database, 7, ann, "skip", TUESDAY)
    decided(database, 8, ann, "right", MONDAY - 1)


def test_days_sources_and_reasons(database: Database, ann: int) -> None:
    """Each decision counts once; one that was undone is nothing else, and wrong is also what became of it."""
    fill(database, ann)
    monday = DecisionTally(flagged=4, right=1, wrong=1, by_standing=1, sent=1)
    tuesday = DecisionTally(flagged=3, wrong=4, skip=1, undone=1, refused=2, elsewhere=1, waiting=1)
    total = DecisionTally(
        flagged=7, right=1, wrong=5, skip=1, undone=1, by_standing=1, sent=1, elsewhere=1, refused=2, waiting=1
    )
    by_day = read(database, report, WEEK, "day")
    assert by_day.groups == {MONDAY: monday, TUESDAY: tuesday}
    assert (by_day.total, by_day.refusals) == (total, {"left_store": 1, "no_flag": 1})
    by_source = read(database, report, WEEK, "source")
    assert by_source.groups == {
        "xinhua": DecisionTally(flagged=2, right=1, wrong=1, by_standing=1, sent=1),
        "blog": DecisionTally(flagged=4, wrong=3, skip=1, undone=1, refused=2, elsewhere=1),
        None: DecisionTally(flagged=1, wrong=1, waiting=1),
    }
    assert by_source.total == total
    by_reason = read(database, report, WEEK, "reason")
    assert by_reason.groups == {
        "Timetable": DecisionTally(wrong=2, sent=1, refused=1),
        None: DecisionTally(right=1, wrong=3, skip=1, undone=1, by_standing=1, elsewhere=1, refused=1, waiting=1),
    }


def test_lines_add_up_to_the_same(database: Database, ann: int) -> None:
    """In an order of their own, and without the day before and after."""
    fill(database, ann)
    assert read(database, lines_of_day, MONDAY) == [
        ReportLine("flagged", "blog", None, None, None, None, 2),
        ReportLine("flagged", "xinhua", None, None, None, None, 2),
        ReportLine("right", "xinhua", "standing", None, None, None, 1),
        ReportLine("wrong", "xinhua", "person", "Timetable", "sent", None, 1),
    ]
    assert read(database, lines_of_day, TUESDAY) == [
        ReportLine("flagged", None, None, None, None, None, 1),
        ReportLine("flagged", "blog", None, None, None, None, 2),
        ReportLine("wrong", None, "person", None, "waiting", None, 1),
        ReportLine("skip", "blog", "person", None, None, None, 1),
        ReportLine("wrong", "blog", "person", None, "elsewhere", None, 1),
        ReportLine("wrong", "blog", "person", None, "refused", "no_flag", 1),
        ReportLine("wrong", "blog", "person", None, "undone", None, 1),
        ReportLine("wrong", "blog", "person", "Timetable", "refused", "left_store", 1),
    ]
    assert read(database, lines_of_day, MONDAY + 3 * MS_PER_DAY) == []


def test_other_entries_do_not_count(database: Database, ann: int) -> None:
    """Nobody's article is kept back because of them."""
    add_missed(database, near_miss("n", "a"))
    add_matches(database, bank_match("m", denied("offer")))
    for number in (1, 2):
        decided(database, number, ann, "wrong")
    assert read(database, report, WEEK, "day").groups == {}
    assert read(database, report, WEEK, "source").groups == {}
    assert read(database, lines_of_day, MONDAY) == []
    assert read(database, tally)["near_miss", "wrong"] == 1


def test_flags_are_counted_by_an_index(tmp_path: Any) -> None:  # noqa: ANN401  # a folder
    """Of a million of them no row is read, and none is sorted; reviews are found by their time."""
    database = database_in(tmp_path)
    with executions(database) as executed:
        for grouping in ("day", "source", "reason"):
            read(database, report, WEEK, grouping)
    plans = []
    for sql, parameters in executed:
        if not sql.startswith(("SELECT", "WITH")):
            continue
        with database.read_connection() as connection:
            said = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", parameters).all()
        plans.append([row[-1] for row in said])
    of_flags = [step for plan in plans for step in plan if step.split()[1:2] == ["flags"]]
    of_reviews = [step for plan in plans for step in plan if step.split()[1:2] == ["reviews"]]
    assert any("COVERING INDEX ix_flags_queue_arrived_ms" in step for step in of_flags), plans
    assert any("COVERING INDEX ix_flags_source_arrived_ms" in step for step in of_flags), plans
    assert all("COVERING INDEX" in step or "PRIMARY KEY" in step for step in of_flags), of_flags
    assert of_reviews
    assert all("ix_reviews_at_ms" in step for step in of_reviews), of_reviews
    database.close()
