"""Merges two stories, and undoes merges.

The story with fewer copies becomes part of the other one, because a merge takes time for each copy that moves.
"""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from consumer.console.faults import N_, PageError
from consumer.console.pages.repairs.refused import repair_error, run_repair
from consumer.console.pages.stored_articles import articles_named, original_named
from consumer.console.pages.story_pages import requested_story
from consumer.console.visit import INTEGER_MAX, SignedInVisit
from consumer.reviews import stories
from consumer.reviews.database import Connection
from consumer.reviews.people import Person
from consumer.reviews.portable import ID_BYTES_MAX
from consumer.reviews.repairs import merge
from consumer.reviews.repairs.merge import MergedStories
from consumer.reviews.stories import Story

OTHER_STORY_FIELD: Final = "other"
"""Query field: the other story."""
_CHARS_MAX: Final = 2_000
_NUMBER: Final = re.compile("[0-9]{1,19}")
_LINK: Final = re.compile(f"/stories/({_NUMBER.pattern})(?:[/?#].*)?$")


def confirm(visit: SignedInVisit) -> Response:
    """Show which story would become part of which, and ask for confirmation."""
    named = visit.query.text(OTHER_STORY_FIELD, _CHARS_MAX)
    with visit.context.database.read_connection() as connection:
        story = requested_story(visit, connection)
        other = _named_story(connection, named)
        if other.story_id == story.story_id:
            raise repair_error("merged")
        versions = stories.root_versions(connection, [story.root_id, other.root_id])
    into, merged = sorted([story, other], key=lambda each: (-each.copies, each.story_id))
    found = articles_named(visit.context, versions.items())
    return visit.page(
        "story_merge.html",
        story=story,
        merged=merged,
        into=into,
        merged_root=original_named(found, versions, merged.root_id),
        into_root=original_named(found, versions, into.root_id),
        store_is_away=found.is_away,
    )


def merge_stories(visit: SignedInVisit) -> Response:
    """Merge a story into another one, and show the other one."""
    into_id = visit.form.integer("into")

    def merge_into(connection: Connection, story_id: int, person: Person, now_ms: int) -> MergedStories:
        return merge.merge(connection, story_id, into_id, person, now_ms)

    pair = _repair(visit, "story.merge", merge_into)
    return visit.redirect(f"/stories/{pair.into.story_id}")


def undo(visit: SignedInVisit) -> Response:
    """Undo the merge of a story, and show the story."""
    pair = _repair(visit, "story.merge.undo", merge.undo_merge)
    return visit.redirect(f"/stories/{pair.story.story_id}")


def _repair(
    visit: SignedInVisit, action: str, repair: Callable[[Connection, int, Person, int], MergedStories]
) -> MergedStories:
    now_ms = visit.context.now_ms()

    def repair_with_audit_entry(connection: Connection) -> MergedStories:
        pair = repair(connection, visit.path_parameters["story_id"], visit.person, now_ms)
        visit.add_audit_entry(connection, action, at_ms=now_ms, subject=pair.story.root_id, why=pair.into.root_id)
        return pair

    return run_repair(visit, repair_with_audit_entry)


def _named_story(connection: Connection, named: str) -> Story:
    """Return the story that a link, an article's id or a number names. Raises ``PageError`` if there is none."""
    link = _LINK.search(named)
    found = None if link is None else _story_numbered(connection, link[1])
    if found is None and 0 < len(named.encode()) <= ID_BYTES_MAX:
        found = stories.story_of_article(connection, named)
    if found is None and _NUMBER.fullmatch(named):
        found = _story_numbered(connection, named)
    if found is None:
        message = N_(
            "There is no such story. Paste a link to it, or enter its number or the id of one of its articles."
        )
        raise PageError(HTTPStatus.BAD_REQUEST, message)
    return found


def _story_numbered(connection: Connection, number: str) -> Story | None:
    return stories.story(connection, min(int(number), INTEGER_MAX))
