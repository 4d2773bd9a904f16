"""Deciding about one flag, undoing that, and notes."""

from http import HTTPStatus
from typing import Final, get_args

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.flag_page import flag_answer, flag_href, the_flag
from consumer.console.pages.queue_filters import Wanted, wanted_of
from consumer.console.pages.said import ONE
from consumer.console.visit import Asked, Fields
from consumer.reviews import decisions, discussion, queue
from consumer.reviews.database import Connection, DatabaseUnavailable
from consumer.reviews.decisions import NOTE_CHARS_MAX, Decided, Decision, own_review
from consumer.reviews.flag_row import FlagRow
from consumer.telemetry.metrics.console import FlagsDecided

WHY_NOT: Final[dict[str, str]] = {
    "gone": N_("This flag is no longer there."),
    "decided": N_("Somebody else has decided this meanwhile. The history below says who; nothing was changed."),
    "final": N_("Your decision about this flag is final. Nothing was changed."),
    "released": N_("This flag was released elsewhere. Nothing was changed."),
}
MS_PER_S: Final = 1_000


def decide(asked: Asked) -> Response:
    """Decide, and go on with the next flag."""
    decision, note = decision_in(asked.form), asked.form.text("note", NOTE_CHARS_MAX)
    flag, wanted = the_flag(asked), wanted_of(asked.form)
    now_ms = asked.desk.now_ms()
    decided = asked.desk.database.written(lambda c: decide_and_note(c, asked, [flag], decision, note, now_ms))
    asked.desk.hooks.report(FlagsDecided(decision, len(decided.review_ids)))
    if decided.refused:
        why = asked.language.gettext(WHY_NOT[decided.refused[0][1]])
        return flag_answer(asked, wanted, conflict=why, status=HTTPStatus.CONFLICT)
    return asked.redirect(_next_path(asked, wanted, flag), **wanted.fields, **{ONE: decided.review_ids[0]})


def _next_path(asked: Asked, wanted: Wanted, flag: FlagRow) -> str:
    """Return where to go on after a decision: the next flag, or the queue where there is none."""
    try:
        with asked.desk.database.reading() as connection:
            following = queue.next_open(connection, wanted.filters, wanted.order, flag)
    except DatabaseUnavailable:
        # What was decided is stored, and must not look as if it were not.
        following = None
    return "/" if following is None else f"/flags/{following}"


def add_note(asked: Asked) -> Response:
    """Store a note."""
    text = asked.form.text("text", NOTE_CHARS_MAX)
    flag, wanted = the_flag(asked), wanted_of(asked.form)
    if not text:
        why = asked.language.gettext(N_("The note is empty, and was not stored."))
        return flag_answer(asked, wanted, conflict=why, status=HTTPStatus.BAD_REQUEST)
    now_ms = asked.desk.now_ms()

    def noted(connection: Connection) -> None:
        discussion.add_note(connection, flag.flag_id, asked.person.person_id, text, now_ms)
        asked.note(connection, "flag.note", at_ms=now_ms, subject=flag.article_id, flag_id=flag.flag_id, why=text)

    asked.desk.database.written(noted)
    return asked.redirect(flag_href(flag.flag_id, wanted))


def undo(asked: Asked) -> Response:
    """Take a decision of one's own back, and show its flag again."""
    review_id, now_ms = asked.places["review_id"], asked.desk.now_ms()
    wanted = wanted_of(asked.form)
    with asked.desk.database.reading() as connection:
        review = own_review(connection, asked.person.person_id, review_id)
    if review is None:
        raise not_found()

    def undone(connection: Connection) -> bool:
        is_undone = decisions.undo(connection, review_id, asked.person.person_id, now_ms)
        if is_undone:
            asked.note(connection, "flag.undo", at_ms=now_ms, subject=review.article_id, flag_id=review.flag_id)
        return is_undone

    if not asked.desk.database.written(undone):
        raise too_late()
    return asked.redirect(f"/flags/{review.flag_id}", **wanted.fields, **{ONE: review_id})


def too_late() -> PageError:
    """Return the error for a decision that can no longer be taken back."""
    message = N_("This can no longer be undone: the decision is final, or it was undone before. Nothing was changed.")
    return PageError(HTTPStatus.CONFLICT, message)


def decision_in(fields: Fields) -> Decision:
    """Return the decision that a form has. Raises ``PageError`` where it is none."""
    sent = fields.text("decision")
    for decision in get_args(Decision):
        if sent == decision:
            known: Decision = decision
            return known
    raise PageError(HTTPStatus.BAD_REQUEST, N_("A decision is right, wrong or skip."))


def decide_and_note(
    connection: Connection, asked: Asked, flags: list[FlagRow], decision: Decision, note: str, now_ms: int
) -> Decided:
    """Decide about flags, with an entry in the audit log for each."""
    undo_ms = round(asked.desk.section.undo_s * MS_PER_S)
    ids = [flag.flag_id for flag in flags]
    decided = decisions.decide(connection, ids, asked.person.person_id, decision, note, now_ms, undo_ms)
    refused = {flag_id for flag_id, _ in decided.refused}
    for flag in flags:
        if flag.flag_id not in refused:
            asked.note(
                connection,
                f"flag.{decision}",
                at_ms=now_ms,
                subject=flag.article_id,
                flag_id=flag.flag_id,
                why=note,
            )
    return decided
