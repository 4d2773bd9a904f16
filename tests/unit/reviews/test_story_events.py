"""Events of stories: which are written, what they say, and that none is written twice."""

import pytest
from sqlalchemy import update

from consumer.model.verdict import Verdict
from consumer.reviews.database import Connection, Database
from consumer.reviews.decisions import decide, reopen, undo
from consumer.reviews.floods import note_floods
from consumer.reviews.outbox.flood_events import FLOOD_AGE_S_MAX, write_flood_events
from consumer.reviews.outbox.story_events import StoryChange, write_story_events
from consumer.reviews.repairs.merge import merge
from consumer.reviews.tables import FLAGS, FLOODS, STORIES
from tests.processor_time import within_processor_s
from tests.unit.reviews.made import NOW_MS, add, add_person, flag_ids, flagged, released, rows_of, write
from tests.unit.reviews.outbox_made import arrived, causes_of, events_of


def copies(count: int, *, first: int = 0, original: str = "o") -> list[Verdict]:
    """Flags of copies of one original, each from a source of its own."""
    return [flagged(f"c{number}", original, sources=(f"s{number}", "s")) for number in range(first, first + count)]


def test_a_story_begins_and_grows_tenfold(database: Database) -> None:
    """One event each, with the story as it is then; nothing in between."""
    arrived(database, *copies(1))
    for number in range(1, 12):
        arrived(database, *copies(1, first=number))
    arrived(database, *copies(99, first=12))
    assert causes_of(database) == [("began", "o", 1), ("grew", "o", 10), ("grew", "o", 111)]
    first, *_, last = events_of(database, "story")
    assert first == {
        "schema": "dupwatch.story/1",
        "event": 1,
        "cause": "began",
        "at": "2026-09-21T14:13:20.000Z",
        "story": 1,
        "original": "o",
        "source": "s",
        "copies": 1,
        "open_copies": 1,
        "sources": 2,
        "preferred": {"id": "o", "version": "aa", "source": "s"},
        "first_at": "2026-09-21T14:13:20.000Z",
        "last_at": "2026-09-21T14:13:20.000Z",
        "person": None,
        "member": None,
        "into": None,
    }
    assert (last["event"], last["sources"]) == (3, 112)


def test_many_stories_of_one_batch_have_an_event_each(database: Database) -> None:
    """In the order of their numbers; one that has ten copies at once both begins and grows."""
    batch = [flagged(f"{original}-{number}", original) for number in range(10) for original in ("x", "y")]
    arrived(database, flagged("z-0", "z"), *batch)
    assert causes_of(database) == [
        ("began", "z", 1), ("began", "x", 10), ("grew", "x", 10), ("began", "y", 10), ("grew", "y", 10),
    ]  # fmt: skip


def test_what_comes_again_is_not_told_again(database: Database) -> None:
    """Neither where a topic is read from its beginning, nor where copies leave and others come."""
    flags = copies(12)
    arrived(database, *flags)
    told = causes_of(database)
    arrived(database, *flags)
    arrived(database, *(released(flag) for flag in flags))
    arrived(database, *copies(12, first=20))
    assert causes_of(database) == told == [("began", "o", 12), ("grew", "o", 12)]


@pytest.mark.parametrize("size", [1, 3, 40])
def test_batches_of_any_size_tell_of_the_same_stories(database: Database, size: int) -> None:
    """Each story begins once and grows once, whatever came together."""
    batch = [flagged(f"{original}-{number}", original) for number in range(13) for original in ("x", "y", "z")]
    for start in range(0, len(batch), size):
        arrived(database, *batch[start : start + size])
        arrived(database, *batch[: start + size])
    assert sorted((cause, original) for cause, original, _ in causes_of(database)) == [
        *(("began", original) for original in "xyz"), *(("grew", original) for original in "xyz"),
    ]  # fmt: skip


def test_the_copies_of_a_released_version_are_a_story(database: Database) -> None:
    """It begins with the release, although none of them is new."""
    middle = flagged("m", "o")
    arrived(database, middle, *copies(3, original="m"))
    arrived(database, released(middle))
    assert causes_of(database) == [("began", "o", 4), ("began", "m", 3)]


