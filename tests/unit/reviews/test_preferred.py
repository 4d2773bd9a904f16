"""The preferred member of a story is of the source with the highest rank, whatever comes first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from consumer.model.verdict import Verdict
from consumer.reviews import stories
from consumer.reviews.database import Connection, Database
from consumer.reviews.decisions import decide, undo
from consumer.reviews.flag_events import FlagSources, IntakeCounts, add_events, set_sources, sources_missing
from consumer.reviews.flag_row import IN_FORCE
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.outbox.story_events import StoryChange
from consumer.reviews.ranking import preferring, rank_changes
from consumer.reviews.ranking.preferred import MemberChanges, RankedMember, preferred_members, update_preferred
from consumer.reviews.ranking.preferring import refresh_preferred
from consumer.reviews.ranking.rank_changes import apply_ranks, configure_ranks, remove_rank, set_rank
from consumer.reviews.ranking.ranks import listed_ranks, rank_of, ranks_in_effect
from consumer.reviews.search import Count
from consumer.reviews.sources import source_ids
from consumer.reviews.tables import FLAGS, SOURCE_RANKS, STORIES
from tests.unit.reviews.made import (
    NOW_MS,
    add_missed,
    add_person,
    cleared,
    executions,
    flag_ids,
    flagged,
    near_miss,
    read,
    released,
    write,
)
from tests.unit.reviews.test_any_order import EXAMPLES, VERSIONS, streams

SOURCES: Final = ("xinhua", "wire", "blog", "post")
TIMES: Final = (0, 1, 1, 2)


def take_in(database: Database, *events: Verdict) -> IntakeCounts:
    """Take in a batch as the intake does."""

    def taken(connection: Connection) -> IntakeCounts:
        added = add_events(connection, events)
        refresh_preferred(connection, added.members, NOW_MS)
        return added

    return database.write(taken)


def preferred(database: Database, root: str = "a") -> str:
    """The id of the preferred member of a story."""
    with database.read_connection() as connection:
        story_id = connection.execute(select(STORIES.c.story_id).where(STORIES.c.root_id == root)).scalar_one()
        return preferred_members(connection, [story_id])[story_id].article_id


def rank(database: Database, source: str, number: int, person_id: int) -> None:
    """Set the rank of a source."""
    write(database, set_rank, source, number, person_id, NOW_MS)


def unrank(database: Database, source: str, configured: Mapping[str, int]) -> None:
    """Remove the rank of a source, if somebody has set one."""

    def removed(connection: Connection) -> None:
        known = rank_of(connection, source_ids(connection, [source])[source])
        if known is not None and known.person is not None:
            remove_rank(connection, known, configured, NOW_MS)

    database.write(removed)


def apply_all(database: Database) -> int:
    """Update all stories after ranks have changed; return how many transactions that took."""
    number = 1
    while write(database, apply_ranks, NOW_MS):
        number += 1
    return number


def check_preferred(database: Database) -> None:
    """Compare each story with all its members."""
    with database.read_connection() as connection:
        ranks = ranks_in_effect(connection)
        flags = connection.execute(select(FLAGS).where(FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.state.in_(IN_FORCE))).all()
        for story in connection.execute(select(STORIES)).all():
            members = sorted(
                (-ranks.get(flag.source_id, 0), flag.arrived_ms, flag.article_id, flag.version, flag.flag_id)
                for flag in flags
                if flag.story_id == story.story_id
            )
            leads = members and -members[0][0] > ranks.get(story.root_source_id, 0)
            assert story.preferred_id == (members[0][-1] if leads else None), (story, members)


@pytest.fixture
def ann(database: Database) -> int:
    """The number of somebody who sets ranks."""
    return add_person(database, "Ann", "admin").person_id


def test_the_highest_rank_and_then_the_earliest(database: Database, ann: int) -> None:
    """The original first, where nothing has a higher rank."""
    take_in(
        database,
        flagged("late", "a", sources=("xinhua", "wire"), at_ms=NOW_MS + 9),
        flagged("early", "a", sources=("xinhua", "wire"), at_ms=NOW_MS + 2),
        flagged("first", "a", sources=("blog", "wire")),
    )
    assert preferred(database) == "a"
    rank(database, "xinhua", 10, ann)
    assert preferred(database) == "early"
    rank(database, "blog", 11, ann)
    assert preferred(database) == "first"
    rank(database, "wire", 11, ann)
    assert preferred(database) == "a"
    rank(database, "wire", -1, ann)
    rank(database, "blog", -1, ann)
    rank(database, "xinhua", -1, ann)
    assert preferred(database) == "a"
    take_in(database, flagged("new", "a", sources=("post", "wire"), at_ms=NOW_MS + 20))
    assert preferred(database) == "new"
    check_preferred(database)


def test_a_source_of_higher_rank_joins(database: Database, ann: int) -> None:
    """The story has it at once, and says that it has changed; verdicts and counts stay."""
    take_in(database, flagged("b", "a", sources=("blog", "wire")))
    rank(database, "xinhua", 10, ann)
    assert preferred(database) == "a"
    added = take_in(database, flagged("c", "a", sources=("xinhua", "wire")), near_miss_of_nothing())
    assert (added.flags, added.others, preferred(database)) == (1, 1, "c")
    take_in(database, flagged("d", "a", sources=("xinhua", "wire"), at_ms=NOW_MS + 1))
    assert preferred(database) == "c"
    take_in(database, released(flagged("c", "a", sources=("xinhua", "wire"))))
    assert preferred(database) == "d"
    story = read(database, stories.story, 1)
    assert story is not None
    assert story.copies == 2
    check_preferred(database)


def near_miss_of_nothing() -> Verdict:
    """A verdict that is about no flag."""
    return msgspec.structs.replace(flagged("u", "a"), outcome="unique")


def test_changes_are_told_once(database: Database, ann: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the transaction of the change; nothing is told where another copy joins and nothing changes."""
    told: list[StoryChange] = []
    monkeypatch.setattr(preferring, "write_story_events", lambda _c, changes, _now: told.extend(changes))
    rank(database, "xinhua", 10, ann)
    take_in(database, flagged("b", "a", sources=("blog", "wire")))
    assert told == []
    take_in(database, flagged("c", "a", sources=("xinhua", "wire")))
    take_in(database, flagged("d", "a", sources=("xinhua", "wire"), at_ms=NOW_MS + 5))
    assert told == [StoryChange(1, "preferred")]
    rank(database, "xinhua", 5, ann)
    assert len(told) == 1
    rank(database, "xinhua", 0, ann)
    assert told == [StoryChange(1, "preferred")] * 2


