"""Flags, releases and near misses come in, in any order and any number of times."""

import pytest

from consumer.model.verdict import Verdict
from consumer.reviews import stories
from consumer.reviews.database import Database
from consumer.reviews.flag_events import FlagSources, add_events, set_sources, sources_missing
from consumer.text.timestamps import rfc3339
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_missed,
    at_once,
    check_counts,
    flagged,
    near_miss,
    read,
    released,
    rows_of,
    write,
)


def test_a_flag_is_stored_with_all_that_its_event_says(database: Database) -> None:
    """Nothing is lost on the way, and times are milliseconds."""
    added = add(database, flagged("copy", "original", similarity=0.875, truncated=True))
    row = rows_of(database)["copy"]
    assert (added.flags, added.stories) == (1, {row.story_id})
    assert (row.kind, row.version, row.original_id, row.original_version) == ("flag", "aa", "original", "aa")
    assert (row.source, row.original_source) == ("a", "b")
    assert (row.similarity, row.certainty, row.distance, row.truncated) == (0.875, 0.875, 2, True)
    assert (row.arrived_ms, row.decided_ms, row.state, row.released_ms) == (NOW_MS, NOW_MS + 5, "open", None)
    assert (row.root_id, row.copies, row.sampled_in) == ("original", 1, 1.0)


def test_events_that_come_again_change_nothing(database: Database) -> None:
    """In the same batch or in another one; they are counted as known."""
    flag = flagged("copy", "original")
    assert add(database, flag, flag)[:4] == (1, 0, 1, 0)
    before = rows_of(database)
    assert add(database, flag)[:4] == (0, 0, 1, 0)
    assert add(database, released(flag), released(flag))[:4] == (0, 1, 1, 0)
    assert add(database, released(flag), flag)[:4] == (0, 0, 2, 0)
    assert before["copy"].flag_id == rows_of(database)["copy"].flag_id
    check_counts(database)


def test_each_version_has_a_flag_of_its_own(database: Database) -> None:
    """An article that was changed and flagged again has two."""
    assert add(database, flagged("copy", "x"), flagged("copy", "y", version="bb")).flags == 2
    check_counts(database)


def test_a_release_takes_the_flag_out_of_its_story(database: Database) -> None:
    """It stays to be seen there, with the time of its release, and counts no more."""
    flag = flagged("copy", "original")
    add(database, flag, flagged("other", "original"))
    add(database, released(flag, at_ms=NOW_MS + 77))
    rows = rows_of(database)
    assert (rows["copy"].state, rows["copy"].released_ms) == ("released", NOW_MS + 77)
    assert rows["copy"].story_id == rows["other"].story_id
    assert rows["copy"].copies == 1
    check_counts(database)


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_a_release_may_come_before_its_flag(database: Database, in_one_batch: bool) -> None:  # noqa: FBT001  # a parameter
    """The flag then adds what the release does not say, and stays released."""
    flag = flagged("copy", "middle", cluster="root", similarity=0.83)
    if in_one_batch:
        add(database, released(flag), flag)
    else:
        assert add(database, released(flag))[:4] == (0, 1, 0, 0)
        assert rows_of(database)["copy"].distance is None
        add(database, flag)
    row = rows_of(database)["copy"]
    assert (row.state, row.similarity, row.distance, row.certainty) == ("released", 0.83, 2, 0.83)
    assert (row.decided_ms, row.root_id, row.copies) == (NOW_MS + 5, "root", 0)
    check_counts(database)


def test_what_is_about_no_flag_is_counted_and_left_out(database: Database) -> None:
    """Unique and retracted articles, and names that no store can hold."""
    at = rfc3339(NOW_MS)
    unique = Verdict(id="u", version="aa", outcome="unique", arrived_at=at, decided_at=at)
    retracted = Verdict(id="r", outcome="retracted", arrived_at=at, decided_at=at)
    events = [
        unique,
        retracted,
        flagged("x\0", "y"),
        flagged("x" * 513, "y"),
        flagged("x", "é" * 257),
    ]
    assert add(database, *events)[:5] == (0, 0, 0, 5, set())
    assert rows_of(database) == {}


def test_ids_of_any_characters_up_to_512_bytes(database: Database) -> None:
    """Two that differ in a form of the same letter are two articles; order and letters of a language play no part."""
    ids = ["é" * 256, "e\u0301", "é", "\u200b", " ", "'; --", "%_", "A", "a", "ß", "ss", "\U0001f600" * 128, "\ue000"]
    add(database, *(flagged(name, f"original of {name}"[:100]) for name in ids))
    assert set(rows_of(database)) == set(ids)


def test_certainty_is_the_similarity_or_below_zero_where_nothing_was_verified(database: Database) -> None:
    """So that what was not verified comes first, the farthest before the nearest."""
    near = flagged("near", "o", similarity=None, distance=0)
    far = flagged("far", "o", similarity=None, distance=32)
    wide = flagged("wide", "o", similarity=None, distance=32, fingerprint="0" * 32)
    add(database, near, far, wide, flagged("sure", "o", similarity=0.7))
    certainty = {name: row.certainty for name, row in rows_of(database).items()}
    assert certainty == {"near": -1 / 65, "far": -33 / 65, "wide": -33 / 129, "sure": 0.7}


