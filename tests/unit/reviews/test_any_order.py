"""Whatever order events come in, and how often: the stories are those of all events together."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Final, Literal, get_args

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import ColumnElement, Connection, func, insert, select

from consumer.model.verdict import Verdict
from consumer.reviews import people, queue, stories
from consumer.reviews.database import Database
from consumer.reviews.decisions import Decision, decide, undo
from consumer.reviews.kinds.rules import Kind
from consumer.reviews.kinds.side_entries import add_side_entries
from consumer.reviews.repairs import merge, split
from consumer.reviews.repairs.outcome import RepairRefused
from consumer.reviews.sources import source_ids
from consumer.reviews.standing.application import apply
from consumer.reviews.standing.standing_decisions import NewStandingDecision, StandingOutcome, begin, in_force
from consumer.reviews.tables import FLAGS, REVIEWS, STORIES, STORY_MERGES, STORY_SPLITS
from tests.examples import examples
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_person,
    check_counts,
    cleared,
    denied,
    flag_ids,
    flagged,
    number_of,
    read,
    released,
    write,
)

Version = tuple[str, str]
VERSIONS: Final[list[Version]] = [(article, version) for article in "abcdefgh" for version in ("00", "11")]
EXAMPLES = settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@st.composite
def streams(draw: st.DrawFn, *, banks: bool = True) -> list[list[Verdict]]:
    """Batches of events: of flags on earlier versions, of releases of some, in any order, and some of them again."""
    events: list[Verdict] = []
    for number in draw(st.sets(st.integers(1, len(VERSIONS) - 1), min_size=1)):
        article, version = VERSIONS[number]
        original, original_version = VERSIONS[draw(st.integers(0, number - 1))]
        cluster = draw(st.sampled_from([original, VERSIONS[draw(st.integers(0, number - 1))][0]]))
        flag = flagged(
            article,
            original,
            version=version,
            original_version=original_version,
            cluster=cluster,
            at_ms=NOW_MS + draw(st.integers(0, 50)),
            banks=(denied("offer"),) if banks and draw(st.booleans()) else msgspec.UNSET,
        )
        events.append(flag)
        if draw(st.integers(0, 3)) == 0:
            events.append(released(flag))
    events += draw(st.lists(st.sampled_from(events), max_size=10))
    shuffled = draw(st.permutations(events))
    ends = sorted(draw(st.sets(st.integers(1, len(shuffled)), max_size=6)) | {len(shuffled)})
    return [shuffled[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def roots_of(events: Sequence[Verdict], splits: Collection[Version] = ()) -> dict[Version, str]:
    """The root of each flag, from all events at once and the versions that are split off."""
    flags = {_key(event): event for event in events if event.outcome == "duplicate"}
    gone = {_key(event) for event in events if event.outcome == "unique"} | set(splits)

    def root(key: Version) -> str:
        if key in splits:
            return key[0]
        flag = flags[key]
        original = (str(flag.duplicate_of), str(flag.duplicate_of_version))
        if original in gone:
            return original[0]
        return root(original) if original in flags else str(flag.cluster)

    return {key: root(key) for key in flags}


def _key(event: Verdict) -> Version:
    return event.id, str(event.version)


def stored_roots(database: Database) -> dict[Version, str]:
    """The root of each flag, as it is stored."""
    return roots_of_kind(database, "flag")


def roots_of_kind(database: Database, kind: Kind) -> dict[Version, str]:
    """The root of the story of each entry of a kind, as it is stored."""
    query = select(FLAGS.c.article_id, FLAGS.c.version, STORIES.c.root_id).where(FLAGS.c.kind == kind)
    in_story = query.join(STORIES, STORIES.c.story_id == FLAGS.c.story_id)
    with database.read_connection() as connection:
        return {(row.article_id, row.version): row.root_id for row in connection.execute(in_story)}


@EXAMPLES
@given(batches=streams())
def test_stories_are_those_of_all_events_together(database: Database, batches: list[list[Verdict]]) -> None:
    """Members, roots and counts, after chains, merges, releases and repeats in any order."""
    cleared(database)
    added = []
    for batch in batches:
        sides_first = len(batch) % 2
        if sides_first:
            write(database, add_side_entries, batch)
        added.append(add(database, *batch))
        if not sides_first:
            write(database, add_side_entries, batch)
    events = [event for batch in batches for event in batch]
    roots = roots_of(events)
    assert stored_roots(database) == roots
    released_keys = {_key(event) for event in events if event.outcome == "unique"}
    # What an article matches goes with the story of the article.
    matching = {_key(event) for event in events if event.banks}
    own = {key: key[0] if key in released_keys else roots[key] for key in matching}
    assert roots_of_kind(database, "bank_match") == own
    copies = Counter(root for key, root in roots.items() if key not in released_keys)
    with database.read_connection() as connection:
        counted = {row.root_id: row.copies for row in connection.execute(select(STORIES))}
    assert {root: number for root, number in counted.items() if number} == dict(copies)
    assert sum(sum(each[:4]) for each in added) == len(events)
    assert sum(each.releases for each in added) == len(released_keys)
    check_counts(database)


Step = Literal["split", "merge", "undo split", "undo merge"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
REPAIRS = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 40), st.integers(0, 40)), max_size=4)


@dataclass
class Repaired:
    """The repairs in force: the versions that are split off, and the root that each merged one leads to."""

    database: Database
    person: people.Person
    splits: set[Version] = field(default_factory=set)
    merges: dict[str, str] = field(default_factory=dict)

    def repair(self, step: Step, first: int, second: int) -> None:
        """Do something that may be refused."""
        with suppress(RepairRefused):
            if step == "split":
                self.splits.add(self._flag(split.split, first))
            elif step == "undo split":
                self.splits.discard(self._flag(split.undo_split, first))
            elif step == "merge":
                merged, into = (self._chosen(STORIES.c.story_id, number) for number in (first, second))
                done = write(self.database, merge.merge, merged, into, self.person, NOW_MS)
                self.merges[done.story.root_id] = done.into.root_id
            else:
                merged = self._chosen(STORIES.c.story_id, first)
                done = write(self.database, merge.undo_merge, merged, self.person, NOW_MS)
                del self.merges[done.story.root_id]

    def check(self, events: Sequence[Verdict]) -> None:
        """Check that each flag belongs, and is shown, where events and repairs say."""
        home = STORIES.alias("home")
        query = select(FLAGS.c.article_id, FLAGS.c.version, home.c.root_id.label("home"), STORIES.c.root_id)
        query = query.join_from(FLAGS, home, home.c.story_id == func.coalesce(FLAGS.c.home_id, FLAGS.c.story_id))
        with self.database.read_connection() as connection:
            rows = connection.execute(query.join(STORIES, STORIES.c.story_id == FLAGS.c.story_id)).all()
            assert connection.execute(select(FLAGS).where(FLAGS.c.home_id == FLAGS.c.story_id)).all() == []
        roots = roots_of(events, self.splits)
        assert {(row.article_id, row.version): row.home for row in rows} == roots
        assert {(row.article_id, row.version): row.root_id for row in rows} == {
            key: self._head(root) for key, root in roots.items()
        }
        check_counts(self.database)

    def _head(self, root: str) -> str:
        while root in self.merges:
            root = self.merges[root]
        return root

    def _flag(self, repair: Callable[[Connection, int, people.Person, int], int], number: int) -> Version:
        flag_id = self._chosen(FLAGS.c.flag_id, number)
        write(self.database, repair, flag_id, self.person, NOW_MS)
        (flag,) = read(self.database, queue.flags, [flag_id])
        return flag.article_id, flag.version

    def _chosen(self, column: ColumnElement[int], number: int) -> int:
        with self.database.read_connection() as connection:
            found = connection.execute(select(column).order_by(column)).scalars().all()
        return found[number % len(found)]


@EXAMPLES
@given(batches=streams(banks=False), repairs=st.lists(REPAIRS, min_size=7, max_size=7))
def test_repairs_hold_in_any_order(
    database: Database, batches: list[list[Verdict]], repairs: list[list[tuple[Step, int, int]]]
) -> None:
    """Splits, merges and their undoing come between batches, and all events come again."""
    cleared(database)
    repaired = Repaired(database, add_person(database, "Ann"))
    for batch, steps in zip(batches, repairs, strict=False):
        add(database, *batch)
        for made in steps:
            repaired.repair(*made)
            check_counts(database)
    events = [event for batch in batches for event in batch]
    repaired.check(events)
    for event in reversed(events):
        add(database, event)
    repaired.check(events)
    for merged in list(repaired.merges):
        story = read(database, stories.story_of_article, merged)
        assert story is not None
    for step, number in product(STEPS[2:], range(len(VERSIONS))):
        repaired.repair(step, number, 0)
    assert (repaired.splits, repaired.merges) == (set(), {})
    repaired.check(events)


@EXAMPLES
@given(
    batches=streams(banks=False),
    splits=st.sets(st.sampled_from(VERSIONS)),
    merges=st.dictionaries(st.integers(1, 7), st.integers(0, 6)),
)
def test_repairs_hold_for_flags_that_come_later(
    database: Database, batches: list[list[Verdict]], splits: set[Version], merges: dict[int, int]
) -> None:
    """Whatever flags there were when they were made: their rows are there before the first event."""
    cleared(database)
    ann = add_person(database, "Ann")
    letters = "abcdefgh"
    repaired = Repaired(database, ann, splits, {letters[a]: letters[min(a - 1, b)] for a, b in merges.items()})
    by = {"person_id": ann.person_id, "at_ms": NOW_MS}
    rows = [{"article_id": article, "version": version, "from_root_id": "", **by} for article, version in splits]
    roots = [{"root_id": root, "into_root_id": into, **by} for root, into in repaired.merges.items()]
    with database.write_transaction() as connection:
        for table, values in ((STORY_SPLITS, rows), (STORY_MERGES, roots)):
            if values:
                connection.execute(insert(table), values)
    for batch in batches:
        add(database, *batch)
    repaired.check([event for batch in batches for event in batch])


Choice = Decision | Literal["undo"]
CHOICES: Final[tuple[Choice, ...]] = ("right", "wrong", "skip", "undo")
DECISIONS = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(CHOICES), st.sampled_from([0, 1])),
    max_size=4,
)


@EXAMPLES
@given(batches=streams(), decisions=st.lists(DECISIONS, min_size=8, max_size=8))
def test_counts_hold_while_people_decide(
    database: Database,
    batches: list[list[Verdict]],
    decisions: list[list[tuple[int, Choice, int]]],
) -> None:
    """Decisions and their undoing come between batches; stories do not depend on them."""
    cleared(database)
    both = [write(database, people.add_person, name, "reviewer", NOW_MS).person_id for name in "xy"]
    reviews: list[int] = []
    for batch, choices in zip(batches, decisions, strict=False):
        add(database, *batch)
        ids = flag_ids(database)
        for number, choice, who in choices:
            if choice == "undo":
                for review in reviews[number : number + 1]:
                    write(database, undo, [review], both[who], NOW_MS)
            else:
                wanted = [ids[number % len(ids)], ids[-1]]
                decided = write(database, decide, wanted, both[who], choice, "", NOW_MS, 10)
                reviews += decided.review_ids
        check_counts(database)
    done = [event for batch in batches[: len(decisions)] for event in batch]
    assert stored_roots(database) == roots_of_stored(done)


@EXAMPLES
@given(batches=streams(), outcome=st.sampled_from(["right", "wrong"]))
def test_counts_hold_while_standing_decisions_decide(
    database: Database, batches: list[list[Verdict]], outcome: StandingOutcome
) -> None:
    """Stories do not depend on them, and no flag is decided twice, however often its event comes."""
    cleared(database)
    ann = write(database, people.add_person, "Ann", "reviewer", NOW_MS).person_id
    sources = write(database, source_ids, "ab")
    new = NewStandingDecision(outcome, ann, NOW_MS + 9, "", sources=(sources["a"], sources["b"]))
    write(database, begin, new, NOW_MS)
    decided = 0
    for batch in batches:
        added = add(database, *batch)
        decided += write(database, apply, added.flag_ids, NOW_MS, 10).get(outcome, 0)
        check_counts(database)
    assert stored_roots(database) == roots_of([event for batch in batches for event in batch])
    assert [each.flags for each in read(database, in_force, NOW_MS)] == [decided]
    assert number_of(database, REVIEWS) == decided


def roots_of_stored(events: Sequence[Verdict]) -> dict[Version, str]:
    """The roots where only a part of the events has come: what is known from its release alone has no cluster."""
    flags = [event for event in events if event.outcome == "duplicate"]
    known = {_key(event) for event in flags}
    only_released = [event for event in events if event.outcome == "unique" and _key(event) not in known]
    made = [
        flagged(
            event.id,
            event.released.duplicate_of,  # type: ignore[union-attr]
            version=str(event.version),
            original_version=event.released.duplicate_of_version,  # type: ignore[union-attr]
        )
        for event in only_released
    ]
    return roots_of([*events, *made])
