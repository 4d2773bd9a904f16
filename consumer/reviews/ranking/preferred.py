"""The preferred member of a story: the article that represents it.

The members are the original and the copies in force. The member whose source has the highest rank is preferred. Ties go
to the original, then to the copy that arrived first. The order of events does not matter.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, bindparam, func, literal, select, update

from consumer.reviews.flag_row import IN_FORCE
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.portable import among, portions
from consumer.reviews.ranking.ranks import ranks_in_effect
from consumer.reviews.stories import root_version
from consumer.reviews.tables import FLAGS, SOURCE_RANKS, SOURCES, STORIES

UNRANKED: Final = 0
"""The rank of unknown sources, and of sources without a rank."""
# Times of events range from year 1 to year 9999.
_TIME_SHIFT: Final = 10**14
_TIME_SPAN: Final = 10**15
_RANK: Final[ColumnElement[int]] = func.coalesce(SOURCE_RANKS.c.rank, UNRANKED)
_CURRENT: Final = FLAGS.alias("current_members")
_ROOT_SOURCE: Final = SOURCES.alias("root_sources")


class MemberChanges(NamedTuple):
    """Flags that have joined or left the copies in force of their stories.

    In ``stories``, all members must be examined, because flags were moved into or out of them, or sources became known.
    """

    joined: Collection[int] = ()
    left: Collection[int] = ()
    stories: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class RankedMember:
    """A member of a story. ``flag_id`` is None for the original; version and source are None if unknown."""

    article_id: str
    version: str | None
    source: str | None
    flag_id: int | None


class _Candidate(NamedTuple):
    """A copy in force. The smallest candidate is preferred."""

    negated_rank: int
    arrived_ms: int
    article_id: str
    version: str
    flag_id: int


class _StoryPreference(NamedTuple):
    """A story and its preferred member, None for the original. ``is_valid``: the preferred flag is still a member."""

    preferred_id: int | None
    copies: int
    root_rank: int
    current: _Candidate | None
    is_valid: bool


def update_preferred(connection: Connection, changes: MemberChanges) -> set[int]:
    """Update the preferred members of stories after changes, and return the stories whose preferred member has changed.

    Without ranks, this does nothing. The caller must hold ``Lock.FLAGS``.
    """
    ranks = ranks_in_effect(connection) if any(changes) else {}
    if not ranks:
        return set()
    examined_in_full = {*changes.stories, *_stories_led_by(connection, changes.left)}
    joined = _joined_candidates(connection, changes.joined, ranks)
    chosen: dict[int, int | None] = {}
    for story_id, story in _preferences(connection, joined.keys() - examined_in_full, ranks).items():
        new = joined[story_id]
        # The new flags may reveal that the original has a negative rank. Then another copy may lead.
        others_may_lead = story.current is None and story.root_rank < UNRANKED and story.copies > len(new)
        if others_may_lead or not story.is_valid:
            examined_in_full.add(story_id)
            continue
        leading = min(new if story.current is None else [story.current, *new], default=None)
        leads = leading is not None and -leading.negated_rank > story.root_rank
        preferred_id = leading.flag_id if leading is not None and leads else None
        if preferred_id != story.preferred_id:
            chosen[story_id] = preferred_id
    return _save_preferred(connection, chosen) | update_preferred_in(connection, examined_in_full)


def update_preferred_in(connection: Connection, story_ids: Iterable[int]) -> set[int]:
    """Choose preferred members among all members of stories; return the stories whose preferred member has changed.

    The caller must hold ``Lock.FLAGS``.
    """
    chosen: dict[int, int | None] = {}
    for portion in portions(sorted(set(story_ids))):
        for row in connection.execute(_leading_query().where(among(connection, STORIES.c.story_id, portion))).all():
            preferred_id = None
            if row.leading is not None:
                arrived_ms = -row.leading % _TIME_SPAN - _TIME_SHIFT
                rank = (row.leading + arrived_ms + _TIME_SHIFT) // _TIME_SPAN
                if rank > row.root_rank:
                    values = {"story": row.story_id, "time": arrived_ms, "level": rank}
                    preferred_id = connection.execute(_tie_query(), values).scalar_one()
            if preferred_id != row.preferred_id:
                chosen[row.story_id] = preferred_id
    return _save_preferred(connection, chosen)


def preferred_members(connection: Connection, story_ids: Iterable[int]) -> dict[int, RankedMember]:
    """Return the preferred member of each of these stories."""
    found: dict[int, RankedMember] = {}
    for portion in portions(sorted(set(story_ids))):
        for row in connection.execute(_members_query(), {"these": portion}):
            # Until ranks are applied to all stories, the preferred member may have left its story.
            if row.flag_id is not None and row.member_of == row.story_id and row.state in IN_FORCE:
                found[row.story_id] = RankedMember(row.article_id, row.version, row.source, row.flag_id)
            else:
                found[row.story_id] = RankedMember(row.root_id, row.root_version, row.root_source, None)
    return found


def _stories_led_by(connection: Connection, flag_ids: Collection[int]) -> set[int]:
    """Return the stories whose preferred member is one of these flags."""
    found: set[int] = set()
    is_preferred = (STORIES.c.story_id == FLAGS.c.story_id) & (STORIES.c.preferred_id == FLAGS.c.flag_id)
    query = select(STORIES.c.story_id).join_from(FLAGS, STORIES, is_preferred)
    for portion in portions(sorted(flag_ids)):
        found.update(connection.execute(query.where(among(connection, FLAGS.c.flag_id, portion))).scalars())
    return found


def _joined_candidates(
    connection: Connection, flag_ids: Collection[int], ranks: Mapping[int, int]
) -> dict[int, list[_Candidate]]:
    """Return the stories that new flags affect, each with those new flags that are copies in force.

    A flag also affects the story of its original: it may be the first flag that names the source of the original.
    """
    found: dict[int, list[_Candidate]] = {}
    originals: set[str] = set()
    columns = select(
        FLAGS.c.original_id,
        FLAGS.c.story_id,
        FLAGS.c.state,
        FLAGS.c.kind,
        FLAGS.c.source_id,
        *_candidate_columns(FLAGS.c),
    )
    for portion in portions(sorted(flag_ids)):
        # Select by flag id only: with a condition on the state, SQLite would read all flags in that state.
        for row in connection.execute(columns.where(among(connection, FLAGS.c.flag_id, portion))):
            original_id, story_id, state, kind, source_id, *rest = row
            originals.add(original_id)
            of_story = found.setdefault(story_id, [])
            if state in IN_FORCE and kind in COPY_KINDS:
                of_story.append(_Candidate(-ranks.get(source_id, UNRANKED), *rest))
    of_roots = select(STORIES.c.story_id)
    for some in portions(sorted(originals)):
        for story_id in connection.execute(of_roots.where(among(connection, STORIES.c.root_id, some))).scalars():
            found.setdefault(story_id, [])
    return found


def _preferences(
    connection: Connection, story_ids: Collection[int], ranks: Mapping[int, int]
) -> dict[int, _StoryPreference]:
    query = select(
        STORIES.c.story_id,
        STORIES.c.preferred_id,
        STORIES.c.copies,
        STORIES.c.root_source_id,
        _CURRENT.c.story_id,
        _CURRENT.c.state,
        _CURRENT.c.source_id,
        *_candidate_columns(_CURRENT.c),
    ).outerjoin_from(STORIES, _CURRENT, _CURRENT.c.flag_id == STORIES.c.preferred_id)
    found: dict[int, _StoryPreference] = {}
    for portion in portions(sorted(story_ids)):
        for row in connection.execute(query.where(among(connection, STORIES.c.story_id, portion))):
            story_id, preferred_id, copies, root_source_id, member_of, state, source_id, *rest = row
            current = None if member_of is None else _Candidate(-ranks.get(source_id, UNRANKED), *rest)
            is_valid = preferred_id is None or (member_of == story_id and state in IN_FORCE)
            root_rank = ranks.get(root_source_id, UNRANKED)
            found[story_id] = _StoryPreference(preferred_id, copies, root_rank, current, is_valid)
    return found


def _candidate_columns(columns: Any) -> Sequence[ColumnElement[Any]]:  # noqa: ANN401  # of the table or an alias
    return columns.arrived_ms, columns.article_id, columns.version, columns.flag_id


def _save_preferred(connection: Connection, chosen: Mapping[int, int | None]) -> set[int]:
    if chosen:
        statement = update(STORIES).where(STORIES.c.story_id == bindparam("this"))
        rows = [{"this": story_id, "member": flag_id} for story_id, flag_id in chosen.items()]
        connection.execute(statement.values(preferred_id=bindparam("member")), rows)
    return set(chosen)


@cache
def _leading_query() -> Select[*tuple[Any, ...]]:
    """Return the query for stories with one number for the rank and arrival of their leading copy.

    Higher ranks give higher numbers, and so do earlier arrivals if ranks are equal. So one pass over index entries
    finds the leading copy.
    """
    in_force = (FLAGS.c.story_id == STORIES.c.story_id, FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.state.in_(IN_FORCE))
    number = _RANK * literal(_TIME_SPAN, BigInteger) - (FLAGS.c.arrived_ms + literal(_TIME_SHIFT, BigInteger))
    leading = select(func.max(number)).outerjoin_from(FLAGS, SOURCE_RANKS, _of_source()).where(*in_force)
    of_root = SOURCE_RANKS.alias("ranks_of_roots")
    return select(
        STORIES.c.story_id,
        STORIES.c.preferred_id,
        func.coalesce(of_root.c.rank, UNRANKED).label("root_rank"),
        leading.correlate(STORIES).scalar_subquery().label("leading"),
    ).outerjoin_from(STORIES, of_root, of_root.c.source_id == STORIES.c.root_source_id)


@cache
def _tie_query() -> Select[int]:
    """Return the query for a story's flag with a given arrival time and rank.

    Ties are broken by the article's id and version. Flag ids would depend on the order of events.
    """
    tied = (
        FLAGS.c.story_id == bindparam("story"),
        FLAGS.c.kind.in_(COPY_KINDS),
        FLAGS.c.state.in_(IN_FORCE),
        FLAGS.c.arrived_ms == bindparam("time"),
        bindparam("level") == _RANK,
    )
    query = select(FLAGS.c.flag_id).outerjoin_from(FLAGS, SOURCE_RANKS, _of_source()).where(*tied)
    return query.order_by(FLAGS.c.article_id, FLAGS.c.version).limit(1)


def _of_source() -> ColumnElement[bool]:
    return SOURCE_RANKS.c.source_id == FLAGS.c.source_id


@cache
def _members_query() -> Select[*tuple[Any, ...]]:
    """Return the query for stories with their originals and their preferred copies."""
    return (
        select(
            STORIES.c.story_id,
            STORIES.c.root_id,
            _ROOT_SOURCE.c.name.label("root_source"),
            root_version().label("root_version"),
            _CURRENT.c.flag_id,
            _CURRENT.c.story_id.label("member_of"),
            _CURRENT.c.state,
            _CURRENT.c.article_id,
            _CURRENT.c.version,
            SOURCES.c.name.label("source"),
        )
        .outerjoin_from(STORIES, _ROOT_SOURCE, _ROOT_SOURCE.c.source_id == STORIES.c.root_source_id)
        .outerjoin(_CURRENT, _CURRENT.c.flag_id == STORIES.c.preferred_id)
        .outerjoin(SOURCES, SOURCES.c.source_id == _CURRENT.c.source_id)
        .where(STORIES.c.story_id.in_(bindparam("these", expanding=True)))
    )
