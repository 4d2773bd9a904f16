"""Stories: their copies, when they came, and which are the largest and the fastest."""

from dataclasses import replace
from itertools import pairwise

from consumer.reviews import queue, stories
from consumer.reviews.database import Database
from consumer.reviews.decisions import decide
from consumer.reviews.stories import SourcePair
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_missed,
    add_person,
    flagged,
    near_miss,
    read,
    released,
    rows_of,
    write,
)


def made(database: Database, root: str, *seconds: float) -> int:
    """A story with copies that came at these times; its number."""
    add(
        database,
        *(
            flagged(f"{root}-{n}", root, at_ms=NOW_MS + round(at * 1_000), sources=(f"copier-{n % 2}", f"of {root}"))
            for n, at in enumerate(seconds)
        ),
    )
    return rows_of(database)[f"{root}-0"].story_id


def test_a_story_knows_its_root_and_its_copies(database: Database) -> None:
    """And the times of the first and the last one."""
    story_id = made(database, "r", 5, 3, 9)
    found = read(database, stories.story, story_id)
    assert found is not None
    assert (found.root_id, found.root_source, found.copies, found.open_copies) == ("r", "of r", 3, 3)
    assert (found.first_ms, found.last_ms) == (NOW_MS + 3_000, NOW_MS + 9_000)
    assert read(database, stories.story, 99) is None


def test_copies_come_by_arrival_and_page_by_page(database: Database) -> None:
    """Those that are not in force as well, near misses not."""
    story_id = made(database, "r", 5, 3, 9, 1)
    add_missed(database, near_miss("near", "r"))
    add(database, released(flagged("r-2", "r")))
    first = read(database, stories.copies, story_id, None, 3)
    assert [row.article_id for row in first.rows] == ["r-3", "r-1", "r-0"]
    last = read(database, stories.copies, story_id, first.after, 3)
    assert [(row.article_id, row.state) for row in last.rows] == [("r-2", "released")]
    assert last.after is None
    assert read(database, stories.copies, story_id, last.before, 3).rows == first.rows


def test_a_timeline_counts_every_copy_once(database: Database) -> None:
    """In spans that begin at multiples of their length; empty ones are there, and released ones do not count."""
    story_id = made(database, "r", 0, 0.001, 4.999, 9.999)
    add(database, released(flagged("r-1", "r")))
    story = read(database, stories.story, story_id)
    assert story is not None
    line = read(database, stories.timeline, story, 1_000)
    assert len(line) == 10
    assert [bucket.copies for bucket in line] == [1, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert (line[0].from_ms, line[-1].to_ms) == (NOW_MS, NOW_MS + 10_000)
    assert all(a.to_ms == b.from_ms for a, b in pairwise(line))
    for length_ms in (170, 1_500, 4_000, 3_600_000):
        found = read(database, stories.timeline, story, length_ms)
        assert sum(bucket.copies for bucket in found) == 3
        assert {bucket.from_ms % length_ms for bucket in found} == {0}
    assert read(database, stories.timeline, replace(story, copies=0), 1_000) == []


def test_a_story_of_one_moment(database: Database) -> None:
    """It is one span."""
    story = read(database, stories.story, made(database, "r", 3, 3))
    assert story is not None
    (bucket,) = read(database, stories.timeline, story, 1_000)
    assert (bucket.copies, bucket.to_ms - bucket.from_ms) == (2, 1_000)


def test_the_largest_stories(database: Database) -> None:
    """By copies, of those that got one lately; a story without copies in force is none."""
    made(database, "old", 0, 0, 0, 0)
    made(database, "new", 60, 60)
    made(database, "newer", 60, 70, 80)
    made(database, "gone", 60)
    add(database, released(flagged("gone-0", "gone")))
    assert [story.root_id for story in read(database, stories.largest_stories, NOW_MS, 9)] == ["old", "newer", "new"]
    assert [story.root_id for story in read(database, stories.largest_stories, NOW_MS + 1, 9)] == ["newer", "new"]
    assert [story.root_id for story in read(database, stories.largest_stories, NOW_MS, 1)] == ["old"]


def test_what_spreads_fastest(database: Database) -> None:
    """By the copies since then, not by all."""
    made(database, "large", 0, 0, 0, 0, 99)
    made(database, "fast", 0, 98, 99)
    person_id = add_person(database, "Ann").person_id
    made(database, "wrong", 99, 99, 99)
    wrong = [row.flag_id for row in rows_of(database).values() if row.root_id == "wrong"]
    write(database, decide, wrong, person_id, "wrong", "", NOW_MS, 0)
    found = read(database, stories.fastest_stories, NOW_MS + 90_000, 9)
    assert [(spread.story.root_id, spread.new_copies) for spread in found] == [("fast", 2), ("large", 1)]


def test_who_copies_whom(database: Database) -> None:
    """Each pair of sources with its copies, the largest first; unknown sources are a pair, too."""
    made(database, "r", 0, 1, 2)
    add(database, flagged("x", "r", at_ms=NOW_MS + 3_000, sources=(None, "of r")))
    assert read(database, stories.pairs_of_sources, NOW_MS, 9) == [
        SourcePair("copier-0", "of r", 2),
        SourcePair("copier-1", "of r", 1),
        SourcePair(None, "of r", 1),
    ]
    assert read(database, stories.pairs_of_sources, NOW_MS + 2_000, 1) == [SourcePair("copier-0", "of r", 1)]


def test_open_flags_of_some_roots(database: Database) -> None:
    """The oldest first, of all these stories together; what was decided, released or nearly missed is none."""
    first, second = made(database, "a", 5, 1, 9, 2), made(database, "b", 3)
    made(database, "c", 4)
    ann = add_person(database, "Ann")
    add_missed(database, near_miss("near", "a"))
    add(database, released(flagged("a-2", "a")))
    rows = rows_of(database)
    write(database, decide, [rows["a-3"].flag_id], ann.person_id, "right", "", NOW_MS, 0)
    found = read(database, stories.stories_of_roots, ["a", "b", "nobody"])
    assert {root: (story.story_id, story.copies, story.open_copies) for root, story in found.items()} == {
        "a": (first, 3, 2),
        "b": (second, 1, 1),
    }
    ids = [first, second]
    assert [row.article_id for row in read(database, stories.open_flags, ids, 9)] == ["a-1", "b-0", "a-0"]
    assert [row.article_id for row in read(database, stories.open_flags, ids, 2)] == ["a-1", "b-0"]
    assert read(database, stories.open_flags, [], 9) == []
    assert read(database, queue.flags, [rows["b-0"].flag_id, rows["a-0"].flag_id, 999]) == [rows["a-0"], rows["b-0"]]


def test_what_came_before_and_after_a_flag(database: Database) -> None:
    """In order of arrival, of the same story; fewer at its ends."""
    add(database, *(flagged(f"copy-{n}", "o", at_ms=NOW_MS + n) for n in range(5)), flagged("other", "p"))
    rows = rows_of(database)

    def names(name: str) -> str:
        return "".join(row.article_id[-1] for row in read(database, stories.flags_around, rows[name], 2))

    assert [names(f"copy-{n}") for n in (0, 1, 2, 4)] == ["012", "0123", "01234", "234"]
    assert names("other") == "r"
