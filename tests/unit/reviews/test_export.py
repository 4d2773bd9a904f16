"""What evaluation reads: each pair with the decision that is in force."""

import pytest

from consumer.reviews.database import Database
from consumer.reviews.decisions import decide, undo
from consumer.reviews.pairs import reviewed_pairs
from consumer.reviews.pairs.reviewed_pairs import PairReview
from tests.unit.reviews.made import NOW_MS, add, add_missed, add_person, flagged, near_miss, released, rows_of, write


def pairs(database: Database) -> list[PairReview]:
    """All pairs."""
    with database.read_connection() as connection:
        return list(reviewed_pairs.pairs(connection))


def test_each_pair_has_the_decision_in_force(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one that was undone or changed; skipped and open flags have none; releases elsewhere are decisions, too."""
    monkeypatch.setattr(reviewed_pairs, "_PORTION", 2)
    flags = [flagged(name, "o", similarity=round(0.8 + n / 100, 4)) for n, name in enumerate("abcdefg")]
    add(database, *flags)
    add_missed(database, near_miss("n", "o", sampled_in=50.0))
    ids = {name: row.flag_id for name, row in rows_of(database).items()}
    ann, bob = (add_person(database, name).person_id for name in ("Ann", "Bob"))

    def decided(name: str, decision: str, person: int, at_ms: int = NOW_MS) -> int:
        return write(database, decide, [ids[name]], person, decision, "", at_ms, 99).review_ids[0]  # type: ignore[arg-type]

    decided("a", "right", ann)
    decided("b", "wrong", bob)
    decided("c", "wrong", ann)
    decided("c", "right", ann, NOW_MS + 5)
    write(database, undo, [decided("d", "wrong", ann)], ann, NOW_MS)
    decided("e", "skip", ann)
    decided("f", "right", ann)
    decided("n", "wrong", bob)
    add(database, released(flags[5], at_ms=NOW_MS + 70), released(flags[6], at_ms=NOW_MS + 71))
    found = [(pair.similarity, pair.kind, pair.decision, pair.at_ms, pair.person) for pair in pairs(database)]
    assert found == [
        (0.8, "flag", "right", NOW_MS, "Ann"),
        (0.81, "flag", "wrong", NOW_MS, "Bob"),
        (0.82, "flag", "right", NOW_MS + 5, "Ann"),
        (0.83, "flag", None, None, None),
        (0.84, "flag", None, None, None),
        (0.85, "flag", "wrong", NOW_MS + 70, None),
        (0.86, "flag", "wrong", NOW_MS + 71, None),
        (0.78, "near_miss", "wrong", NOW_MS, "Bob"),
    ]
    last = pairs(database)[-1]
    assert (last.source, last.original_source, last.sampled_in, last.distance) == ("a", "b", 50.0, 9)


def test_nothing_reviewed(database: Database) -> None:
    """Each pair is there, without a decision; without pairs there is nothing to read."""
    assert pairs(database) == []
    add(database, flagged("a", "o"))
    assert [(pair.decision, pair.at_ms, pair.person) for pair in pairs(database)] == [(None, None, None)]
