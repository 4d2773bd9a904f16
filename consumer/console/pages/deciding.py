"""Deciding about one flag, about flags selected in the queue, or about all open flags of a story; undoing; notes."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, get_args

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.decision_notice import GONE, MANY, ONE, REFUSED
from consumer.console.pages.flag_page import WITH_OTHERS, flag_answer, flag_href, the_flag
from consumer.console.pages.queue_filters import QueueSelection, wanted_in, wanted_of
from consumer.console.pages.queue_pages import selected_max
from consumer.console.pages.reasons_page import chosen_reason, refusing_reasons
from consumer.console.pages.stored_articles import articles_named
from consumer.console.pages.story_pages import the_story
from consumer.console.visit import Fields, SignedInVisit
from consumer.reviews import decisions, discussion, queue
from consumer.reviews.database import Connection, DatabaseUnavailable
from consumer.reviews.decisions import NOTE_CHARS_MAX, Decision, DecisionResult, OwnReview, own_review, own_reviews_at
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.moderation import claims, reasons
from consumer.reviews.queue import Filters
from consumer.reviews.stories import root_versions
from consumer.telemetry.metrics.console import FlagsDecided
from storage.clock import MS_PER_S

WHY_NOT: Final[dict[str, str]] = {
    "gone": N_("This flag is no longer there."),
    "decided": N_("Somebody else decided this first, and nothing was changed. The history below says who."),
    "final": N_("Your decision about this flag is final. Nothing was changed."),
    "released": N_("This flag was released elsewhere. Nothing was changed."),
}
HEADINGS: Final[dict[Decision, str]] = {
    "right": N_("Are all of these flags right?"),
    "wrong": N_("Are all of these flags wrong?"),
}


class SubmittedDecision(NamedTuple):
    """A decision about one or more flags, as a form has it. Only *wrong* has a reason."""

    decision: Decision
    note: str
    reason_id: int | None = None


def decide(asked: SignedInVisit) -> Response:
    """Decide, and go on with the next flag."""
    opinion, flag, wanted = _opinion_in(asked.form), the_flag(asked), wanted_of(asked.form, asked.desk.cutter)
    decided = _decided(asked, [flag.flag_id], opinion, asked.desk.now_ms())
    if decided.refused:
        why = asked.language.gettext(WHY_NOT[decided.refused[0][1]])
        return flag_answer(asked, wanted, conflict=why, status=HTTPStatus.CONFLICT)
    said = {ONE: decided.review_ids[0]}
    try:
        return _go_on(asked, wanted, flag, said)
    except DatabaseUnavailable:
        # What was decided is stored, and must not look as if it were not.
        return asked.redirect("/", **wanted.fields, **said)


def go_on(asked: SignedInVisit) -> Response:
    """Leave a flag, and go on with the next one."""
    return _go_on(asked, wanted_in(asked.query, asked.desk.cutter), the_flag(asked), {})


def leave(asked: SignedInVisit) -> Response:
    """Leave a flag, and go back to the queue."""
    flag_id, person_id = asked.places["flag_id"], asked.person.person_id
    asked.desk.database.written(lambda c: claims.leave(c, flag_id, person_id))
    return asked.redirect("/", **wanted_in(asked.query, asked.desk.cutter).fields)


def close(asked: SignedInVisit) -> Response:
    """Leave a flag whose page has gone away in the browser, unless it was opened again since."""
    flag_id, opened_ms = asked.places["flag_id"], asked.form.integer("opened_ms")
    claims.close(asked.desk.database, flag_id, asked.person.person_id, opened_ms)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _go_on(asked: SignedInVisit, wanted: QueueSelection, flag: FlagRow, said: Mapping[str, int]) -> Response:
    """Show the next flag, which nobody else gets at the same time, or the queue where there is none."""
    desk, person_id = asked.desk, asked.person.person_id
    following = claims.next_flag(desk.database, wanted.filters, wanted.order, flag, person_id, desk.now_ms())
    if following is None:
        return asked.redirect("/", **wanted.fields, **said)
    with_others = {} if following.is_free else {WITH_OTHERS: 1}
    return asked.redirect(f"/flags/{following.flag_id}", **wanted.fields, **said, **with_others)


def add_note(asked: SignedInVisit) -> Response:
    """Store a note."""
    text = asked.form.text("text", NOTE_CHARS_MAX)
    flag, wanted = the_flag(asked), wanted_of(asked.form, asked.desk.cutter)
    if not text:
        why = asked.language.gettext(N_("The note is empty, and was not stored."))
        return flag_answer(asked, wanted, conflict=why, status=HTTPStatus.BAD_REQUEST)
    now_ms = asked.desk.now_ms()

    def noted(connection: Connection) -> None:
        discussion.add_note(connection, flag.flag_id, asked.person.person_id, text, now_ms)
        asked.note(connection, "flag.note", at_ms=now_ms, subject=flag.article_id, flag_id=flag.flag_id, why=text)

    asked.desk.database.written(noted)
    return asked.redirect(flag_href(flag.flag_id, wanted))


def undo(asked: SignedInVisit) -> Response:
    """Take a decision of one's own back, and show its flag again."""
    review_id, now_ms = asked.places["review_id"], asked.desk.now_ms()
    wanted = wanted_of(asked.form, asked.desk.cutter)
    with asked.desk.database.reading() as connection:
        review = own_review(connection, asked.person.person_id, review_id)
    if review is None:
        raise not_found()

    _undo(asked, lambda _: [review], now_ms)
    return asked.redirect(f"/flags/{review.flag_id}", **wanted.fields, **{ONE: review_id})


