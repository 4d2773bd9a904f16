"""Merging a story with another one, and undoing that.

The one with fewer copies becomes part of the other: how long it takes depends on them.
"""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from consumer.console.faults import N_, PageError
from consumer.console.pages.repairs.refused import page_error, repaired
from consumer.console.pages.stored_articles import articles_named, original_named
from consumer.console.pages.story_pages import the_story
from consumer.console.visit import INTEGER_MAX, SignedInVisit
from consumer.reviews import stories
from consumer.reviews.database import Connection
from consumer.reviews.people import Person
from consumer.reviews.portable import ID_BYTES_MAX
from consumer.reviews.repairs import merge
from consumer.reviews.repairs.merge import MergedStories
from consumer.reviews.stories import Story

OTHER: Final = "other"
"""The field that names the other story."""
_CHARS_MAX: Final = 2_000
_NUMBER: Final = re.compile("[0-9]{1,19}")
_LINK: Final = re.compile(f"/stories/({_NUMBER.pattern})(?:[/?#].*)?$")


def confirm(asked: SignedInVisit) -> Response:
    """Say which story would become part of which, and ask."""
    named = asked.query.text(OTHER, _CHARS_MAX)
    with asked.desk.database.reading() as connection:
        story = the_story(asked, connection)
        other = _named(connection, named)
        if other.story_id == story.story_id:
            raise page_error("merged")
        versions = stories.root_versions(connection, [story.root_id, other.root_id])
    into, merged = sorted([story, other], key=lambda each: (-each.copies, each.story_id))
    found = articles_named(asked.desk, versions.items())
    return asked.page(
        "story_merge.html",
        story=story,
        merged=merged,
        into=into,
        merged_root=original_named(found, versions, merged.root_id),
        into_root=original_named(found, versions, into.root_id),
        store_is_away=found.is_away,
    )


def merge_stories(asked: SignedInVisit) -> Response:
    """Make a story part of another one, and show that."""
    into_id = asked.form.integer("into")

    def merged(connection: Connection, story_id: int, person: Person, now_ms: int) -> MergedStories:
        return merge.merge(connection, story_id, into_id, person, now_ms)

    changed = _repaired(asked, "story.merge", merged)
    return asked.redirect(f"/stories/{changed.into.story_id}")


def undo(asked: SignedInVisit) -> Response:
    """Let a story be one of its own again, and show it."""
    changed = _repaired(asked, "story.merge.undo", merge.undo_merge)
    return asked.redirect(f"/stories/{changed.story.story_id}")


def _repaired(
    asked: SignedInVisit, action: str, repair: Callable[[Connection, int, Person, int], MergedStories]
) -> MergedStories:
    now_ms = asked.desk.now_ms()

    def changed(connection: Connection) -> MergedStories:
        pair = repair(connection, asked.places["story_id"], asked.person, now_ms)
        asked.note(connection, action, at_ms=now_ms, subject=pair.story.root_id, why=pair.into.root_id)
        return pair

    return repaired(asked, changed)


def _named(connection: Connection, named: str) -> Story:
    """Return the story of a link, of an article's id, or of a number. Raises ``PageError`` where there is none."""
    link = _LINK.search(named)
    found = None if link is None else _numbered(connection, link[1])
    if found is None and 0 < len(named.encode()) <= ID_BYTES_MAX:
        found = stories.story_of_article(connection, named)
    if found is None and _NUMBER.fullmatch(named):
        found = _numbered(connection, named)
    if found is None:
        message = N_(
            "There is no such story. Paste a link to it, or write its number or the id of one of its articles."
        )
        raise PageError(HTTPStatus.BAD_REQUEST, message)
    return found


def _numbered(connection: Connection, number: str) -> Story | None:
    return stories.story(connection, min(int(number), INTEGER_MAX))
