"""Entries of the queue that are no flags: what they are, what they count for, and what a decision about them means."""

from typing import get_args

import pytest

from consumer.model.verdict import BankMention
from consumer.reviews.database import Database
from consumer.reviews.decisions import Decision, decide, undo
from consumer.reviews.flag_row import FlagRow, tally
from consumer.reviews.floods import note_floods
from consumer.reviews.kinds.bank_mentions import Mention, mentions_of
from consumer.reviews.kinds.rules import COPY_KINDS, KINDS, MEASURED_KINDS, RELEASABLE_KINDS, Kind, MeasuredKind
from consumer.reviews.pairs.reports import flags_of_article
from consumer.reviews.pairs.reviewed_pairs import count_unverified, pair_counts, pairs, reviews_by_source
from consumer.reviews.queue import Filters, state_counts
from consumer.reviews.sending import ReleaseBacklog, backlog, claim_due
from consumer.reviews.stories import story
from consumer.telemetry.metrics.console import EntryKind
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_matches,
    add_missed,
    add_person,
    add_repeats,
    bank_match,
    check_counts,
    denied,
    flagged,
    near_miss,
    read,
    released,
    repeat_of_ended,
    rows_of,
    write,
)


def test_every_kind_has_its_rule() -> None:
    """Types, metrics and rules name the same kinds, in one order; only flags are copies, and released."""
    assert get_args(Kind) == get_args(EntryKind) == KINDS
    assert get_args(MeasuredKind) == MEASURED_KINDS
    assert COPY_KINDS == RELEASABLE_KINDS == ("flag",)


@pytest.fixture
def filled(database: Database) -> dict[str, FlagRow]:
    """One entry of each kind, by article, in one story where that is possible."""
    add(database, flagged("copy", "root"))
    add_missed(database, near_miss("near", "root"))
    add_repeats(database, repeat_of_ended("again", "root"))
    add_matches(database, bank_match("known", denied("offer", 0.8), denied("prize", 0.95)))
    check_counts(database)
    return rows_of(database)


def test_each_is_in_its_story_which_counts_flags_alone(database: Database, filled: dict[str, FlagRow]) -> None:
    """A bank match is in that of its article; nothing but flags is in floods."""
    assert {name: (row.kind, row.root_id, row.copies) for name, row in filled.items()} == {
        "copy": ("flag", "root", 1),
        "near": ("near_miss", "root", 1),
        "again": ("ended_before", "root", 1),
        "known": ("bank_match", "known", 0),
    }
    assert filled["known"].original_id == "known"
    assert (filled["again"].similarity, filled["again"].distance, filled["again"].source) == (0.9, None, None)
    assert write(database, note_floods, {filled["copy"].story_id}, NOW_MS, 60.0, 2) == []


@pytest.mark.parametrize("decision", get_args(Decision))
def test_only_flags_are_released_and_only_pairs_of_a_threshold_are_measured(
    database: Database, filled: dict[str, FlagRow], decision: Decision
) -> None:
    """Whatever is decided about the others: nothing is due, no count of a story changes, nothing is exported."""
    others = [row.flag_id for row in filled.values() if row.kind not in MEASURED_KINDS]
    ann = add_person(database, "Ann").person_id
    reviews = write(database, decide, others, ann, decision, "", NOW_MS, 0).review_ids
    assert len(reviews) == len(others) == 2
    check_counts(database)
    assert write(database, claim_due, "w", NOW_MS + 1, 5_000, 100) == []
    assert read(database, backlog, NOW_MS + 1) == ReleaseBacklog(0, None)
    found = read(database, story, filled["copy"].story_id)
    assert found is not None
    assert (found.copies, found.open_copies) == (1, 1)
    with database.read_connection() as connection:
        assert [pair.kind for pair in pairs(connection)] == ["flag", "near_miss"]
        assert {count.kind for count in pair_counts(connection)} == {"flag", "near_miss"}
        assert reviews_by_source(connection) == []
        assert count_unverified(connection) == 0