def test_equal_members_do_not_depend_on_the_order(database: Database, ann: int) -> None:
    """Of copies of one source that arrived at the same time it is always the same one."""
    rank(database, "xinhua", 10, ann)
    both = [flagged(name, "a", sources=("xinhua", "wire")) for name in ("c", "b")]
    take_in(database, both[0])
    assert preferred(database) == "c"
    take_in(database, both[1])
    assert preferred(database) == "b"
    take_in(database, flagged("y", "x", sources=("xinhua", "wire")), flagged("z", "x", sources=("xinhua", "wire")))
    assert preferred(database, "x") == "y"
    # Once more among all members, of which c has the lower number.
    rank(database, "xinhua", 20, ann)
    assert (preferred(database), preferred(database, "x")) == ("b", "y")
    check_preferred(database)


def test_decisions_change_it(database: Database, ann: int) -> None:
    """Wrong takes a copy out, undoing brings it back; right and skip leave it."""
    rank(database, "xinhua", 10, ann)
    rank(database, "blog", 5, ann)
    take_in(database, flagged("b", "a", sources=("xinhua", "wire")), flagged("c", "a", sources=("blog", "wire")))
    wrong = write(database, decide, [1], ann, "wrong", "", NOW_MS, 10).review_ids
    assert preferred(database) == "c"
    assert write(database, undo, wrong, ann, NOW_MS) == wrong
    assert preferred(database) == "b"
    write(database, decide, [1], ann, "right", "", NOW_MS, 10)
    write(database, decide, [2], ann, "skip", "", NOW_MS, 10)
    assert preferred(database) == "b"
    check_preferred(database)