def _undo(asked: SignedInVisit, chosen: Callable[[Connection], Sequence[OwnReview]], now_ms: int) -> None:
    """Take back decisions of one's own, all of them in one transaction. Raises ``PageError`` where none can be."""

    def undone(connection: Connection) -> int:
        reviews = {review.review_id: review for review in chosen(connection)}
        taken_back = decisions.undo(connection, list(reviews), asked.person.person_id, now_ms)
        for review in map(reviews.__getitem__, taken_back):
            asked.note(connection, "flag.undo", at_ms=now_ms, subject=review.article_id, flag_id=review.flag_id)
        return len(taken_back)

    if not asked.desk.database.written(undone):
        message = N_(
            "This can no longer be undone: the decision is final, or it was undone before. Nothing was changed."
        )
        raise PageError(HTTPStatus.CONFLICT, message)


def _decision_in(fields: Fields) -> Decision:
    """Return the decision that a form has. Raises ``PageError`` where it is none."""
    sent = fields.text("decision")
    for decision in get_args(Decision):
        if sent == decision:
            known: Decision = decision
            return known
    raise PageError(HTTPStatus.BAD_REQUEST, N_("A decision is right, wrong or skip."))


def _opinion_in(form: Fields) -> SubmittedDecision:
    """Return what a form says of flags. Raises ``PageError``."""
    decision = _decision_in(form)
    # The field is there for whoever decides wrong; beside another button it says nothing.
    reason_id = chosen_reason(form) if decision == "wrong" else None
    return SubmittedDecision(decision, form.text("note", NOTE_CHARS_MAX), reason_id)


def _decided(asked: SignedInVisit, flag_ids: Sequence[int], opinion: SubmittedDecision, now_ms: int) -> DecisionResult:
    """Decide about flags, with an entry in the audit log for each. Raises ``PageError`` for a wrong reason."""
    undo_ms = round(asked.desk.section.undo_s * MS_PER_S)
    decision, note, reason_id = opinion

    def decide_and_note(connection: Connection) -> DecisionResult:
        reason = None if reason_id is None else reasons.choice_numbered(connection, reason_id).name
        decided = decisions.decide(
            connection, flag_ids, asked.person.person_id, decision, note, now_ms, undo_ms, reason_id
        )
        refused = {flag_id for flag_id, _ in decided.refused}
        for flag in queue.flags(connection, [flag_id for flag_id in flag_ids if flag_id not in refused]):
            action, why = f"flag.{decision}", reasons.with_note(reason, note)
            asked.note(connection, action, at_ms=now_ms, subject=flag.article_id, flag_id=flag.flag_id, why=why)
        return decided

    with refusing_reasons():
        decided = asked.desk.database.written(decide_and_note)
    asked.desk.hooks.report(FlagsDecided(decision, len(decided.review_ids)))
    return decided


def decide_selected(asked: SignedInVisit) -> Response:
    """Decide about the flags that somebody has selected on a page of the queue, and show that page again."""
    form = asked.form
    opinion, wanted = _opinion_in(form), wanted_of(form, asked.desk.cutter)
    flag_ids = form.integers("flag")
    if not flag_ids:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("No flag is selected. Go back, select some, and decide again."))
    check_number(flag_ids, selected_max(asked.desk.section))
    fields = decide_together(asked, flag_ids, opinion)
    return asked.redirect("/", **wanted.fields, after=form.text("after") or None, **fields)


