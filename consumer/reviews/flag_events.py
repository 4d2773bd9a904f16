"""Stores the events of consumers: flags and their releases.

The result depends on which events came, not on their order or on how often they came. Reading a topic again from the
beginning yields the same stories, counts and states.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

import msgspec
from sqlalchemy import Connection, bindparam, case, select, update

from consumer.model.verdict import Verdict
from consumer.reviews.flag_row import IN_FORCE, UNDECIDED, State, add_to_tally
from consumer.reviews.kinds.rules import Kind
from consumer.reviews.lineage import ArticleVersion, detach_copies_of_released, known_flags
from consumer.reviews.new_flags import CERTAINTY_MIN, NewEntry, insert_new
from consumer.reviews.portable import Lock, acquire_lock, among, is_storable_id, portions
from consumer.reviews.ranking.preferred import MemberChanges
from consumer.reviews.sources import source_ids
from consumer.reviews.story_changes import CountChange, change_stories, store_root_sources
from consumer.reviews.tables import FLAGS, STORIES
from consumer.text.timestamps import since_1970_ms

_BITS_A_DIGIT: Final = 4

_Member = TypeVar("_Member")


class IntakeCounts(NamedTuple):
    """The result of storing events: the numbers of new flags, new releases, events known before, and other events.

    ``stories`` are the stories with new flags, or with releases whose flags were not stored yet. ``grown`` are the
    stories that may have more copies than before, including those that copies of other stories moved into. ``new`` are
    the new flags, each with its story, and ``flag_ids`` their ids, both including flags that came together with their
    release. ``members`` has the changes to the copies in force.
    """

    flags: int
    releases: int
    known: int
    others: int
    stories: set[int]
    grown: set[int]
    new: list[tuple[Verdict, int]]
    flag_ids: list[int]
    members: MemberChanges = MemberChanges()


class MissingSources(NamedTuple):
    """A flag with an unknown source: its own, its original's, or both."""

    flag_id: int
    article_id: str
    version: str
    original_id: str
    original_version: str


class FlagSources(NamedTuple):
    """The sources of a flag, read from the store."""

    flag_id: int
    source: str
    original_source: str


def add_events(connection: Connection, events: Sequence[Verdict]) -> IntakeCounts:
    """Store events, and return what they changed. Repeated events change nothing."""
    flags: dict[ArticleVersion, NewEntry] = {}
    verdicts: dict[ArticleVersion, Verdict] = {}
    releases: dict[ArticleVersion, tuple[NewEntry, int]] = {}
    others = 0
    for event in events:
        read = _read(event)
        if read is None:
            others += 1
            continue
        new, released_ms = read
        if released_ms is None:
            flags.setdefault(new.copy, new)
            verdicts.setdefault(new.copy, event)
        else:
            releases.setdefault(new.copy, (new, released_ms))
    if not flags and not releases:
        return IntakeCounts(0, 0, 0, others, set(), set(), [], [])
    acquire_lock(connection, Lock.FLAGS)
    # A flag has more data than its release.
    rows = {**{copy: new for copy, (new, _) in releases.items()}, **flags}
    inserted, moved = insert_new(connection, list(rows.values()))
    released, detached = _release(connection, {copy: released_ms for copy, (_, released_ms) in releases.items()})
    new_flags = [copy for copy in flags if copy in inserted]
    new_ids = list(inserted.values())
    stories = _stories_of(connection, new_ids)
    return IntakeCounts(
        flags=len(new_flags),
        releases=len(released),
        known=len(events) - others - len(new_flags) - len(released),
        others=others,
        stories=set(stories.values()),
        grown=set(stories.values()) | moved | detached,
        new=[(verdicts[copy], stories[inserted[copy]]) for copy in new_flags],
        flag_ids=[inserted[copy] for copy in new_flags],
        members=MemberChanges(joined=new_ids, left=list(released.values()), stories=moved | detached),
    )


def sources_missing(connection: Connection, limit: int) -> list[MissingSources]:
    """Return up to ``limit`` flags with an unknown source."""
    columns = select(
        FLAGS.c.flag_id, FLAGS.c.article_id, FLAGS.c.version, FLAGS.c.original_id, FLAGS.c.original_version
    )
    found: dict[int, MissingSources] = {}
    for column in (FLAGS.c.source_id, FLAGS.c.original_source_id):
        for row in connection.execute(columns.where(column.is_(None)).limit(limit)):
            found[row.flag_id] = MissingSources(*row)
    return list(found.values())[:limit]