def test_a_release_lets_a_story_grow_that_another_is_merged_into(database: Database) -> None:
    """Its copies are shown there, and none of them is new."""
    middle = flagged("m", "o")
    arrived(database, middle, *copies(9, original="m"), flagged("x1", "x"), flagged("m2", "m", original_version="bb"))
    found = {row.root_id: row.story_id for row in rows_of(database).values()}
    write(database, merge, found["m"], found["x"], add_person(database, "Ann"), NOW_MS)
    told = len(causes_of(database))
    arrived(database, released(middle))
    assert causes_of(database)[told:] == [("grew", "x", 11)]


def test_a_copy_that_was_wrong_begins_its_story(database: Database) -> None:
    """Once it is none any more, whether the decision is taken back or changed; and only the first time."""
    add(database, *copies(1), flagged("other", "p"))
    ann, (first, second) = add_person(database, "Ann").person_id, flag_ids(database)
    made = write(database, decide, [first, second], ann, "wrong", "", NOW_MS, 50).review_ids
    told = len(causes_of(database))
    write(database, undo, made[:1], ann, NOW_MS + 1)
    write(database, decide, [second], ann, "skip", "", NOW_MS + 1, 50)
    assert causes_of(database)[told:] == [("began", "o", 1), ("began", "p", 1)]
    made = write(database, decide, [first], ann, "wrong", "", NOW_MS + 2, 50).review_ids
    write(database, undo, made, ann, NOW_MS + 3)
    assert [cause for cause, _, _ in causes_of(database)].count("began") == 2


def test_a_member_that_has_left_does_not_stand_for_its_story(database: Database) -> None:
    """Although the story names it until another one is found."""
    add(database, *copies(2))
    write(database, lambda connection: connection.execute(update(STORIES).values(preferred_id=1)))
    write(database, lambda connection: connection.execute(update(FLAGS).values(state="released")))
    write(database, write_story_events, [StoryChange(1, "grew")], NOW_MS)
    assert events_of(database, "story")[0]["preferred"] == {"id": "o", "version": "aa", "source": "s"}


def test_what_an_event_says_of_members(database: Database) -> None:
    """The preferred one stands for the story, and otherwise the root; a member without a flag has no source."""
    add(database, *copies(2), flagged("late", "c0", cluster="unseen", original_version="bb", sources=("", None)))
    (late,) = [row for row in rows_of(database).values() if row.article_id == "late"]
    first = rows_of(database)["c0"]

    def prefer(connection: Connection) -> None:
        chosen = update(STORIES).where(STORIES.c.story_id == first.story_id).values(preferred_id=first.flag_id)
        connection.execute(chosen)

    write(database, prefer)
    told = [
        StoryChange(first.story_id, "preferred"),
        StoryChange(late.story_id, "split", "Ann", ("c1", "aa"), first.story_id),
        StoryChange(late.story_id, "split", "Ann", ("gone", "cc"), first.story_id),
    ]
    write(database, write_story_events, told, NOW_MS)
    preferred, split, unknown = events_of(database, "story")
    assert preferred["preferred"] == {"id": "c0", "version": "aa", "source": "s0"}
    assert (split["preferred"], split["sources"]) == ({"id": "unseen", "version": None, "source": None}, 0)
    assert (split["person"], split["into"]) == ("Ann", first.story_id)
    assert split["member"] == {"id": "c1", "version": "aa", "source": "s1"}
    assert unknown["member"] == {"id": "gone", "version": "cc", "source": None}


def test_a_story_that_has_lost_all_is_told_of(database: Database) -> None:
    """It has no times of its own then."""
    arrived(database, *copies(1))
    arrived(database, flagged("o", "root"))
    write(database, write_story_events, [StoryChange(1, "merged", "Ann", None, 2)], NOW_MS + 5)
    event = events_of(database, "story")[-1]
    assert (event["copies"], event["into"], event["first_at"]) == (0, 2, event["at"])


def test_sources_are_counted_of_copies_in_force(database: Database) -> None:
    """Each once, with that of the original; those of released copies, and of entries that are no copies, are not."""
    flags = [flagged(f"c{number}", "o", sources=("s" if number % 2 else "t", "t")) for number in range(4)]
    gone = flagged("gone", "o", sources=("u", "t"))
    arrived(database, *flags, gone)
    arrived(database, released(gone))
    write(database, write_story_events, [StoryChange(1, "preferred")], NOW_MS)
    assert [event["sources"] for event in events_of(database, "story")] == [3, 2]