def test_a_chain_is_one_story(database: Database) -> None:
    """Its root is where the chain ends, whichever part of it came first."""
    chain = [flagged("b", "a"), flagged("c", "b", cluster="b"), flagged("d", "c", cluster="c")]
    for event in reversed(chain):
        add(database, event)
    assert {row.root_id for row in rows_of(database).values()} == {"a"}
    assert rows_of(database)["d"].copies == 3
    check_counts(database)


def test_a_root_that_turns_out_to_be_a_copy_brings_its_story_with_it(database: Database) -> None:
    """With all that belongs to it; whoever looks for the old story finds the new one."""
    add(database, flagged("c1", "b"), flagged("c2", "b"), flagged("d", "c1", cluster="b"))
    old = rows_of(database)["c1"].story_id
    add(database, flagged("b", "a"))
    rows = rows_of(database)
    assert {row.story_id for row in rows.values()} == {rows["b"].story_id} != {old}
    found = read(database, stories.story, old)
    assert found is not None
    assert (found.root_id, found.copies, found.open_copies) == ("a", 4, 4)
    check_counts(database)


def test_the_copies_of_a_released_version_are_its_own_story(database: Database) -> None:
    """Those that came before the release and those that come after it."""
    middle = flagged("b", "a")
    add(database, middle, flagged("c", "b", cluster="a"), flagged("d", "c", cluster="a"))
    add(database, released(middle))
    add(database, flagged("e", "b", cluster="b"))
    roots = {name: row.root_id for name, row in rows_of(database).items()}
    assert roots == {"b": "a", "c": "b", "d": "b", "e": "b"}
    check_counts(database)


def test_events_in_a_circle_end(database: Database) -> None:
    """Damaged events make one story of it, and no endless work."""
    add(database, flagged("a", "d"), flagged("c", "b"))
    add(database, flagged("b", "a"), flagged("d", "c"))
    assert len(rows_of(database)) == 4
    check_counts(database)
    add(database, flagged("x", "x"), released(flagged("x", "x")), flagged("y", "x"))
    check_counts(database)


def test_near_misses_are_no_copies(database: Database) -> None:
    """They belong to the story of their original, which does not count them."""
    add(database, flagged("b", "a"))
    assert add_missed(database, near_miss("n", "b"), near_miss("n", "b")) == 1
    assert add_missed(database, near_miss("n", "b"), near_miss("m", "other")) == 1
    rows = rows_of(database)
    assert (rows["n"].kind, rows["n"].root_id, rows["n"].copies, rows["n"].sampled_in) == ("near_miss", "a", 1, 20.0)
    assert (rows["m"].root_id, rows["m"].copies) == ("other", 0)
    check_counts(database)


def test_a_near_miss_leads_nowhere(database: Database) -> None:
    """What repeats an article that was nearly flagged is a copy of that article."""
    add_missed(database, near_miss("b", "a"))
    add(database, flagged("c", "b"))
    assert rows_of(database)["c"].root_id == "b"


def test_sources_are_filled_in_later(database: Database) -> None:
    """Those that are known stay; the root of the story gets its source, too."""
    add(
        database, flagged("b", "a", sources=(None, None)), flagged("c", "a", sources=("known", None)), flagged("d", "a")
    )
    missing = read(database, sources_missing, 10)
    assert {(row.article_id, row.original_id) for row in missing} == {("b", "a"), ("c", "a")}
    filled = [FlagSources(row.flag_id, "", "wire") for row in missing]
    write(database, set_sources, filled)
    rows = rows_of(database)
    assert [(rows[name].source, rows[name].original_source) for name in "bcd"] == [
        ("", "wire"),
        ("known", "wire"),
        ("a", "b"),
    ]
    assert read(database, sources_missing, 10) == []


def test_the_source_of_a_root_is_the_first_that_is_known(database: Database) -> None:
    """Also where it is filled in only later."""
    add(database, flagged("b", "a", sources=(None, None)))
    (row,) = rows_of(database).values()
    story = read(database, stories.story, row.story_id)
    assert story is not None
    assert story.root_source is None
    write(database, set_sources, [FlagSources(row.flag_id, "", "wire")])
    story = read(database, stories.story, row.story_id)
    assert story is not None
    assert story.root_source == "wire"


def test_sources_may_have_any_characters(database: Database) -> None:
    """What a database cannot hold is replaced, and the source can still be named."""
    add(database, flagged("b", "a", sources=("\0 and \udcff", "<b>")))
    assert rows_of(database)["b"].source == "\ufffd and \ufffd"


def test_two_consoles_take_in_the_same_events_at_once(database: Database, second: Database) -> None:
    """Each flag is there once, and stories are those of one console."""
    events = [flagged(f"{n:03}", f"{n // 2:03}" if n % 3 else "root") for n in range(1, 200)]

    def take(each: Database, order: int) -> int:
        batches = [events[start : start + 20][::order] for start in range(0, len(events), 20)][::order]
        return sum(write(each, add_events, batch).flags for batch in batches)

    assert sum(at_once([lambda: take(database, 1), lambda: take(second, -1)])) == len(events)
    rows = rows_of(database)
    assert len(rows) == len(events)
    check_counts(database)
    above = {event.id: event.duplicate_of for event in events}

    def root(name: str) -> str:
        while name in above:
            name = str(above[name])
        return name

    assert {name: row.root_id for name, row in rows.items()} == {name: root(name) for name in above}
