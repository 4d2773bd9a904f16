"""Repairs of stories: a version is split off, stories are merged, and either is undone."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

from consumer.cli.people.reviews import _line
from consumer.reviews import stories
from consumer.reviews.database import Database
from consumer.reviews.decisions import decide
from consumer.reviews.flag_events import FlagSources, set_sources
from consumer.reviews.floods import floods, note_floods
from consumer.reviews.outbox.story_events import StoryChange
from consumer.reviews.pairs.reviewed_pairs import pairs
from consumer.reviews.people import Person
from consumer.reviews.queue import Filters, page
from consumer.reviews.repairs import merge, outcome, split
from consumer.reviews.repairs.outcome import RepairRefused
from consumer.reviews.repairs.repair_list import merges_into, splits_of
from consumer.reviews.tables import FLAGS, STORIES, STORY_MERGES, STORY_SPLITS
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_missed,
    add_person,
    at_once,
    check_counts,
    flagged,
    near_miss,
    number_of,
    read,
    released,
    rows_of,
    write,
)
from tests.unit.reviews.outbox_made import arrived, events_of

CHAIN = (flagged("b", "a"), flagged("c", "b"), flagged("d", "c"), flagged("e", "b"), flagged("f", "a"))
"""Copies of a: b with c, of which d is a copy, and e; and f."""


@pytest.fixture
def ann(database: Database) -> Person:
    """Somebody who reviews."""
    return add_person(database, "Ann")


def roots(database: Database) -> dict[str, str]:
    """The root of the story that shows each flag."""
    return {name: row.root_id for name, row in rows_of(database).items()}


def number(database: Database, name: str) -> int:
    """The number of the flag of an article."""
    return rows_of(database)[name].flag_id


def story_of(database: Database, name: str) -> int:
    """The number of the story of an original or a copy."""
    found = read(database, stories.story_of_article, name)
    assert found is not None
    return found.story_id


def merged(database: Database, one: str, into: str, by: Person) -> None:
    """Merge the stories of two articles."""
    write(database, merge.merge, story_of(database, one), story_of(database, into), by, NOW_MS)


def refused(work: Callable[[], object]) -> str:
    """Do what is refused, and return why."""
    with pytest.raises(RepairRefused) as raised:
        work()
    return raised.value.refusal


def test_what_is_split_off_takes_its_copies_along(database: Database, ann: Person) -> None:
    """Now and later, and not those of others; its flag stays as it is."""
    add(database, *CHAIN)
    new = write(database, split.split, number(database, "b"), ann, NOW_MS)
    assert roots(database) == {"b": "b", "c": "b", "d": "b", "e": "b", "f": "a"}
    add(database, flagged("g", "d"), flagged("h", "f"))
    assert roots(database) | {"g": "b", "h": "a"} == roots(database)
    row = rows_of(database)["b"]
    assert (row.story_id, row.state, row.original_id, row.copies) == (new, "open", "a", 5)
    check_counts(database)


def test_a_split_within_a_split(database: Database, ann: Person) -> None:
    """Each keeps its own copies, whichever is undone first."""
    add(database, *CHAIN)
    for name in ("b", "c"):
        write(database, split.split, number(database, name), ann, NOW_MS)
    assert roots(database) == {"b": "b", "c": "c", "d": "c", "e": "b", "f": "a"}
    write(database, split.undo_split, number(database, "b"), ann, NOW_MS)
    assert roots(database) == {"b": "a", "c": "c", "d": "c", "e": "a", "f": "a"}
    write(database, split.undo_split, number(database, "c"), ann, NOW_MS)
    assert set(roots(database).values()) == {"a"}
    check_counts(database)


def test_an_undone_split_goes_where_the_event_says(database: Database, ann: Person) -> None:
    """Where the original has no flag, nothing but the event knows the root."""
    add(database, flagged("c", "b", cluster="a"))
    story_id = rows_of(database)["c"].story_id
    write(database, split.split, number(database, "c"), ann, NOW_MS)
    assert write(database, split.undo_split, number(database, "c"), ann, NOW_MS) == story_id
    assert roots(database) == {"c": "a"}


def test_an_undone_split_goes_where_later_events_say(database: Database, ann: Person) -> None:
    """The flag of its original came after it, and then a release."""
    add(database, flagged("c", "b", cluster="x"))
    write(database, split.split, number(database, "c"), ann, NOW_MS)
    add(database, flagged("b", "a"))
    write(database, split.undo_split, number(database, "c"), ann, NOW_MS)
    assert roots(database) == {"c": "a", "b": "a"}
    write(database, split.split, number(database, "c"), ann, NOW_MS)
    add(database, released(flagged("b", "a")))
    write(database, split.undo_split, number(database, "c"), ann, NOW_MS)
    assert roots(database) == {"c": "b", "b": "a"}


def test_a_released_version_keeps_its_copies_when_its_split_is_undone(database: Database, ann: Person) -> None:
    """It was released since then: it is kept, whatever people say of stories."""
    add(database, *CHAIN)
    write(database, split.split, number(database, "b"), ann, NOW_MS)
    add(database, released(CHAIN[0]))
    write(database, split.undo_split, number(database, "b"), ann, NOW_MS)
    assert roots(database) == {"b": "a", "c": "b", "d": "b", "e": "b", "f": "a"}
    check_counts(database)


def test_splits_that_are_refused(database: Database, ann: Person) -> None:
    """Each for its reason; nothing is stored."""
    add(database, *CHAIN, flagged("a", "f", version="bb"), flagged("gone", "a"), released(flagged("gone", "a")))
    add_missed(database, near_miss("n", "a"))

    def why(flag_id: int) -> str:
        assert read(database, split.split_refusal, flag_id) == refused(
            lambda: write(database, split.split, flag_id, ann, NOW_MS)
        )
        return refused(lambda: write(database, split.split, flag_id, ann, NOW_MS))

    assert [why(number(database, name)) for name in ("a", "gone", "n")] == ["root", "released", "kind"]
    assert why(999) == "gone"
    assert refused(lambda: write(database, split.undo_split, number(database, "b"), ann, NOW_MS)) == "gone"
    assert refused(lambda: write(database, split.undo_split, 999, ann, NOW_MS)) == "gone"
    assert number_of(database, STORY_SPLITS) == 0
    write(database, split.split, number(database, "b"), ann, NOW_MS)
    assert why(number(database, "b")) == "split"
    assert read(database, split.split_refusal, number(database, "c")) is None


def test_what_would_stay_where_it_is_is_not_split_off(database: Database, ann: Person) -> None:
    """Since the story of its other version is merged with the one that shows it, in either direction."""
    add(database, *CHAIN, flagged("g", "b", original_version="bb"))
    story_id, flag_id = story_of(database, "a"), number(database, "b")
    for one, into in (("b", "a"), ("a", "b")):
        merged(database, one, into, ann)
        assert refused(lambda: write(database, split.split, flag_id, ann, NOW_MS)) == "merged"
        write(database, merge.undo_merge, _root(database, one).story_id, ann, NOW_MS)
    assert write(database, split.split, flag_id, ann, NOW_MS) != story_id
    assert roots(database)["b"] == "b"


def test_copies_that_would_go_along_are_counted(database: Database, ann: Person) -> None:
    """Those in force."""
    add(database, *CHAIN)
    assert read(database, split.moving_copies, number(database, "b")) == 3
    write(database, decide, [number(database, "e")], ann.person_id, "wrong", "", NOW_MS, 9)
    assert read(database, split.moving_copies, number(database, "b")) == 2
    assert read(database, split.moving_copies, number(database, "f")) == 0


def test_merged_stories_are_shown_as_one(database: Database, ann: Person) -> None:
    """With all that comes later, under the number of either."""
    add(database, flagged("a1", "a"), flagged("b1", "b"), flagged("b2", "b"))
    one, other = story_of(database, "a"), story_of(database, "b")
    write(database, decide, [number(database, "b1")], ann.person_id, "right", "", NOW_MS, 9)
    write(database, merge.merge, one, other, ann, NOW_MS)
    add(database, flagged("a2", "a", at_ms=NOW_MS + 9), flagged("a3", "a1"))
    assert set(roots(database).values()) == {"b"}
    for story_id in (one, other):
        shown = read(database, stories.story, story_id)
        assert shown is not None
        assert (shown.story_id, shown.copies, shown.open_copies, shown.last_ms) == (other, 5, 4, NOW_MS + 9)
        assert len(read(database, page, Filters(story_id=story_id), "oldest", 9).rows) == 4
    assert {root: shown.story_id for root, shown in read(database, stories.stories_of_roots, ["a", "b"]).items()} == {
        "a": other,
        "b": other,
    }
    check_counts(database)
    # One's own decision, and a release, count where the flag is shown.
    write(database, decide, [number(database, "a1")], ann.person_id, "wrong", "", NOW_MS, 9)
    add(database, released(flagged("a2", "a")))
    check_counts(database)


def test_an_undone_merge_brings_back_its_own(database: Database, ann: Person) -> None:
    """With the stories that were merged into it, and what came since then; others stay."""
    add(database, *(flagged(f"{name}1", name) for name in "abcd"))
    numbers = {name: story_of(database, name) for name in "abcd"}
    for one, into in (("a", "b"), ("b", "c"), ("d", "a")):
        merged(database, one, into, ann)
    add(database, flagged("a2", "a"), flagged("d2", "d1"))
    assert set(roots(database).values()) == {"c"}
    listed = read(database, merges_into, numbers["c"], 9)
    assert sorted((each.root_id, each.into_root_id) for each in listed) == [("a", "b"), ("b", "c"), ("d", "c")]
    write(database, merge.undo_merge, numbers["b"], ann, NOW_MS)
    assert roots(database) == {"a1": "b", "a2": "b", "b1": "b", "c1": "c", "d1": "c", "d2": "c"}
    write(database, merge.undo_merge, numbers["a"], ann, NOW_MS)
    write(database, merge.undo_merge, numbers["d"], ann, NOW_MS)
    assert roots(database) == {name: name[0] for name in roots(database)}
    assert read(database, merges_into, numbers["c"], 9) == []
    check_counts(database)


def test_merges_that_are_refused(database: Database, ann: Person) -> None:
    """A circle, however long; a story with itself; what is not there."""
    add(database, *(flagged(f"{name}1", name) for name in "abc"))
    merged(database, "a", "b", ann)
    merged(database, "b", "c", ann)
    numbers = [story.story_id for story in map(partial(_root, database), "abc")]
    for one in numbers:
        for into in numbers:
            assert refused(lambda: write(database, merge.merge, one, into, ann, NOW_MS)) == "merged"  # noqa: B023
    for one, into in ((999, numbers[0]), (numbers[0], 999)):
        assert refused(lambda: write(database, merge.merge, one, into, ann, NOW_MS)) == "gone"  # noqa: B023
    for one in (numbers[2], 999):
        assert refused(lambda: write(database, merge.undo_merge, one, ann, NOW_MS)) == "gone"  # noqa: B023


def _root(database: Database, name: str) -> Any:  # noqa: ANN401  # a row
    with database.read_connection() as connection:
        return connection.execute(select(STORIES).where(STORIES.c.root_id == name)).one()


def test_two_merges_at_once_make_no_circle(database: Database, second: Database, ann: Person) -> None:
    """Of each into the other: one of them is refused."""
    for round_ in range(5):
        one, other = f"one{round_}", f"other{round_}"
        add(database, flagged(f"{one}-copy", one), flagged(f"{other}-copy", other))
        a, b = story_of(database, one), story_of(database, other)

        def attempt(on: Database, first: int, into: int) -> str:
            try:
                write(on, merge.merge, first, into, ann, NOW_MS)
            except RepairRefused as error:
                return error.refusal
            return "done"

        done = at_once([partial(attempt, database, a, b), partial(attempt, second, b, a)])
        assert sorted(done) == ["done", "merged"]
    check_counts(database)


def test_a_merge_while_flags_come(database: Database, second: Database, ann: Person) -> None:
    """None of them is left behind."""
    add(database, flagged("a0", "a"), flagged("b0", "b"))
    a, b = story_of(database, "a"), story_of(database, "b")

    def come() -> None:
        for n in range(1, 30):
            add(second, flagged(f"a{n}", "a"))

    def change() -> None:
        for _ in range(5):
            write(database, merge.merge, a, b, ann, NOW_MS)
            write(database, merge.undo_merge, a, ann, NOW_MS)
        write(database, merge.merge, a, b, ann, NOW_MS)

    at_once([come, change])
    assert set(roots(database).values()) == {"b"}
    write(database, merge.undo_merge, a, ann, NOW_MS)
    assert roots(database) == {name: name[0] for name in roots(database)}
    check_counts(database)


def test_a_late_flag_takes_over_copies_of_a_merged_story(database: Database, ann: Person) -> None:
    """It moves what belongs to it by lineage, and nothing else of the story that shows it."""
    add(database, flagged("c", "b"), flagged("y", "x"))
    merged(database, "b", "x", ann)
    add(database, flagged("b", "a"))
    assert roots(database) == {"b": "a", "c": "a", "y": "x"}
    check_counts(database)


def test_what_is_split_off_and_merged_back(database: Database, ann: Person) -> None:
    """It is shown where it was; both can be undone, in either order."""
    add(database, *CHAIN)
    for undone in (["split", "merge"], ["merge", "split"]):
        write(database, split.split, number(database, "b"), ann, NOW_MS)
        merged(database, "b", "a", ann)
        assert set(roots(database).values()) == {"a"}
        for each in undone:
            if each == "split":
                write(database, split.undo_split, number(database, "b"), ann, NOW_MS)
            else:
                write(database, merge.undo_merge, _root(database, "b").story_id, ann, NOW_MS)
        assert set(roots(database).values()) == {"a"}
        check_counts(database)


def test_a_split_story_has_its_original(database: Database, ann: Person) -> None:
    """Although no flag names it: its version, its source, where it comes from, and who did it."""
    add(database, flagged("b", "a", sources=("wire", "post")), flagged("c", "a", sources=(None, None)))
    for name in "bc":
        write(database, split.split, number(database, name), ann, NOW_MS + 5)
    assert read(database, stories.root_versions, ["b", "c", "a", "x"]) == {"a": "aa", "b": "aa", "c": "aa"}
    write(database, set_sources, [FlagSources(number(database, "c"), "blog", "post")])
    sources = [read(database, stories.story, story_of(database, name)) for name in "bc"]
    assert [each and each.root_source for each in sources] == ["wire", "blog"]
    (made,) = read(database, splits_of, "b")
    assert (made.flag_id, made.from_root_id, made.from_id) == (1, "a", _root(database, "a").story_id)
    assert (made.person, made.at_ms) == ("Ann", NOW_MS + 5)


def test_a_flood_goes_on_in_the_story_that_shows_it(database: Database, ann: Person) -> None:
    """It is not noted a second time after a merge, and is still the merged story's own after that is undone."""

    def came(*names: str) -> list[Any]:
        added = add(database, *(flagged(f"{name}-copy", name[0], at_ms=NOW_MS + n) for n, name in enumerate(names)))
        return list(write(database, note_floods, added.stories, NOW_MS, 60.0, 3))

    (begun,) = came("a1", "a2", "a3", "b1")
    merged(database, "a", "b", ann)
    assert came("a4", "b2") == []
    (now,) = read(database, floods, 9)
    assert (now.flood_id, now.root_id, now.copies) == (begun.flood_id, "a", 6)
    write(database, merge.undo_merge, begun.story_id, ann, NOW_MS)
    assert came("a5") == []
    # Where lineage takes all of its flags, it goes along.
    merged(database, "a", "b", ann)
    add(database, flagged("a", "z"))
    assert [each.root_id for each in read(database, floods, 9)] == ["z"]