def test_near_misses_and_unknown_sources_are_no_members(database: Database, ann: int) -> None:
    """A source that is read later counts from then on: of a copy, and of the original."""
    rank(database, "xinhua", 10, ann)
    take_in(database, flagged("b", "a", sources=(None, None)))
    add_missed(database, near_miss("n", "a"))
    assert preferred(database) == "a"

    def fill(source: str, original_source: str) -> None:
        missing = read(database, sources_missing, 9)
        rows = [FlagSources(row.flag_id, source, original_source) for row in missing]
        found = write(database, set_sources, rows)
        write(database, refresh_preferred, MemberChanges(stories=found), NOW_MS)

    fill("xinhua", "wire")
    assert preferred(database) == "b"
    take_in(database, flagged("y", "x", sources=("xinhua", None)))
    assert preferred(database, "x") == "y"
    fill("xinhua", "xinhua")
    assert preferred(database, "x") == "x"
    check_preferred(database)


def test_the_first_flag_to_name_the_source_of_an_original(database: Database, ann: int) -> None:
    """It may be of a story whose root only a cluster has named so far."""
    rank(database, "xinhua", 10, ann)
    rank(database, "blog", 5, ann)
    rank(database, "post", -5, ann)
    take_in(database, flagged("c", "b", cluster="a", sources=("blog", "blog")))
    take_in(database, flagged("z", "y", cluster="x", sources=("wire", "blog")))
    assert (preferred(database), preferred(database, "x")) == ("c", "x")
    take_in(database, flagged("d", "a", sources=("wire", "xinhua"), at_ms=NOW_MS + 4))
    assert preferred(database) == "a"
    take_in(database, flagged("w", "x", sources=("wire", "post"), at_ms=NOW_MS + 4))
    assert preferred(database, "x") == "z"
    check_preferred(database)


def test_a_released_article_has_its_own_source(database: Database, ann: int) -> None:
    """As the original of its copies, which it takes along."""
    rank(database, "xinhua", 10, ann)
    rank(database, "blog", 5, ann)
    wrong = flagged("b", "a", sources=("xinhua", "wire"))
    take_in(database, wrong, flagged("c", "b", cluster="a", sources=("blog", "xinhua")))
    assert preferred(database) == "b"
    take_in(database, released(wrong))
    assert preferred(database, "b") == "b"
    assert preferred(database) == "a"
    other = flagged("y", "x", sources=("blog", "wire"))
    take_in(database, other, flagged("z", "y", cluster="x", sources=("xinhua", "blog")))
    assert preferred(database, "x") == "z"
    take_in(database, released(other))
    assert (preferred(database, "y"), preferred(database, "x")) == ("z", "x")
    check_preferred(database)


def test_without_ranks_nothing_is_looked_at(database: Database) -> None:
    """One look at an empty table of a few rows; without changes not even that."""
    added = take_in(database, flagged("b", "a"))
    with executions(database) as executed:
        assert write(database, update_preferred, added.members) == set()
    assert [each for each in executed if "FROM" in each.sql] == [executed[-1]]
    assert "FROM source_ranks" in executed[-1].sql
    with executions(database) as executed:
        write(database, update_preferred, MemberChanges())
    assert not any("FROM" in each.sql for each in executed)


def test_a_copy_that_joins_costs_the_same_in_any_story(database: Database, ann: int) -> None:
    """The copies that are there already are not looked at: a flood may have a hundred thousand."""
    rank(database, "xinhua", 10, ann)
    take_in(database, *(flagged(f"copy-{n}", "a", sources=("xinhua", "wire")) for n in range(9)))
    with executions(database) as executed:
        take_in(database, flagged("late", "a", sources=("xinhua", "wire"), at_ms=NOW_MS + 1))
    assert preferred(database) == "copy-0"
    assert not any("max(" in each.sql and "source_ranks" in each.sql for each in executed)