def test_the_last_decision_of_a_story_is_told(database: Database) -> None:
    """Once for a transaction and a story; not for what is skipped, and again after one was taken back."""
    arrived(database, *copies(3), flagged("other", "p"))
    begun = causes_of(database)
    ann = add_person(database, "Ann").person_id
    flags = flag_ids(database)
    write(database, decide, flags[:2], ann, "right", "", NOW_MS, 50)
    write(database, decide, flags[2:3], ann, "skip", "", NOW_MS, 50)
    assert causes_of(database) == begun
    made = write(database, decide, flags[2:], ann, "wrong", "", NOW_MS, 50).review_ids
    assert causes_of(database)[2:] == [("decided", "o", 2), ("decided", "p", 0)]
    assert {event["person"] for event in events_of(database, "story")[2:]} == {"Ann"}
    write(database, decide, flags[2:3], ann, "right", "", NOW_MS + 1, 50)
    write(database, undo, made, ann, NOW_MS + 1)
    assert len(causes_of(database)) == 4, "nothing was left to decide already, or something is again"
    write(database, decide, flags[3:], ann, "right", "", NOW_MS + 2, 50)
    assert causes_of(database)[4:] == [("decided", "p", 1)]
    write(database, reopen, flags[:1])
    write(database, decide, flags[:1], ann, "right", "", NOW_MS + 3, 50)
    assert causes_of(database)[5:] == [("decided", "o", 3)]


def flooded(database: Database, *, now_ms: int = NOW_MS) -> list[int]:
    """Let five copies come, notice that as a flood, and return the floods that are told of."""

    def work(connection: Connection) -> list[int]:
        note_floods(connection, {1}, now_ms, 60, 5)
        return [flood.flood_id for flood in write_flood_events(connection, now_ms)]

    arrived(database, *copies(5))
    return write(database, work)


def test_a_flood_is_told_of_twice(database: Database) -> None:
    """Once as an event of its own, and once as one of its story; then no more."""
    assert flooded(database) == [1]
    (event,) = events_of(database, "flood")
    assert event == {
        "schema": "dupwatch.flood/1", "flood": 1, "story": 1, "original": "o", "source": "s", "copies": 5,
        "began_at": "2026-09-21T14:13:20.000Z", "noted_at": "2026-09-21T14:13:20.000Z",
    }  # fmt: skip
    assert causes_of(database) == [("began", "o", 5), ("flood", "o", 5)]
    assert flooded(database) == []
    assert len(events_of(database, "flood")) == 1


def test_a_flood_of_long_ago_is_not_told_of(database: Database) -> None:
    """A console that reads a topic again does not tell of it as if it were now."""
    assert flooded(database, now_ms=NOW_MS + round(FLOOD_AGE_S_MAX * 1_000) + 1) == []
    assert events_of(database, "flood") == []
    assert flooded(database) == [], "it is not looked at again"


def test_a_flood_that_an_earlier_version_noticed_is_told_of(database: Database) -> None:
    """The one that was stopped before it had sent its event."""
    flooded(database)

    def forget(connection: Connection) -> list[int]:
        connection.execute(update(FLOODS).values(sent_ms=None))
        return [flood.flood_id for flood in write_flood_events(connection, NOW_MS)]

    assert write(database, forget) == [1]


def test_a_change_that_fails_leaves_no_event(database: Database) -> None:
    """Events are written in the transaction of the change, and only there."""
    arrived(database, *copies(1))

    def fail(connection: Connection) -> None:
        write_story_events(connection, [StoryChange(1, "preferred")], NOW_MS)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(database, fail)
    assert causes_of(database) == [("began", "o", 1)]


@pytest.mark.parametrize(
    "address", ["sqlite", pytest.param("postgresql", marks=[pytest.mark.servers, pytest.mark.load])], indirect=True
)
def test_a_large_story_is_told_of_without_reading_its_flags(database: Database) -> None:
    """Its sources are counted in an index, and its root's version is one entry of another.

    Only SQLite does its work in this thread, whose time is bounded.
    """
    batch = [flagged(f"c{number}", "o", sources=(f"s{number % 7}", "s")) for number in range(20_000)]
    arrived(database, *batch)
    with within_processor_s(1):
        write(database, write_story_events, [StoryChange(1, "preferred")], NOW_MS)
    assert [event["sources"] for event in events_of(database, "story")] == [8, 8, 8]
