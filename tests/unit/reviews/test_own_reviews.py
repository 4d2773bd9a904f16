"""What somebody has just decided, and which version a story goes back to."""

from consumer.reviews import decisions
from consumer.reviews.database import Database
from consumer.reviews.decisions import own_review, own_reviews_at
from consumer.reviews.stories import root_versions
from tests.unit.reviews.made import NOW_MS, add, add_person, flagged, read, rows_of


def test_a_review_is_told_to_whoever_made_it(database: Database) -> None:
    """With what became of it, and to nobody else."""
    add(database, flagged("a", "o"))
    ann, bob = add_person(database, "Ann"), add_person(database, "Bob")
    flag = rows_of(database)["a"]
    decided = database.write(lambda c: decisions.decide(c, [flag.flag_id], ann.person_id, "wrong", "", NOW_MS, 10_000))
    (number,) = decided.review_ids
    found = read(database, lambda c: own_review(c, ann.person_id, number))
    assert found is not None
    assert (found.flag_id, found.article_id, found.decision, found.final_ms) == (
        flag.flag_id,
        "a",
        "wrong",
        NOW_MS + 10_000,
    )
    assert not found.is_sent
    assert found.undone_ms is None
    assert read(database, lambda c: own_review(c, bob.person_id, number)) is None
    assert read(database, lambda c: own_review(c, ann.person_id, number + 1)) is None
    database.write(lambda c: decisions.undo(c, [number], ann.person_id, NOW_MS + 5))
    undone = read(database, lambda c: own_review(c, ann.person_id, number))
    assert undone is not None
    assert undone.undone_ms == NOW_MS + 5


def test_reviews_of_one_moment_are_found_by_story(database: Database) -> None:
    """Not those of another story, of another person, or of another moment."""
    add(database, flagged("a", "o"), flagged("b", "o"), flagged("x", "y"))
    ann, bob = add_person(database, "Ann"), add_person(database, "Bob")
    rows = rows_of(database)

    def decide(name: str, person_id: int, at_ms: int) -> int:
        ids = [rows[name].flag_id]
        return database.write(lambda c: decisions.decide(c, ids, person_id, "right", "", at_ms, 1)).review_ids[0]

    first, later = decide("a", ann.person_id, NOW_MS), decide("b", ann.person_id, NOW_MS + 1)
    decide("x", ann.person_id, NOW_MS)
    story = rows["a"].story_id

    def found(person_id: int, at_ms: int) -> list[int]:
        return [each.review_id for each in read(database, lambda c: own_reviews_at(c, person_id, story, at_ms))]

    assert found(ann.person_id, NOW_MS) == [first]
    assert found(ann.person_id, NOW_MS + 1) == [later]
    assert found(bob.person_id, NOW_MS) == []


def test_a_version_of_each_original_is_known(database: Database) -> None:
    """One that flags name; none of an original that no flag names."""
    add(database, flagged("a", "o", original_version="bb"), flagged("b", "o", original_version="cc"), flagged("x", "y"))
    assert read(database, lambda c: root_versions(c, ["o", "y", "nobody"])) == {"o": "cc", "y": "aa"}