def undo_selected(asked: SignedInVisit) -> Response:
    """Take back what was decided about flags that were selected in the queue."""
    wanted = wanted_of(asked.form, asked.desk.cutter)
    return asked.redirect("/", **wanted.fields, **{MANY: undo_at(asked, None)})


def check_number(flag_ids: Sequence[int], most: int) -> None:
    """Raise ``PageError`` where a form names more flags than may be decided at once."""
    if len(flag_ids) > most:
        message = N_("At most %(most)s flags are decided at once, and nothing was decided. Select fewer.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=most)


def confirm(asked: SignedInVisit) -> Response:
    """Say what would be decided, and ask."""
    decision = _decision_about_many(asked.query)
    with asked.desk.database.reading() as connection:
        story = the_story(asked, connection)
        flags = _open_flags(asked, connection, story.story_id)
        versions = root_versions(connection, [story.root_id])
        choices = reasons.choices(connection)
    found = articles_named(asked.desk, versions.items())
    return asked.page(
        "story_decide.html",
        heading=asked.language.gettext(HEADINGS[decision]),
        decision=decision,
        story=story,
        root=next(iter(found.articles.values()), None),
        count=len(flags),
        choices=choices,
        up_to=max((flag.flag_id for flag in flags), default=0),
    )


def decide_all(asked: SignedInVisit) -> Response:
    """Decide about the flags that the page before has named."""
    _decision_about_many(asked.form)
    opinion = _opinion_in(asked.form)
    up_to, shown_max = asked.form.integer("up_to"), asked.form.integer("count")
    with asked.desk.database.reading() as connection:
        story = the_story(asked, connection)
        # Where another story has its flags now, that one has flags that nobody was shown.
        is_shown = story.story_id == asked.places["story_id"]
        flags = _open_flags(asked, connection, story.story_id) if is_shown else []
        flags = [flag for flag in flags if flag.flag_id <= up_to]
    if len(flags) > shown_max:
        # A story whose flags are as old was merged into it.
        message = N_("The story has other flags now than those that you were shown. Nothing was decided. Look again.")
        raise PageError(HTTPStatus.CONFLICT, message)
    fields = decide_together(asked, [flag.flag_id for flag in flags], opinion)
    return asked.redirect(f"/stories/{story.story_id}", **fields)


def decide_together(asked: SignedInVisit, flag_ids: Sequence[int], opinion: SubmittedDecision) -> dict[str, int | None]:
    """Decide about several flags; return the query that makes a page say so. Raises ``PageError`` if none was."""
    now_ms = asked.desk.now_ms()
    decided = _decided(asked, flag_ids, opinion, now_ms)
    if not decided.review_ids:
        message = N_("Nothing was decided: all of these flags were decided before, or are no longer there.")
        raise PageError(HTTPStatus.CONFLICT, message)
    gone = sum(why == "gone" for _, why in decided.refused)
    return {MANY: now_ms, REFUSED: len(decided.refused) - gone or None, GONE: gone or None}


def undo_all(asked: SignedInVisit) -> Response:
    """Take back what was decided about many flags of a story at one moment."""
    with asked.desk.database.reading() as connection:
        # It may have been merged since then.
        story_id = the_story(asked, connection).story_id
    at_ms = undo_at(asked, story_id)
    return asked.redirect(f"/stories/{story_id}", **{MANY: at_ms})


def undo_at(asked: SignedInVisit, story_id: int | None) -> int:
    """Take back what was decided at the moment that a form names, which is returned. Raises ``PageError``.

    Without a story it may be about flags of several.
    """
    at_ms = asked.form.integer("at_ms")
    _undo(asked, lambda c: own_reviews_at(c, asked.person.person_id, story_id, at_ms), asked.desk.now_ms())
    return at_ms


def _decision_about_many(fields: Fields) -> Decision:
    decision = _decision_in(fields)
    if decision not in HEADINGS:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Many flags at once can be right or wrong."))
    return decision


def _open_flags(asked: SignedInVisit, connection: Connection, story_id: int) -> list[FlagRow]:
    """Return the open flags of a story, the oldest first, as many as one decision may cover."""
    filters = Filters(state="open", kind="flag", story_id=story_id)
    rows_max = asked.desk.section.reviewed_at_once_max
    return list(queue.page(connection, filters, "oldest", rows_max, None).rows)
