"""Writes events of decisions and of fully decided stories into the outbox."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from consumer.model.decision_event import DecisionEvent, encode_decision
from consumer.reviews.outbox.events import NewEvent, append, is_wanted
from consumer.reviews.outbox.story_events import StoryChange, write_story_events
from consumer.reviews.portable import portions
from consumer.reviews.tables import FLAGS, PEOPLE, REASONS, REVIEWS, SOURCES
from consumer.text.timestamps import rfc3339


def write_decision_events(connection: Connection, review_ids: Sequence[int], now_ms: int) -> None:
    """Write an event for each of these decisions in its current state, made or undone. Only webhooks get these events.

    The caller must hold ``Lock.FLAGS``.
    """
    if not review_ids or not is_wanted(connection, "decision"):
        return
    source, original_source = SOURCES.alias(), SOURCES.alias()
    columns = (
        select(
            REVIEWS,
            FLAGS.c.kind,
            FLAGS.c.article_id,
            FLAGS.c.version,
            FLAGS.c.original_id,
            FLAGS.c.original_version,
            FLAGS.c.story_id,
            PEOPLE.c.name.label("person"),
            REASONS.c.name.label("reason"),
            source.c.name.label("source"),
            original_source.c.name.label("original_source"),
        )
        .join_from(REVIEWS, FLAGS, FLAGS.c.flag_id == REVIEWS.c.flag_id)
        .join(PEOPLE, PEOPLE.c.person_id == REVIEWS.c.person_id)
        .outerjoin(REASONS, REASONS.c.reason_id == REVIEWS.c.reason_id)
        .outerjoin(source, source.c.source_id == FLAGS.c.source_id)
        .outerjoin(original_source, original_source.c.source_id == FLAGS.c.original_source_id)
        .order_by(REVIEWS.c.review_id)
    )
    for portion in portions(sorted(review_ids)):
        rows = connection.execute(columns.where(REVIEWS.c.review_id.in_(portion)))
        append(connection, [_event(row) for row in rows], now_ms)


def write_decided_events(connection: Connection, story_ids: Collection[int], person_id: int, now_ms: int) -> None:
    """Write an event for each of these stories, which must be fully decided now. ``person_id`` made the last decision.

    The caller must hold ``Lock.FLAGS``.
    """
    if story_ids:
        person = connection.execute(select(PEOPLE.c.name).where(PEOPLE.c.person_id == person_id)).scalar_one()
        changes = [StoryChange(story_id, "decided", person) for story_id in sorted(story_ids)]
        write_story_events(connection, changes, now_ms)


def _event(row: Row[Any]) -> NewEvent:
    def payload(number: int) -> bytes:
        return encode_decision(
            DecisionEvent(
                event=number,
                review=row.review_id,
                kind=row.kind,
                article=row.article_id,
                version=row.version,
                original=row.original_id,
                original_version=row.original_version,
                story=row.story_id,
                decision=row.decision,
                reason=row.reason,
                note=row.note,
                person=row.person,
                standing=row.standing_id is not None,
                at=rfc3339(row.at_ms),
                final_at=rfc3339(row.final_ms),
                undone=row.undone_ms is not None,
            )
        )

    sources = frozenset(name for name in (row.source, row.original_source) if name)
    return NewEvent("decision", row.story_id, sources, payload)
