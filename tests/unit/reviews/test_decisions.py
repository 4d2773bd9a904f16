"""Decisions about flags: one for each, undone while that is possible, by the person whose it is."""

from typing import get_args

import pytest

from consumer.reviews.database import Database
from consumer.reviews.decisions import Decision, DecisionResult, decide, undo
from consumer.reviews.discussion import add_note, history
from consumer.reviews.sending import claim_due
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_missed,
    add_person,
    at_once,
    check_counts,
    flagged,
    near_miss,
    read,
    released,
    rows_of,
    write,
)

UNDO_MS = 10_000


class Desk:
    """Two people and a database with some flags."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.ann, self.bob = (add_person(database, name).person_id for name in ("Ann", "Bob"))
        self.flags = [flagged(name, "original") for name in "abc"]
        add(database, *self.flags)
        add_missed(database, near_miss("near", "original"))
        self.id_of = {name: row.flag_id for name, row in rows_of(database).items()}

    def decide(self, name: str, person: int, decision: Decision, at_ms: int = NOW_MS, note: str = "") -> DecisionResult:
        """Decide about one flag."""
        return write(self.database, decide, [self.id_of[name]], person, decision, note, at_ms, UNDO_MS)

    def undo(self, review_id: int, person: int, at_ms: int = NOW_MS) -> bool:
        """Take a decision back."""
        return write(self.database, undo, [review_id], person, at_ms) == [review_id]

    def state(self, name: str) -> str:
        """The state of a flag; everything that is counted is checked as well."""
        check_counts(self.database)
        return rows_of(self.database)[name].state


@pytest.fixture
def desk(database: Database) -> Desk:
    """Two people and some flags."""
    return Desk(database)


@pytest.mark.parametrize(
    ("decision", "state", "copies"), [("right", "right", 3), ("wrong", "wrong", 2), ("skip", "skipped", 3)]
)
def test_a_decision_changes_the_state_of_its_flag(desk: Desk, decision: Decision, state: str, copies: int) -> None:
    """A flag that is wrong is no copy any more."""
    decided = desk.decide("a", desk.ann, decision, note="why")
    assert (len(decided.review_ids), decided.refused) == (1, [])
    assert desk.state("a") == state
    assert rows_of(desk.database)["b"].copies == copies


def test_a_decision_about_a_near_miss_changes_no_story(desk: Desk) -> None:
    """It is no copy, before and after."""
    desk.decide("near", desk.ann, "wrong")
    assert desk.state("near") == "wrong"
    assert rows_of(desk.database)["b"].copies == 3


def test_many_flags_at_once(desk: Desk) -> None:
    """Those that cannot be decided about are named, with the reason; each is decided about once."""
    desk.decide("b", desk.bob, "right")
    add(desk.database, released(desk.flags[2]))
    wanted = [desk.id_of["a"], desk.id_of["b"], desk.id_of["c"], 999, desk.id_of["a"]]
    decided = write(desk.database, decide, wanted, desk.ann, "wrong", "", NOW_MS, UNDO_MS)
    assert len(decided.review_ids) == 1
    assert decided.refused == [(wanted[1], "decided"), (wanted[2], "released"), (999, "gone")]
    assert [desk.state(name) for name in "abc"] == ["wrong", "right", "released"]


def test_one_changes_ones_own_decision_while_it_can_be_undone(desk: Desk) -> None:
    """The former one counts as undone; later it is final."""
    first = desk.decide("a", desk.ann, "wrong").review_ids[0]
    assert desk.decide("a", desk.ann, "right", NOW_MS + UNDO_MS - 1).refused == []
    assert desk.state("a") == "right"
    assert [(said.decision, said.undone_ms) for said in read(desk.database, history, desk.id_of["a"])] == [
        ("wrong", NOW_MS + UNDO_MS - 1),
        ("right", None),
    ]
    assert not desk.undo(first, desk.ann)
    assert desk.decide("a", desk.ann, "wrong", NOW_MS + 3 * UNDO_MS).refused == [(desk.id_of["a"], "final")]


def test_what_somebody_skipped_is_for_everybody(desk: Desk) -> None:
    """Whoever comes next may decide, and the one who skipped it."""
    desk.decide("a", desk.ann, "skip")
    assert desk.decide("a", desk.bob, "right", NOW_MS + 1).refused == []
    assert desk.state("a") == "right"


@pytest.mark.parametrize("decision", get_args(Decision))
def test_undone_the_flag_is_open_again(desk: Desk, decision: Decision) -> None:
    """Once, and not twice."""
    (review_id,) = desk.decide("a", desk.ann, decision).review_ids
    assert desk.undo(review_id, desk.ann, NOW_MS + UNDO_MS - 1)
    assert desk.state("a") == "open"
    assert not desk.undo(review_id, desk.ann, NOW_MS + UNDO_MS - 1)


def test_what_cannot_be_undone(desk: Desk) -> None:
    """What is final, somebody else's, claimed by a sender whose clock is ahead, released meanwhile, or is not there."""
    (review_id,) = desk.decide("a", desk.ann, "wrong").review_ids
    assert not desk.undo(review_id, desk.ann, NOW_MS + UNDO_MS)
    assert not desk.undo(review_id, desk.bob)
    assert not desk.undo(999, desk.ann)
    write(desk.database, claim_due, "sender", NOW_MS + UNDO_MS, 1_000, 9)
    assert not desk.undo(review_id, desk.ann)
    assert desk.decide("a", desk.ann, "right").refused == [(desk.id_of["a"], "final")]
    (right,) = desk.decide("b", desk.ann, "right").review_ids
    add(desk.database, released(desk.flags[1]))
    assert not desk.undo(right, desk.ann)
    assert desk.state("a") == "wrong"
    assert desk.state("b") == "released"