def test_other_systems_are_told(database: Database, ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each repair and its undoing, in its transaction."""
    told: list[StoryChange] = []

    def tell(_: Connection, changes: Sequence[StoryChange], now_ms: int) -> None:
        assert now_ms == NOW_MS
        told.extend(changes)

    monkeypatch.setattr(outcome, "write_story_events", tell)
    add(database, *CHAIN, flagged("y", "x"))
    a, x, flag_id = story_of(database, "a"), story_of(database, "x"), number(database, "b")
    b = write(database, split.split, flag_id, ann, NOW_MS)
    write(database, split.undo_split, flag_id, ann, NOW_MS)
    write(database, merge.merge, x, a, ann, NOW_MS)
    write(database, merge.undo_merge, x, ann, NOW_MS)
    assert told == [
        StoryChange(a, "split", "Ann", ("b", "aa"), b),
        StoryChange(b, "merged", "Ann", None, a),
        StoryChange(x, "merged", "Ann", None, a),
        StoryChange(a, "split", "Ann", None, x),
    ]


def test_the_original_of_a_split_story_has_its_version(database: Database, ann: Person) -> None:
    """In its first event, although no flag names it."""
    arrived(database, flagged("b", "a"), flagged("c", "a"))
    write(database, split.split, number(database, "b"), ann, NOW_MS)
    event = events_of(database, "story")[-1]
    assert (event["cause"], event["preferred"]) == ("began", {"id": "b", "version": "aa", "source": "a"})


def test_repairs_outlast_a_rebuild(database: Database, ann: Person) -> None:
    """Its events are those that are known already, in another order and with a new one among them."""
    events = [*CHAIN, flagged("y", "x"), released(CHAIN[3])]
    add(database, *events)
    write(database, split.split, number(database, "c"), ann, NOW_MS)
    merged(database, "x", "a", ann)
    before = roots(database)
    assert before == {"b": "a", "c": "c", "d": "c", "e": "a", "f": "a", "y": "a"}
    for event in reversed([*events, flagged("z", "y"), flagged("g", "d")]):
        add(database, event)
    assert roots(database) == before | {"z": "a", "g": "c"}
    check_counts(database)


def test_repairs_are_exported(database: Database, ann: Person) -> None:
    """Behind all pairs: whether the two are one story. What was undone is left out."""
    add(database, flagged("b", "a", similarity=0.8), flagged("c", "a"), flagged("y", "x", sources=("s", "t")))
    for name in "bc":
        write(database, split.split, number(database, name), ann, NOW_MS)
    write(database, split.undo_split, number(database, "c"), ann, NOW_MS)
    merged(database, "x", "a", ann)
    with database.read_connection() as connection:
        assert connection.execute(select(FLAGS.c.home_id).where(FLAGS.c.article_id == "y")).scalar() is not None
        lines = [_line(pair) for pair in pairs(connection)]
    assert [line["kind"] for line in lines] == ["flag", "flag", "flag", "split", "merge"]
    assert not any("id" in line for line in lines[:3])
    made, joined = lines[3:]
    assert made == lines[0] | {
        "kind": "split",
        "decision": "wrong",
        "person": "Ann",
        "at": made["at"],
        "id": "b",
        "version": "aa",
        "original": "a",
        "original_version": "aa",
    }
    assert (joined["decision"], joined["source"], joined["original_source"]) == ("right", "t", "b")
    assert (joined["id"], joined["original"], joined["version"], joined["arrived_at"]) == ("x", "a", None, None)


def test_a_story_that_shows_no_flags_has_no_times(database: Database, ann: Person) -> None:
    """Its first flag comes while it is merged, and is split off before the merge is undone."""
    with database.write_transaction() as connection:
        # As in a database into which the repairs of another one were imported.
        values = {"root_id": "b", "into_root_id": "a", "person_id": ann.person_id, "at_ms": NOW_MS}
        connection.execute(insert(STORY_MERGES).values(values))
    add(database, flagged("a1", "a"), flagged("b1", "b"))
    assert roots(database) == {"a1": "a", "b1": "a"}
    write(database, split.split, number(database, "b1"), ann, NOW_MS)
    write(database, merge.undo_merge, _root(database, "b").story_id, ann, NOW_MS)
    add(database, flagged("b2", "b", at_ms=NOW_MS + 9))
    assert (_root(database, "b").first_ms, _root(database, "b").last_ms) == (NOW_MS + 9, NOW_MS + 9)
