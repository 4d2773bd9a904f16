"""Splitting a flagged article off its story, and undoing that."""

from collections.abc import Callable

from starlette.responses import Response

from consumer.console.pages.flag_page import the_flag
from consumer.console.pages.repairs.refused import page_error, repaired
from consumer.console.pages.stored_articles import articles_of
from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.people import Person
from consumer.reviews.repairs import split


def confirm(asked: SignedInVisit) -> Response:
    """Say what would be split off, and ask."""
    flag = the_flag(asked)
    with asked.desk.database.reading() as connection:
        why = split.why_not_split(connection, flag.flag_id)
        copies = split.copies_with(connection, flag.flag_id)
    if why is not None:
        raise page_error(why)
    found = articles_of(asked.desk, [flag])
    return asked.page(
        "story_split.html", flag=flag, article=found.article(flag), original=found.original(flag), copies=copies
    )


def split_off(asked: SignedInVisit) -> Response:
    """Split an article off its story, and show its own."""
    return _repaired(asked, "story.split", split.split)


def undo(asked: SignedInVisit) -> Response:
    """Bring an article back into its story, and show that."""
    return _repaired(asked, "story.split.undo", split.undo_split)


def _repaired(asked: SignedInVisit, action: str, repair: Callable[[Connection, int, Person, int], int]) -> Response:
    flag, now_ms = the_flag(asked), asked.desk.now_ms()

    def changed(connection: Connection) -> int:
        story_id = repair(connection, flag.flag_id, asked.person, now_ms)
        asked.note(connection, action, at_ms=now_ms, subject=flag.article_id, flag_id=flag.flag_id)
        return story_id

    return asked.redirect(f"/stories/{repaired(asked, changed)}")
