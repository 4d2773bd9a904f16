"""Deciding about all open flags of a story at once, after a page that asks, and undoing that."""

from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from consumer.console.faults import N_, PageError
from consumer.console.pages.deciding import decide_and_note, decision_in, too_late
from consumer.console.pages.said import MANY, REFUSED
from consumer.console.pages.stored_articles import articles_named
from consumer.console.pages.story_pages import the_story
from consumer.console.visit import Asked, Fields
from consumer.reviews import decisions, queue
from consumer.reviews.database import Connection
from consumer.reviews.decisions import NOTE_CHARS_MAX, Decision, own_reviews_at
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.queue import Filters
from consumer.reviews.stories import root_versions
from consumer.telemetry.metrics.console import FlagsDecided

HEADINGS: Final[dict[Decision, str]] = {
    "right": N_("Are all of these flags right?"),
    "wrong": N_("Are all of these flags wrong?"),
}


def confirm(asked: Asked) -> Response:
    """Say what would be decided, and ask."""
    decision = _decision(asked.query)
    with asked.desk.database.reading() as connection:
        story = the_story(asked, connection)
        flags = _open_flags(asked, connection, story.story_id)
        versions = root_versions(connection, [story.root_id])
    found = articles_named(asked.desk, versions.items())
    return asked.page(
        "story_decide.html",
        heading=asked.language.gettext(HEADINGS[decision]),
        decision=decision,
        story=story,
        root=next(iter(found.articles.values()), None),
        count=len(flags),
        up_to=max((flag.flag_id for flag in flags), default=0),
    )


def decide_all(asked: Asked) -> Response:
    """Decide about the flags that the page before has named."""
    decision, note = _decision(asked.form), asked.form.text("note", NOTE_CHARS_MAX)
    up_to = asked.form.integer("up_to")
    with asked.desk.database.reading() as connection:
        story = the_story(asked, connection)
        flags = [flag for flag in _open_flags(asked, connection, story.story_id) if flag.flag_id <= up_to]
    now_ms = asked.desk.now_ms()
    decided = asked.desk.database.written(lambda c: decide_and_note(c, asked, flags, decision, note, now_ms))
    asked.desk.hooks.report(FlagsDecided(decision, len(decided.review_ids)))
    if not decided.review_ids:
        raise PageError(
            HTTPStatus.CONFLICT, N_("Nothing was decided: somebody else has decided about all of these flags.")
        )
    refused = len(decided.refused)
    return asked.redirect(f"/stories/{story.story_id}", **{MANY: now_ms, REFUSED: refused or None})


def undo_all(asked: Asked) -> Response:
    """Take back what was decided about many flags at one moment."""
    story_id, at_ms, now_ms = asked.places["story_id"], asked.form.integer("at_ms"), asked.desk.now_ms()
    person_id = asked.person.person_id

    def undone(connection: Connection) -> int:
        count = 0
        for review in own_reviews_at(connection, person_id, story_id, at_ms):
            if decisions.undo(connection, review.review_id, person_id, now_ms):
                asked.note(connection, "flag.undo", at_ms=now_ms, subject=review.article_id, flag_id=review.flag_id)
                count += 1
        return count

    if not asked.desk.database.written(undone):
        raise too_late()
    return asked.redirect(f"/stories/{story_id}", **{MANY: at_ms})


def _decision(fields: Fields) -> Decision:
    decision = decision_in(fields)
    if decision not in HEADINGS:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Many flags at once can be right or wrong."))
    return decision


def _open_flags(asked: Asked, connection: Connection, story_id: int) -> list[FlagRow]:
    """Return the open flags of a story, the oldest first, as many as one decision may cover."""
    filters = Filters(state="open", kind="flag", story_id=story_id)
    rows_max = asked.desk.section.reviewed_at_once_max
    return list(queue.page(connection, filters, "oldest", rows_max, None).rows)