def test_few_stories_are_updated_with_the_rank(database: Database, ann: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many in portions by a thread, which goes on where another one has stopped."""
    monkeypatch.setattr(rank_changes, "FLAGS_AT_ONCE_MAX", 3)
    monkeypatch.setattr(rank_changes, "STORIES_AT_ONCE", 2)
    for number in range(3):
        take_in(database, flagged(f"copy-{number}", f"root-{number}", sources=("xinhua", "wire")))
    rank(database, "xinhua", 10, ann)
    assert [each.applied_to for each in read(database, listed_ranks)] == [None]
    for number in range(3, 5):
        take_in(database, flagged(f"copy-{number}", f"root-{number}", sources=("xinhua", "wire")))
    rank(database, "xinhua", -10, ann)
    assert [each.applied_to for each in read(database, listed_ranks)] == [0]
    assert preferred(database, "root-0") == "copy-0"
    assert write(database, apply_ranks, NOW_MS)
    assert [preferred(database, f"root-{n}") for n in range(5)] == ["root-0", "root-1", "copy-2", "copy-3", "copy-4"]
    # Another change in the meantime: all stories get both.
    rank(database, "wire", -20, ann)
    assert apply_all(database) == 3
    assert [preferred(database, f"root-{n}") for n in range(5)] == [f"copy-{n}" for n in range(5)]
    assert [each.applied_to for each in read(database, listed_ranks)] == [None, None]
    check_preferred(database)


def test_a_removed_rank_leaves_no_story_behind(database: Database, ann: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row stays until then, so that nobody takes the ranks for gone."""
    monkeypatch.setattr(rank_changes, "FLAGS_AT_ONCE_MAX", 1)
    for number in range(3):
        take_in(database, flagged(f"copy-{number}", f"root-{number}", sources=("xinhua", "wire")))
    rank(database, "xinhua", 10, ann)
    apply_all(database)
    assert preferred(database, "root-2") == "copy-2"
    unrank(database, "xinhua", {})
    assert [each.is_removed for each in read(database, listed_ranks)] == [True]
    apply_all(database)
    assert read(database, listed_ranks) == []
    assert [preferred(database, f"root-{n}") for n in range(3)] == [f"root-{n}" for n in range(3)]


def test_ranks_of_the_configuration(database: Database, ann: int) -> None:
    """A start takes over what has changed; what people have set stays, and gives way when it is removed."""
    take_in(database, flagged("b", "a", sources=("xinhua", "wire")), flagged("c", "a", sources=("blog", "wire")))
    configured = {"xinhua": 10, "nobody so far": 3, "none": 0}
    assert write(database, configure_ranks, configured, NOW_MS) == 2
    assert preferred(database) == "a"
    apply_all(database)
    assert preferred(database) == "b"
    assert write(database, configure_ranks, configured, NOW_MS) == 0
    rank(database, "xinhua", -1, ann)
    assert preferred(database) == "a"
    assert write(database, configure_ranks, {"xinhua": 20, "blog": 1}, NOW_MS) == 2
    apply_all(database)
    assert preferred(database) == "c"
    assert {each.source: (each.rank, each.person) for each in read(database, listed_ranks)} == {
        "blog": (1, None),
        "xinhua": (-1, "Ann"),
    }
    unrank(database, "xinhua", {"xinhua": 20, "blog": 1})
    assert preferred(database) == "b"
    assert write(database, configure_ranks, {}, NOW_MS) == 2
    apply_all(database)
    assert (preferred(database), read(database, listed_ranks)) == ("a", [])


def test_a_member_that_has_left_is_not_shown(database: Database, ann: int) -> None:
    """While ranks are applied, a story may still name it."""
    rank(database, "xinhua", 10, ann)
    take_in(database, flagged("b", "a", sources=("xinhua", "wire")))
    with database.write_transaction() as connection:
        connection.execute(update(FLAGS).values(state="released"))
    assert read(database, preferred_members, [1, 99]) == {1: RankedMember("a", "aa", "wire", None)}


def test_sources_of_stories_are_counted(database: Database) -> None:
    """Each once, with that of the original; not those of copies that are no longer in force, and not no source."""
    take_in(
        database,
        flagged("b", "a", sources=("blog", "wire")),
        flagged("c", "a", sources=("blog", "wire")),
        flagged("d", "a", sources=("wire", "wire")),
        flagged("e", "a", sources=("", "wire")),
        flagged("f", "a", sources=(None, None)),
        released(flagged("g", "a", sources=("gone", "wire"))),
        flagged("y", "x", sources=("", "")),
    )
    names = {1: {"blog", "wire"}, 2: set(), 99: set()}
    assert read(database, stories.source_names, [1, 2, 99]) == names
    story = read(database, stories.story, 1)
    assert story is not None
    assert read(database, stories.count_sources, [story], 5) == {1: Count(2)}
    assert read(database, stories.count_sources, [story], 1) == {1: Count(2, is_exact=False)}


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from(SOURCES), st.integers(-2, 2)),
        st.tuples(st.just("remove"), st.sampled_from(SOURCES), st.just(0)),
        st.tuples(st.just("configure"), st.sampled_from(SOURCES), st.integers(-2, 2)),
        st.tuples(st.just("apply"), st.just(""), st.just(0)),
        st.tuples(st.just("wrong"), st.just(""), st.integers(0, 20)),
        st.tuples(st.just("undo"), st.just(""), st.integers(0, 5)),
        st.tuples(st.just("fill"), st.sampled_from(SOURCES), st.just(0)),
    ),
    max_size=4,
)