def test_what_was_not_verified_is_not_counted_for_thresholds_either(database: Database) -> None:
    """With plain SimHash a repeat of an ended article has no similarity; it comes first in the queue."""
    add_repeats(database, repeat_of_ended("again", "root", similarity=None))
    (row,) = rows_of(database).values()
    assert (row.similarity, row.certainty) == (None, -1.0)
    ann = add_person(database, "Ann").person_id
    write(database, decide, [row.flag_id], ann, "right", "", NOW_MS, 0)
    assert read(database, count_unverified) == 0


def test_a_decision_about_each_can_be_undone(database: Database, filled: dict[str, FlagRow]) -> None:
    """They are open again, and every count is as before."""
    before, ann = read(database, tally), add_person(database, "Ann").person_id
    ids = [row.flag_id for row in filled.values()]
    reviews = write(database, decide, ids, ann, "wrong", "", NOW_MS, 1_000).review_ids
    assert write(database, undo, reviews, ann, NOW_MS + 1) == reviews
    assert read(database, tally) == before
    check_counts(database)


def test_a_version_has_an_entry_of_each_kind(database: Database) -> None:
    """What comes again changes nothing."""
    for new in (1, 0):
        assert add(database, flagged("a", "root")).flags == new
        assert add_missed(database, near_miss("a", "root")) == new
        assert add_repeats(database, repeat_of_ended("a", "gone"), repeat_of_ended("a", "gone")) == new
        assert add_matches(database, bank_match("a", denied("offer")), bank_match("a", denied("offer"))) == new
    assert {state: count.rows for state, count in read(database, state_counts, Filters()).items() if count.rows} == {
        "open": len(KINDS)
    }


def test_what_no_store_holds_makes_no_entry(database: Database) -> None:
    """Nor does a verdict that names itself, or a match of no item that denies."""
    allows = BankMention(bank="press", item="notice", action="allow", form="equal", similarity=1.0)
    assert add_repeats(database, repeat_of_ended("a\0", "gone"), repeat_of_ended("a", "a"), flagged("b", "a")) == 0
    odd = (denied("\0"), denied("x" * 65), denied(""), denied("y", bank="\ud800"))
    assert add_matches(database, bank_match("a", allows), bank_match("b", *odd), bank_match("", denied("offer"))) == 0
    assert rows_of(database) == {}


def items(database: Database, flag_id: int) -> list[tuple[str, float]]:
    """The items that an entry names, in order."""
    found: dict[int, list[Mention]] = read(database, mentions_of, [flag_id])
    return [(mention.item, mention.similarity) for mention in found[flag_id]]


def test_a_match_found_later_is_added_to_the_entry_and_opens_it_again(database: Database) -> None:
    """It has all items, and is as similar as the most similar one; nobody has looked at the new one yet."""
    add_matches(database, bank_match("a", denied("offer", 0.8), denied("prize", 0.75)))
    (row,) = rows_of(database).values()
    assert row.similarity == row.certainty == 0.8
    ann, bob = (add_person(database, name).person_id for name in ("Ann", "Bob"))
    write(database, decide, [row.flag_id], ann, "wrong", "", NOW_MS, 0)
    # What is known opens nothing.
    assert add_matches(database, bank_match("a", denied("offer", 0.8))) == 0
    assert rows_of(database)["a"].state == "wrong"
    assert add_matches(database, bank_match("a", denied("late", 0.9))) == 0
    (row,) = rows_of(database).values()
    assert (row.state, row.similarity, row.certainty) == ("open", 0.9, 0.9)
    assert items(database, row.flag_id) == [("late", 0.9), ("offer", 0.8), ("prize", 0.75)]
    check_counts(database)
    assert write(database, decide, [row.flag_id], bob, "right", "", NOW_MS, 0).refused == []
    assert rows_of(database)["a"].state == "right"


def test_a_bank_match_goes_with_the_story_of_its_article(database: Database) -> None:
    """Into that of its flag, whichever came first, and out of it when the flag is released."""
    add_matches(database, bank_match("copy", denied("offer")))
    flag = flagged("copy", "root")
    add(database, flag)

    def roots() -> dict[Kind, str]:
        with database.read_connection() as connection:
            return {row.kind: row.root_id for row in flags_of_article(connection, "copy", 9)}

    assert roots() == {"flag": "root", "bank_match": "root"}
    add(database, released(flag))
    assert roots() == {"flag": "root", "bank_match": "copy"}
    check_counts(database)
