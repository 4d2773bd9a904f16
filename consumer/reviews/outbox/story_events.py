"""Writes events of stories into the outbox, in the transaction that changes the story."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, or_, select, update

from consumer.model.story import StoryCause, StoryEvent, StoryMember, encode_story
from consumer.reviews.flag_row import IN_FORCE
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.lineage import ArticleVersion
from consumer.reviews.outbox.events import NewEvent, append
from consumer.reviews.portable import among, portions
from consumer.reviews.stories import root_version, source_names
from consumer.reviews.tables import FLAGS, SOURCES, STORIES
from consumer.text.timestamps import rfc3339

_TENFOLD = 10


class StoryChange(NamedTuple):
    """A change of a story, as ``StoryEvent`` describes it."""

    story_id: int
    cause: StoryCause
    person: str | None = None
    member: ArticleVersion | None = None
    into: int | None = None


class _Story(NamedTuple):
    """A story in its current state. ``preferred`` is its preferred member. Times are 0 without entries."""

    story_id: int
    root_id: str
    root_source: str | None
    copies: int
    open_copies: int
    told_copies: int
    first_ms: int
    last_ms: int
    preferred: StoryMember


def write_story_events(connection: Connection, changes: Sequence[StoryChange], now_ms: int) -> None:
    """Write an event for each change, with the story's current state. The caller must hold ``Lock.FLAGS``."""
    if changes:
        _append_events(connection, changes, _stories(connection, {change.story_id for change in changes}), now_ms)


def write_growth_events(connection: Connection, story_ids: Collection[int], now_ms: int) -> None:
    """Write events of stories that have begun, or whose number of copies has reached the next power of ten.

    Each size is announced once, even if copies leave and come back. The caller must hold ``Lock.FLAGS``.
    """
    grown = _stories(
        connection, sorted(story_ids), STORIES.c.copies > 0, STORIES.c.copies // _TENFOLD >= STORIES.c.told_copies
    )
    by_power: dict[int, list[int]] = {}
    changes: list[StoryChange] = []
    for story in grown.values():
        power = _TENFOLD ** (len(str(story.copies)) - 1)
        by_power.setdefault(power, []).append(story.story_id)
        if not story.told_copies:
            changes.append(StoryChange(story.story_id, "began"))
        if power > 1:
            changes.append(StoryChange(story.story_id, "grew"))
    for power, of_power in by_power.items():
        for portion in portions(of_power):
            told = update(STORIES).where(among(connection, STORIES.c.story_id, portion))
            connection.execute(told.values(told_copies=power))
    if changes:
        _append_events(connection, changes, grown, now_ms)


def _append_events(
    connection: Connection, changes: Sequence[StoryChange], stories: Mapping[int, _Story], now_ms: int
) -> None:
    sources = source_names(connection, stories)
    members = _members(connection, {change.member for change in changes if change.member is not None})
    at = rfc3339(now_ms)
    events: list[NewEvent] = []
    for change in changes:
        story = stories[change.story_id]
        member = None if change.member is None else members[change.member]
        events.append(_event(change, story, sources[change.story_id], member, at))
    append(connection, events, now_ms)


def _event(
    change: StoryChange, story: _Story, sources: frozenset[str], member: StoryMember | None, at: str
) -> NewEvent:
    def payload(number: int) -> bytes:
        first_at = rfc3339(story.first_ms) if story.first_ms else at
        return encode_story(
            StoryEvent(
                event=number,
                cause=change.cause,
                at=at,
                story=change.story_id,
                original=story.root_id,
                source=story.root_source,
                copies=story.copies,
                open_copies=story.open_copies,
                sources=len(sources),
                preferred=story.preferred,
                first_at=first_at,
                last_at=first_at if story.last_ms == story.first_ms else rfc3339(story.last_ms),
                person=change.person,
                member=member,
                into=change.into,
            )
        )

    return NewEvent("story", change.story_id, sources, payload)


def _stories(connection: Connection, story_ids: Iterable[int], *conditions: ColumnElement[bool]) -> dict[int, _Story]:
    """Return the stories among these that meet the conditions, ordered by id."""
    found: dict[int, _Story] = {}
    for portion in portions(sorted(story_ids)):
        named = among(connection, STORIES.c.story_id, portion)
        rows = connection.execute(_story_rows().where(named, *conditions))
        for row in rows:
            story_id, root_id, root_source, *_, root_version, id_, version, source = row
            root = StoryMember(id=root_id, version=root_version, source=root_source)
            preferred = root if id_ is None else StoryMember(id=id_, version=version, source=source)
            found[story_id] = _Story._make((*row[:-4], preferred))
    return found


@cache
def _story_rows() -> Select[Any]:
    """Return the cached query for stories. A preferred member that has left its story is ignored."""
    root_source, preferred_source, preferred = SOURCES.alias(), SOURCES.alias(), FLAGS.alias("preferred")
    is_member = (preferred.c.story_id == STORIES.c.story_id, preferred.c.state.in_(IN_FORCE))
    return (
        select(
            STORIES.c.story_id,
            STORIES.c.root_id,
            root_source.c.name,
            STORIES.c.copies,
            STORIES.c.open_copies,
            STORIES.c.told_copies,
            STORIES.c.first_ms,
            STORIES.c.last_ms,
            root_version(),
            preferred.c.article_id,
            preferred.c.version,
            preferred_source.c.name,
        )
        .select_from(STORIES)
        .outerjoin(root_source, root_source.c.source_id == STORIES.c.root_source_id)
        .outerjoin(preferred, and_(preferred.c.flag_id == STORIES.c.preferred_id, *is_member))
        .outerjoin(preferred_source, preferred_source.c.source_id == preferred.c.source_id)
        .order_by(STORIES.c.story_id)
    )


def _members(connection: Connection, versions: Iterable[ArticleVersion]) -> dict[ArticleVersion, StoryMember]:
    """Return versions with their sources, if known from their flags."""
    found: dict[ArticleVersion, StoryMember] = {}
    for portion in portions(versions, 100):
        named = or_(*(and_(FLAGS.c.article_id == id_, FLAGS.c.version == version) for id_, version in portion))
        rows = (
            select(FLAGS.c.article_id, FLAGS.c.version, SOURCES.c.name)
            .outerjoin_from(FLAGS, SOURCES, SOURCES.c.source_id == FLAGS.c.source_id)
            .where(named, FLAGS.c.kind.in_(COPY_KINDS))
        )
        sources = {(id_, version): source for id_, version, source in connection.execute(rows)}
        for id_, version in portion:
            found[id_, version] = StoryMember(id=id_, version=version, source=sources.get((id_, version)))
    return found
