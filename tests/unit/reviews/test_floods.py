"""Floods: many copies of one story within a short time."""

from sqlalchemy import select

from consumer.reviews.database import Database
from consumer.reviews.floods import Flood, floods, mark_announced, note_floods, unannounced_floods
from consumer.reviews.tables import FLOODS
from tests.unit.reviews.made import NOW_MS, add, flagged, read, rows_of, write

COPIES = 5
WINDOW_S = 10.0


def came(database: Database, *seconds: float, original: str = "o", noted_ms: int = NOW_MS) -> list[Flood]:
    """Let copies come at these times, in one batch; return the floods that have begun."""
    added = add(
        database,
        *(flagged(f"{original}-{at}-{n}", original, at_ms=NOW_MS + int(at * 1_000)) for n, at in enumerate(seconds)),
    )
    return write(database, note_floods, added.stories, noted_ms, WINDOW_S, COPIES)


def test_so_many_copies_within_the_window_are_a_flood(database: Database) -> None:
    """It is noted with its story, its time and its copies."""
    assert came(database, 0, 1, 2, 19.001) == []
    (flood,) = came(database, 4, 9, noted_ms=NOW_MS + 99)
    assert (flood.root_id, flood.copies, flood.noted_ms) == ("o", 5, NOW_MS + 99)
    assert (flood.began_ms, flood.last_ms) == (NOW_MS, NOW_MS + 9_000)
    assert read(database, floods, 9) == [flood]


def test_copies_that_come_slowly_are_none(database: Database) -> None:
    """However many."""
    assert came(database, *(n * 2.6 for n in range(40))) == []


def test_a_flood_goes_on(database: Database) -> None:
    """It does not begin again, and counts what comes."""
    (flood,) = came(database, 0, 1, 2, 3, 4)
    assert came(database, 5, 6, 7, 8, 12) == []
    (now,) = read(database, floods, 9)
    assert (now.flood_id, now.copies, now.began_ms, now.last_ms) == (flood.flood_id, 10, NOW_MS, NOW_MS + 12_000)


def test_another_flood_of_the_same_story(database: Database) -> None:
    """After a quiet time it is a new one."""
    came(database, 0, 1, 2, 3, 4)
    (flood,) = came(database, 100, 101, 102, 103, 104)
    assert flood.began_ms == NOW_MS + 100_000
    assert [each.began_ms for each in read(database, floods, 9)] == [NOW_MS + 100_000, NOW_MS]


def test_a_flood_in_the_middle_of_a_batch_is_found(database: Database) -> None:
    """A console that catches up reads more than the window at once."""
    (flood,) = came(database, 0, 30, 31, 32, 33, 34, 90)
    assert (flood.began_ms, flood.last_ms, flood.copies) == (NOW_MS + 30_000, NOW_MS + 34_000, 5)


def test_two_floods_in_one_batch(database: Database) -> None:
    """Each is found, and again nothing when the same events come again."""
    times = (0, 1, 2, 3, 4, 100, 101, 102, 103, 104)
    assert len(came(database, *times)) == 2
    (story_id,) = {row.story_id for row in rows_of(database).values()}
    assert write(database, note_floods, {story_id}, NOW_MS, WINDOW_S, COPIES) == []


def test_a_flood_goes_with_its_story(database: Database) -> None:
    """Where the original turns out to be a copy, it goes on in the other story."""
    came(database, 0, 1, 2, 3, 4)
    add(database, flagged("o", "root"))
    assert [each.root_id for each in read(database, floods, 9)] == ["root"]
    assert came(database, 5, original="o") == []
    assert len(read(database, floods, 9)) == 1


def test_what_was_announced_is_not_announced_again(database: Database) -> None:
    """Until then it is to be announced, also by the next process."""
    (flood,) = came(database, 0, 1, 2, 3, 4)
    assert read(database, unannounced_floods, 9) == [flood]
    write(database, mark_announced, flood.flood_id, NOW_MS + 7)
    assert read(database, unannounced_floods, 9) == []
    assert read(database, lambda c: c.execute(select(FLOODS.c.sent_ms)).scalar_one()) == NOW_MS + 7