def test_what_was_released_elsewhere_before_wrong_is_undone_stays_released(desk: Desk) -> None:
    """It is not open, since there is no flag any more."""
    (review_id,) = desk.decide("a", desk.ann, "wrong").review_ids
    add(desk.database, released(desk.flags[0]))
    assert desk.state("a") == "wrong"
    assert desk.undo(review_id, desk.ann)
    assert desk.state("a") == "released"


def test_of_two_people_one_decides(desk: Desk, second: Database) -> None:
    """At the same time, in two processes, about many flags; nobody gets an error, and nothing is counted twice."""
    events = [flagged(f"many-{n}", f"original-{n % 3}") for n in range(40)]
    add(desk.database, *events)
    wanted = [row.flag_id for name, row in rows_of(desk.database).items() if name.startswith("many")]

    def all_of_it(database: Database, person: int, decision: Decision, step: int) -> list[int]:
        made = []
        for start in range(0, len(wanted), 4):
            chosen = wanted[::step][start : start + 4]
            made += write(database, decide, chosen, person, decision, "", NOW_MS, UNDO_MS).review_ids
        return made

    anns, bobs = at_once(
        [lambda: all_of_it(desk.database, desk.ann, "right", 1), lambda: all_of_it(second, desk.bob, "wrong", -1)]
    )
    assert len(anns) + len(bobs) == len(wanted)
    check_counts(desk.database)
    states = [row.state for name, row in rows_of(desk.database).items() if name.startswith("many")]
    assert (states.count("right"), states.count("wrong")) == (len(anns), len(bobs))


def test_decisions_and_intake_at_once(desk: Desk, second: Database) -> None:
    """Stories merge while their flags are decided about: counts hold."""
    copies = [flagged(f"copy-{n}", "late") for n in range(60)]
    add(desk.database, *copies)
    wanted = [row.flag_id for name, row in rows_of(desk.database).items() if name.startswith("copy")]

    def deciding() -> int:
        for flag_id in wanted:
            decided = write(desk.database, decide, [flag_id], desk.ann, "wrong", "", NOW_MS, UNDO_MS)
            # None where its release came first.
            for review_id in decided.review_ids[: flag_id % 2]:
                desk.undo(review_id, desk.ann)
        return 0

    def intake() -> int:
        add(second, flagged("late", "root"))
        for copy in copies[:30]:
            add(second, released(copy), flagged(f"{copy.id}-more", copy.id))
        return 0

    at_once([deciding, intake])
    check_counts(desk.database)


def test_history_has_decisions_and_notes_in_order(desk: Desk) -> None:
    """With the names of people, and with what was undone."""
    flag_id = desk.id_of["a"]
    (review_id,) = desk.decide("a", desk.ann, "wrong", note="both from the wire").review_ids
    note_id = write(desk.database, add_note, flag_id, desk.bob, "no, look again\0", NOW_MS + 1)
    desk.undo(review_id, desk.ann, NOW_MS + 2)
    first, note = read(desk.database, history, flag_id)
    assert (first.kind, first.entry_id, first.person, first.text) == ("review", review_id, "Ann", "both from the wire")
    assert (first.decision, first.final_ms, first.undone_ms) == ("wrong", NOW_MS + UNDO_MS, NOW_MS + 2)
    assert (note.kind, note.entry_id, note.person, note.text) == ("note", note_id, "Bob", "no, look again\ufffd")
    assert note.decision is None
