"""Reasons to choose from: their order, their limits, and what decisions keep of them."""

from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from consumer.reviews.database import Database
from consumer.reviews.decisions import decide
from consumer.reviews.discussion import history
from consumer.reviews.moderation import reasons
from consumer.reviews.moderation.reasons import (
    REASONS_MAX,
    ReasonError,
    ReasonMissing,
    ReasonsFull,
    ReasonTaken,
    add_reason,
    choices,
    move_reason,
    rename_reason,
    restore_reason,
    retire_reason,
    with_note,
)
from consumer.reviews.pairs.reviewed_pairs import pairs
from consumer.reviews.sending import claim_due
from tests.unit.reviews.made import NOW_MS, add, add_person, flagged, read, rows_of, write


def names(database: Database) -> list[str]:
    """The reasons that can be chosen, in order."""
    return [reason.name for reason in read(database, choices)]


def filled(database: Database, *wanted: str) -> dict[str, int]:
    """Add reasons; their numbers by name."""
    return {name: write(database, add_reason, name).reason_id for name in wanted}


def test_reasons_have_an_order(database: Database) -> None:
    """A new one is the last, as is one that is restored; at the ends of the list none moves further."""
    number = filled(database, "same agency", "timetable", "obituary")
    for name, step in (("obituary", -1), ("obituary", -1), ("obituary", -1), ("timetable", 1)):
        write(database, move_reason, number[name], step)
    assert names(database) == ["obituary", "same agency", "timetable"]
    write(database, retire_reason, number["obituary"], NOW_MS)
    write(database, move_reason, number["obituary"], 1)
    write(database, move_reason, number["timetable"], -1)
    assert names(database) == ["timetable", "same agency"]
    write(database, restore_reason, number["obituary"])
    assert names(database) == ["timetable", "same agency", "obituary"]


def test_a_name_is_there_once(database: Database) -> None:
    """Also that of a retired reason; a name has some characters, and not many."""
    number = filled(database, "timetable", "obituary")
    write(database, retire_reason, number["obituary"], NOW_MS)
    with pytest.raises(ReasonTaken):
        write(database, add_reason, "obituary")
    with pytest.raises(ReasonTaken):
        write(database, rename_reason, number["timetable"], "obituary")
    for wrong in ("", "x" * 81, "\0"):
        with pytest.raises(ReasonError):
            write(database, add_reason, wrong)
    with pytest.raises(ReasonMissing):
        write(database, rename_reason, 4711, "weather")
    assert names(database) == ["timetable"]


def test_a_list_is_short(database: Database, second: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two admins who add the last one at the same moment, one is refused; nor can too many be retired."""
    number = filled(database, *(f"reason {n}" for n in range(REASONS_MAX - 1)))

    def added(at: Database, name: str) -> bool:
        try:
            return bool(write(at, add_reason, name))
        except ReasonsFull:
            return False

    with ThreadPoolExecutor(1) as other:
        with database.write_transaction() as connection:
            add_reason(connection, "mine")
            yours = other.submit(added, second, "yours")
            # By then it waits for this one.
            wait([yours], 0.3)
        assert not yours.result(60)
    assert len(names(database)) == REASONS_MAX
    monkeypatch.setattr(reasons, "RETIRED_MAX", 1)
    write(database, retire_reason, number["reason 0"], NOW_MS)
    write(database, retire_reason, number["reason 0"], NOW_MS)
    with pytest.raises(ReasonsFull):
        write(database, retire_reason, number["reason 1"], NOW_MS)
    assert added(database, "one more")
    with pytest.raises(ReasonsFull):
        write(database, restore_reason, number["reason 0"])


def test_a_decision_keeps_its_reason(database: Database) -> None:
    """Under its new name, and although it is retired: in the history, in the export and in the release."""
    add(database, flagged("a", "o"), flagged("b", "o"), flagged("c", "o"))
    ann, number = add_person(database, "Ann").person_id, filled(database, "time table")["time table"]
    flag_ids = {name: row.flag_id for name, row in rows_of(database).items()}
    for name, note, reason in (("a", "", number), ("b", "Page 3.", number), ("c", "", None)):
        write(database, decide, [flag_ids[name]], ann, "wrong", note, NOW_MS, 0, reason)
    write(database, rename_reason, number, "timetable")
    write(database, retire_reason, number, NOW_MS)
    said = [read(database, history, flag_ids[name])[0] for name in "abc"]
    assert [(each.reason, each.text) for each in said] == [("timetable", ""), ("timetable", "Page 3."), (None, "")]
    assert [pair.reason for pair in read(database, lambda c: list(pairs(c)))] == ["timetable", "timetable", None]
    dues = write(database, claim_due, "sender", NOW_MS, 9, 9)
    assert [each.reason for each in dues] == ["timetable", "Page 3.", ""]


def test_a_reason_and_a_note_are_one_text() -> None:
    """Where either is missing, nothing stands between them."""
    assert with_note("timetable", "Page 3.") == "timetable: Page 3."
    assert with_note(None, "Page 3.") == "Page 3."
    assert with_note("timetable", "") == "timetable"
    assert not with_note(None, "")