def set_sources(connection: Connection, rows: Sequence[FlagSources]) -> set[int]:
    """Store the sources of flags whose sources are unknown.

    Return the stories that contain these flags, or whose root is one of their articles or originals.
    """
    acquire_lock(connection, Lock.FLAGS)
    numbers = source_ids(connection, {name for row in rows for name in (row.source, row.original_source)})
    known = {FLAGS.c.source_id: [(row.flag_id, row.source) for row in rows]}
    known[FLAGS.c.original_source_id] = [(row.flag_id, row.original_source) for row in rows]
    for column, names in known.items():
        # Keep a source that is known: the article may have left the store in the meantime.
        statement = update(FLAGS).where(FLAGS.c.flag_id == bindparam("this"), column.is_(None))
        values = [{"this": flag_id, "number": numbers[name]} for flag_id, name in names]
        connection.execute(statement.values({column: bindparam("number")}), values)
    stories: set[int] = set()
    columns = select(
        FLAGS.c.story_id, FLAGS.c.article_id, FLAGS.c.source_id, FLAGS.c.original_id, FLAGS.c.original_source_id
    )
    for portion in portions([row.flag_id for row in rows]):
        found = connection.execute(columns.where(among(connection, FLAGS.c.flag_id, portion))).all()
        sources = {row.article_id: row.source_id for row in found}
        sources |= {row.original_id: row.original_source_id for row in found}
        store_root_sources(connection, sources)
        # A version that is split off is also a root, even if no flag names it as its original.
        stories.update(row.story_id for row in found)
        of_roots = select(STORIES.c.story_id).where(STORIES.c.root_id.in_(sources))
        stories.update(connection.execute(of_roots).scalars())
    return stories


def _read(verdict: Verdict) -> tuple[NewEntry, int | None] | None:
    """Return the flag that an event describes, and when it was released.

    Return None if the event is not about a flag, or names an id that cannot be stored.
    """
    released = _unless_unset(verdict.released)
    if released is not None:
        original, original_version = released.duplicate_of, released.duplicate_of_version
    elif verdict.outcome == "duplicate" and verdict.duplicate_of and verdict.duplicate_of_version:
        original, original_version = verdict.duplicate_of, verdict.duplicate_of_version
    else:
        return None
    if not verdict.version or not all(map(is_storable_id, (verdict.id, verdict.version, original, original_version))):
        return None
    cluster = verdict.cluster if released is None and verdict.cluster and is_storable_id(verdict.cluster) else None
    new = NewEntry(
        kind="flag",
        copy=(verdict.id, verdict.version),
        original=(original, original_version),
        cluster=cluster,
        source=_unless_unset(verdict.source),
        original_source=_unless_unset(verdict.original_source),
        similarity=verdict.similarity,
        distance=verdict.distance,
        certainty=_certainty(verdict),
        sampled_in=1.0,
        truncated=verdict.truncated,
        arrived_ms=_time_ms(verdict.arrived_at),
        decided_ms=_time_ms(verdict.decided_at if released is None else released.flagged_at),
    )
    return new, None if released is None else _time_ms(verdict.decided_at)


def _unless_unset(member: _Member | msgspec.UnsetType) -> _Member | None:
    """Return a member of an event, or None if it is unset."""
    return None if isinstance(member, msgspec.UnsetType) else member


def _certainty(verdict: Verdict) -> float:
    if verdict.similarity is not None:
        return verdict.similarity
    # Without verification, even near fingerprints are uncertain.
    if verdict.distance is None or not verdict.fingerprint:
        return CERTAINTY_MIN
    bits = len(verdict.fingerprint) * _BITS_A_DIGIT
    return max(CERTAINTY_MIN, -(verdict.distance + 1) / (bits + 1))


def _time_ms(timestamp: str) -> int:
    return since_1970_ms(datetime.fromisoformat(timestamp))


def _release(
    connection: Connection, release_times: dict[ArticleVersion, int]
) -> tuple[dict[ArticleVersion, int], set[int]]:
    """Mark flags as released.

    Return the ids of the newly released flags by version, and the stories that their copies joined or left.
    """
    known = known_flags(connection, list(release_times), "flag")
    new = {copy: flag for copy, flag in known.items() if flag.released_ms is None}
    if not new:
        return {}, set()
    state = case((FLAGS.c.state == "wrong", "wrong"), else_="released")
    connection.execute(
        update(FLAGS).where(FLAGS.c.flag_id == bindparam("this")).values(state=state, released_ms=bindparam("at_ms")),
        [{"this": flag.flag_id, "at_ms": release_times[copy]} for copy, flag in new.items()],
    )
    stories: dict[int, CountChange] = {}
    states: Counter[tuple[Kind, State]] = Counter()
    for flag in new.values():
        stories[flag.story_id] = stories.get(flag.story_id, CountChange()) + CountChange(
            copies=-(flag.state in IN_FORCE), open_copies=-(flag.state in UNDECIDED)
        )
        if flag.state != "wrong":
            states["flag", flag.state] -= 1
            states["flag", "released"] += 1
    change_stories(connection, stories)
    add_to_tally(connection, states)
    detached = detach_copies_of_released(connection, [(copy, flag.flag_id) for copy, flag in new.items()])
    return {copy: flag.flag_id for copy, flag in new.items()}, detached


def _stories_of(connection: Connection, flag_ids: Sequence[int]) -> dict[int, int]:
    """Return the story of each flag."""
    found: dict[int, int] = {}
    columns = select(FLAGS.c.flag_id, FLAGS.c.story_id)
    for portion in portions(flag_ids):
        # By number alone: with a condition on the state, SQLite would read all flags in that state.
        rows = connection.execute(columns.where(among(connection, FLAGS.c.flag_id, portion)))
        found |= {row.flag_id: row.story_id for row in rows}
    return found