@dataclass
class Moderating:
    """Somebody who ranks sources and decides, with the ranks that are configured."""

    database: Database
    ann: int
    configured: dict[str, int] = field(default_factory=dict)
    reviews: list[int] = field(default_factory=list)

    def change(self, kind: str, source: str, number: int) -> None:
        """Do something of a kind."""
        getattr(self, f"_{kind}")(source, number)

    def _set(self, source: str, number: int) -> None:
        rank(self.database, source, number, self.ann)

    def _remove(self, source: str, _: int) -> None:
        unrank(self.database, source, self.configured)

    def _configure(self, source: str, number: int) -> None:
        self.configured[source] = number
        write(self.database, configure_ranks, self.configured, NOW_MS)

    def _apply(self, _: str, __: int) -> None:
        write(self.database, apply_ranks, NOW_MS)

    def _wrong(self, _: str, number: int) -> None:
        ids = flag_ids(self.database)
        wanted = [ids[number % len(ids)]] if ids else []
        self.reviews += write(self.database, decide, wanted, self.ann, "wrong", "", NOW_MS, 10).review_ids

    def _undo(self, _: str, number: int) -> None:
        write(self.database, undo, self.reviews[number : number + 1], self.ann, NOW_MS)

    def _fill(self, source: str, _: int) -> None:
        missing = read(self.database, sources_missing, 2)
        if missing:
            rows = [FlagSources(row.flag_id, source, source) for row in missing]
            stories_of = write(self.database, set_sources, rows)
            write(self.database, refresh_preferred, MemberChanges(stories=stories_of), NOW_MS)


@EXAMPLES
@given(
    batches=streams(),
    changes=st.lists(CHANGES, min_size=8, max_size=8),
    sources=st.lists(st.sampled_from((*SOURCES, "", None)), min_size=len(VERSIONS), max_size=len(VERSIONS)),
    at_once=st.sampled_from([0, 2, 500]),
)
def test_it_is_that_of_all_members_whatever_the_order(
    database: Database,
    batches: list[list[Verdict]],
    changes: list[list[tuple[str, str, int]]],
    sources: list[str | None],
    at_once: int,
) -> None:
    """Flags, releases, ranks, decisions and sources come in any order, and between the portions of an update."""
    cleared(database)
    moderating = Moderating(database, add_person(database, "Ann", "admin").person_id)
    of_version = dict(zip(VERSIONS, sources, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_changes, "FLAGS_AT_ONCE_MAX", at_once)
        patch.setattr(rank_changes, "STORIES_AT_ONCE", 2)
        for batch, wanted in zip(batches, changes, strict=False):
            take_in(database, *(_with_sources(verdict, of_version) for verdict in batch))
            for each in wanted:
                moderating.change(*each)
        apply_all(database)
    check_preferred(database)
    with database.read_connection() as connection:
        pending = select(func.count()).where(SOURCE_RANKS.c.applied_to.is_not(None))
        assert connection.execute(pending).scalar_one() == 0


def _with_sources(verdict: Verdict, of_version: Mapping[tuple[str, str], str | None]) -> Verdict:
    released_from = verdict.released
    original = (
        (str(verdict.duplicate_of), str(verdict.duplicate_of_version))
        if isinstance(released_from, msgspec.UnsetType) or released_from is None
        else (released_from.duplicate_of, released_from.duplicate_of_version)
    )
    found = [of_version[verdict.id, str(verdict.version)], of_version[original]]
    source, original_source = (msgspec.UNSET if name is None else name for name in found)
    return msgspec.structs.replace(verdict, source=source, original_source=original_source)
