"""Reported copies in the database: each pair once, undone by its reporter, exported, and kept over an upgrade."""

from dataclasses import replace
from functools import partial

import pytest

from consumer.evaluation.labelled_pairs import PairsLine
from consumer.evaluation.reviewed_pairs import SCHEMA, reviewed_pairs
from consumer.reviews.database import Database
from consumer.reviews.flag_events import add_events
from consumer.reviews.pairs import reports
from consumer.reviews.pairs.reports import MissedPair
from consumer.reviews.pairs.reviewed_pairs import pair_counts, pairs
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_missed,
    add_person,
    at_once,
    flagged,
    near_miss,
    read,
    rows_of,
    write,
)

PAIR = MissedPair(
    article_id="b",
    version="aa",
    original_id="a",
    original_version="aa",
    source="post",
    original_source="",
    similarity=0.7,
    distance=9,
    arrived_ms=NOW_MS,
)
UNDO_MS = 10_000


def add_report(database: Database, pair: MissedPair, person_id: int, note: str = "") -> int | None:
    """Report a pair now."""
    return write(database, reports.add, pair, person_id, note, NOW_MS, UNDO_MS)


def test_a_report_has_all_that_was_said(database: Database) -> None:
    """And the names of the sources."""
    ann = add_person(database, "Ann").person_id
    number = add_report(database, PAIR, ann, "a note\0 " + "x" * 3_000)
    assert number is not None
    found = read(database, reports.report, number)
    assert found is not None
    assert (found.person, found.source, found.original_source, found.similarity) == ("Ann", "post", "", 0.7)
    assert found.note.startswith("a note\ufffd x")
    assert len(found.note) == reports.NOTE_CHARS_MAX
    assert read(database, reports.report_of, PAIR) == found
    assert read(database, reports.report, number + 1) is None


def test_a_pair_is_reported_once_until_it_is_undone(database: Database, second: Database) -> None:
    """Also by many at the same moment; only whoever reported it undoes it, and only in time."""
    ann, bob = (add_person(database, name).person_id for name in ("Ann", "Bob"))
    numbers = at_once([partial(add_report, where, PAIR, ann) for where in (database, second) * 4])
    (number,) = [number for number in numbers if number is not None]
    assert add_report(database, replace(PAIR, version="ab"), ann) is not None
    assert add_report(database, replace(PAIR, article_id=""), ann) is not None
    assert not write(database, reports.undo, number, bob, NOW_MS)
    assert not write(database, reports.undo, number, ann, NOW_MS + UNDO_MS)
    assert write(database, reports.undo, number, ann, NOW_MS + UNDO_MS - 1)
    assert not write(database, reports.undo, number, ann, NOW_MS + UNDO_MS - 1)
    assert read(database, reports.report_of, PAIR) is None
    assert len(read(database, reports.latest_reports, 10)) == 2
    again = add_report(database, PAIR, bob)
    assert again is not None
    assert [each.report_id for each in read(database, reports.latest_reports, 1)] == [again]
    undone = read(database, reports.report, number)
    assert undone is not None
    assert undone.undone_ms == NOW_MS + UNDO_MS - 1


def test_reports_are_exported_and_estimated_from_never(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """After all pairs, as right ones of a kind of their own; no count that thresholds are judged by has them."""
    monkeypatch.setattr(reports, "_PORTION", 2)
    ann = add_person(database, "Ann").person_id
    add(database, flagged("f", "o"))
    before = read(database, pair_counts)
    numbers = [add_report(database, replace(PAIR, article_id=name), ann) for name in "bcde"]
    add_report(database, replace(PAIR, article_id="none", similarity=None), ann)
    write(database, reports.undo, numbers[1] or 0, ann, NOW_MS)
    with database.read_connection() as connection:
        found = list(pairs(connection))
    assert [(pair.kind, pair.decision, pair.similarity) for pair in found] == [
        ("flag", None, 0.9),
        *[("report", "right", 0.7)] * 3,
        ("report", "right", None),
    ]
    assert (found[1].person, found[1].source, found[1].sampled_in, found[1].at_ms) == ("Ann", "post", 1.0, NOW_MS)
    assert read(database, pair_counts) == before
    assert read(database, reports.similarities) == [0.7, 0.7, 0.7, None]


def test_a_pair_that_was_flagged_is_found(database: Database) -> None:
    """In either order, near misses too; other versions are other pairs."""
    add(database, flagged("b", "a"))
    add_missed(database, near_miss("c", "a"))
    rows = rows_of(database)
    turned = replace(PAIR, article_id="a", original_id="b")
    for pair, article in ((PAIR, "b"), (turned, "b"), (replace(PAIR, article_id="c"), "c")):
        found = read(database, reports.flag_of_pair, pair)
        assert found is not None
        assert found.flag_id == rows[article].flag_id
    assert read(database, reports.flag_of_pair, replace(PAIR, version="ab")) is None
    add(database, flagged("b", "x", version="ab"))
    of_b = read(database, reports.flags_of_article, "b", 10)
    assert [(flag.original_id, flag.version) for flag in of_b] == [("x", "ab"), ("a", "aa")]
    assert len(read(database, reports.flags_of_article, "b", 1)) == 1


def test_reports_outlast_a_rebuild(database: Database) -> None:
    """Whose events are those that are known already."""
    ann = add_person(database, "Ann").person_id
    add(database, flagged("b", "a"))
    number = add_report(database, replace(PAIR, article_id="z"), ann)
    write(database, add_events, [flagged("b", "a"), flagged("c", "a")])
    assert [each.report_id for each in read(database, reports.latest_reports, 10)] == [number]


def test_lines_of_reports_are_counted_apart() -> None:
    """A file of reviews has them, and nothing is estimated from them; one that nobody calls right does not count."""

    def line(kind: str, similarity: str, decision: str = '"right"') -> bytes:
        values = f'"kind":"{kind}","similarity":{similarity},"decision":{decision}'
        return f'{{"schema":"{SCHEMA}",{values}}}'.encode()

    lines = [line("flag", "0.8"), line("report", "0.7"), line("report", "null"), line("report", "0.75", "null")]
    found = reviewed_pairs(PairsLine(number, data) for number, data in enumerate(lines, 1))
    assert [pair.kind for pair in found.pairs] == ["flag"]
    assert found.without_similarity == 0
    assert found.reported.similarities == (0.7, None)
    assert (found.reported.measured, found.reported.reached(0.7), found.reported.reached(0.71)) == (1, 1, 0)
