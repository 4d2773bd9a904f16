"""Splits a flagged article off its story, and undoes splits."""

from collections.abc import Callable

from starlette.responses import Response

from consumer.console.pages.flag_page import requested_flag
from consumer.console.pages.repairs.refused import repair_error, run_repair
from consumer.console.pages.stored_articles import articles_of
from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.people import Person
from consumer.reviews.repairs import split


def confirm(visit: SignedInVisit) -> Response:
    """Show what would be split off, and ask for confirmation."""
    flag = requested_flag(visit)
    with visit.context.database.read_connection() as connection:
        refusal = split.split_refusal(connection, flag.flag_id)
        copies = split.moving_copies(connection, flag.flag_id)
    if refusal is not None:
        raise repair_error(refusal)
    found = articles_of(visit.context, [flag])
    return visit.page(
        "story_split.html", flag=flag, article=found.article(flag), original=found.original(flag), copies=copies
    )


def split_off(visit: SignedInVisit) -> Response:
    """Split an article off its story, and show its new story."""
    return _repair(visit, "story.split", split.split)


def undo(visit: SignedInVisit) -> Response:
    """Undo the split of an article, and show the story that has it again."""
    return _repair(visit, "story.split.undo", split.undo_split)


def _repair(visit: SignedInVisit, action: str, repair: Callable[[Connection, int, Person, int], int]) -> Response:
    flag, now_ms = requested_flag(visit), visit.context.now_ms()

    def repair_with_audit_entry(connection: Connection) -> int:
        story_id = repair(connection, flag.flag_id, visit.person, now_ms)
        visit.add_audit_entry(connection, action, at_ms=now_ms, subject=flag.article_id, flag_id=flag.flag_id)
        return story_id

    return visit.redirect(f"/stories/{run_repair(visit, repair_with_audit_entry)}")
