"""Decides about one flag, selected flags, or all open flags of a story; undoes decisions; adds notes."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, get_args

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.decision_notice import DECIDED_AT_FIELD, GONE_FIELD, REFUSED_FIELD, REVIEW_FIELD
from consumer.console.pages.flag_page import OPENED_BY_OTHERS_FIELD, flag_answer, flag_href, requested_flag
from consumer.console.pages.queue_filters import QueueSelection, selection_in, selection_of
from consumer.console.pages.queue_pages import selected_max
from consumer.console.pages.reasons_page import chosen_reason, reason_errors_as_pages
from consumer.console.pages.stored_articles import articles_named
from consumer.console.pages.story_pages import requested_story
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

REFUSAL_MESSAGES: Final[dict[str, str]] = {
    "gone": N_("This flag no longer exists."),
    "decided": N_("Somebody else decided this first. Nothing was changed. The history below says who."),
    "final": N_("Your decision about this flag is final. Nothing was changed."),
    "released": N_("This flag was released elsewhere. Nothing was changed."),
}
HEADINGS: Final[dict[Decision, str]] = {
    "right": N_("Are all of these flags right?"),
    "wrong": N_("Are all of these flags wrong?"),
}


class SubmittedDecision(NamedTuple):
    """A decision about one or more flags, read from a form. Only *wrong* has a reason."""

    decision: Decision
    note: str
    reason_id: int | None = None


def decide(visit: SignedInVisit) -> Response:
    """Decide about a flag, and show the next one."""
    submitted, flag, selection = (
        _submitted_decision(visit.form),
        requested_flag(visit),
        selection_of(visit.form, visit.context.cutter),
    )
    decided = _decide(visit, [flag.flag_id], submitted, visit.context.now_ms())
    if decided.refused:
        why = visit.language.gettext(REFUSAL_MESSAGES[decided.refused[0][1]])
        return flag_answer(visit, selection, conflict=why, status=HTTPStatus.CONFLICT)
    notice_fields = {REVIEW_FIELD: decided.review_ids[0]}
    try:
        return _show_next(visit, selection, flag, notice_fields)
    except DatabaseUnavailable:
        # The decision is stored; an error page would suggest otherwise.
        return visit.redirect("/", **selection.fields, **notice_fields)


def show_next(visit: SignedInVisit) -> Response:
    """Leave a flag, and show the next one."""
    return _show_next(visit, selection_in(visit.query, visit.context.cutter), requested_flag(visit), {})


def leave(visit: SignedInVisit) -> Response:
    """Leave a flag, and go back to the queue."""
    flag_id, person_id = visit.path_parameters["flag_id"], visit.person.person_id
    visit.context.database.write(lambda c: claims.leave(c, flag_id, person_id))
    return visit.redirect("/", **selection_in(visit.query, visit.context.cutter).fields)


def close(visit: SignedInVisit) -> Response:
    """Leave a flag whose page was closed, unless the page was opened again in the meantime."""
    flag_id, opened_ms = visit.path_parameters["flag_id"], visit.form.integer("opened_ms")
    claims.close(visit.context.database, flag_id, visit.person.person_id, opened_ms)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _show_next(
    visit: SignedInVisit, selection: QueueSelection, flag: FlagRow, notice_fields: Mapping[str, int]
) -> Response:
    """Claim and show the next flag that nobody else has open, or show the queue if no other flag is open.

    If other people have all remaining flags open, show the first of these without a claim.
    """
    context, person_id = visit.context, visit.person.person_id
    following = claims.next_flag(
        context.database, selection.filters, selection.order, flag, person_id, context.now_ms()
    )
    if following is None:
        return visit.redirect("/", **selection.fields, **notice_fields)
    with_others = {} if following.is_free else {OPENED_BY_OTHERS_FIELD: 1}
    return visit.redirect(f"/flags/{following.flag_id}", **selection.fields, **notice_fields, **with_others)


def add_note(visit: SignedInVisit) -> Response:
    """Store a note."""
    text = visit.form.text("text", NOTE_CHARS_MAX)
    flag, selection = requested_flag(visit), selection_of(visit.form, visit.context.cutter)
    if not text:
        why = visit.language.gettext(N_("The note is empty and was not saved."))
        return flag_answer(visit, selection, conflict=why, status=HTTPStatus.BAD_REQUEST)
    now_ms = visit.context.now_ms()

    def add(connection: Connection) -> None:
        discussion.add_note(connection, flag.flag_id, visit.person.person_id, text, now_ms)
        visit.add_audit_entry(
            connection, "flag.note", at_ms=now_ms, subject=flag.article_id, flag_id=flag.flag_id, why=text
        )

    visit.context.database.write(add)
    return visit.redirect(flag_href(flag.flag_id, selection))


def undo(visit: SignedInVisit) -> Response:
    """Undo a decision of this person, and show its flag again."""
    review_id, now_ms = visit.path_parameters["review_id"], visit.context.now_ms()
    selection = selection_of(visit.form, visit.context.cutter)
    with visit.context.database.read_connection() as connection:
        review = own_review(connection, visit.person.person_id, review_id)
    if review is None:
        raise not_found()

    _undo(visit, lambda _: [review], now_ms)
    return visit.redirect(f"/flags/{review.flag_id}", **selection.fields, **{REVIEW_FIELD: review_id})


def _undo(visit: SignedInVisit, chosen: Callable[[Connection], Sequence[OwnReview]], now_ms: int) -> None:
    """Undo decisions of this person in one transaction. Raises ``PageError`` if none can be undone."""

    def undo_chosen(connection: Connection) -> int:
        reviews = {review.review_id: review for review in chosen(connection)}
        undone_ids = decisions.undo(connection, list(reviews), visit.person.person_id, now_ms)
        for review in map(reviews.__getitem__, undone_ids):
            visit.add_audit_entry(
                connection, "flag.undo", at_ms=now_ms, subject=review.article_id, flag_id=review.flag_id
            )
        return len(undone_ids)

    if not visit.context.database.write(undo_chosen):
        message = N_("This can no longer be undone: the decision is final, or was already undone. Nothing was changed.")
        raise PageError(HTTPStatus.CONFLICT, message)


def _decision_in(fields: Fields) -> Decision:
    """Return the decision in a form. Raises ``PageError`` if it is invalid."""
    sent = fields.text("decision")
    for decision in get_args(Decision):
        if sent == decision:
            known: Decision = decision
            return known
    raise PageError(HTTPStatus.BAD_REQUEST, N_("A decision must be right, wrong or skip."))


def _submitted_decision(form: Fields) -> SubmittedDecision:
    """Return decision, note and reason in a form. Raises ``PageError``."""
    decision = _decision_in(form)
    # The field applies to *wrong* only, but browsers send it with every button.
    reason_id = chosen_reason(form) if decision == "wrong" else None
    return SubmittedDecision(decision, form.text("note", NOTE_CHARS_MAX), reason_id)


def _decide(visit: SignedInVisit, flag_ids: Sequence[int], submitted: SubmittedDecision, now_ms: int) -> DecisionResult:
    """Decide about flags, with an audit entry for each. Raises ``PageError`` for an invalid reason."""
    undo_ms = round(visit.context.section.undo_s * MS_PER_S)
    decision, note, reason_id = submitted

    def decide_with_audit(connection: Connection) -> DecisionResult:
        reason = None if reason_id is None else reasons.choice_numbered(connection, reason_id).name
        decided = decisions.decide(
            connection, flag_ids, visit.person.person_id, decision, note, now_ms, undo_ms, reason_id
        )
        action, why = f"flag.{decision}", reasons.with_note(reason, note)
        for flag_id, article_id in sorted(decided.article_ids.items()):
            visit.add_audit_entry(connection, action, at_ms=now_ms, subject=article_id, flag_id=flag_id, why=why)
        return decided

    with reason_errors_as_pages():
        decided = visit.context.database.write(decide_with_audit)
    visit.context.hooks.report(FlagsDecided(decision, len(decided.review_ids)))
    return decided


def decide_selected(visit: SignedInVisit) -> Response:
    """Decide about the selected flags of a page of the queue, and show that page again."""
    form = visit.form
    submitted, selection = _submitted_decision(form), selection_of(form, visit.context.cutter)
    flag_ids = form.integers("flag")
    if not flag_ids:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("No flag is selected. Go back, select some, and decide again."))
    check_flag_count(flag_ids, selected_max(visit.context.section))
    fields = decide_together(visit, flag_ids, submitted)
    return visit.redirect("/", **selection.fields, after=form.text("after") or None, **fields)


def undo_selected(visit: SignedInVisit) -> Response:
    """Undo a decision about flags that were selected in the queue."""
    selection = selection_of(visit.form, visit.context.cutter)
    return visit.redirect("/", **selection.fields, **{DECIDED_AT_FIELD: undo_at(visit, None)})


def check_flag_count(flag_ids: Sequence[int], most: int) -> None:
    """Raise ``PageError`` if a form has more flags than may be decided together."""
    if len(flag_ids) > most:
        message = N_("At most %(most)s flags can be decided together. Nothing was decided. Select fewer.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=most)


def confirm(visit: SignedInVisit) -> Response:
    """Show what would be decided, and ask for confirmation."""
    decision = _decision_about_many(visit.query)
    with visit.context.database.read_connection() as connection:
        story = requested_story(visit, connection)
        flags = _open_flags(visit, connection, story.story_id)
        versions = root_versions(connection, [story.root_id])
        choices = reasons.choices(connection)
    found = articles_named(visit.context, versions.items())
    return visit.page(
        "story_decide.html",
        heading=visit.language.gettext(HEADINGS[decision]),
        decision=decision,
        story=story,
        root=next(iter(found.articles.values()), None),
        count=len(flags),
        choices=choices,
        up_to=max((flag.flag_id for flag in flags), default=0),
    )


def decide_all(visit: SignedInVisit) -> Response:
    """Decide about the flags that the confirmation page showed."""
    _decision_about_many(visit.form)
    submitted = _submitted_decision(visit.form)
    up_to, shown_max = visit.form.integer("up_to"), visit.form.integer("count")
    with visit.context.database.read_connection() as connection:
        story = requested_story(visit, connection)
        # If the story was merged into another one, that one has flags that the person did not see.
        is_shown = story.story_id == visit.path_parameters["story_id"]
        flags = _open_flags(visit, connection, story.story_id) if is_shown else []
        flags = [flag for flag in flags if flag.flag_id <= up_to]
    if len(flags) > shown_max:
        # Flags as old as these were added: a story was merged into this one, or decisions were undone.
        message = N_("The flags of the story have changed since you opened the page. Nothing was decided. Look again.")
        raise PageError(HTTPStatus.CONFLICT, message)
    fields = decide_together(visit, [flag.flag_id for flag in flags], submitted)
    return visit.redirect(f"/stories/{story.story_id}", **fields)


def decide_together(
    visit: SignedInVisit, flag_ids: Sequence[int], submitted: SubmittedDecision
) -> dict[str, int | None]:
    """Decide about several flags; return the query fields of the notice. Raises ``PageError`` if none was decided."""
    now_ms = visit.context.now_ms()
    decided = _decide(visit, flag_ids, submitted, now_ms)
    if not decided.review_ids:
        message = N_("Nothing was decided: all of these flags were already decided, or no longer exist.")
        raise PageError(HTTPStatus.CONFLICT, message)
    gone = sum(why == "gone" for _, why in decided.refused)
    return {DECIDED_AT_FIELD: now_ms, REFUSED_FIELD: len(decided.refused) - gone or None, GONE_FIELD: gone or None}


def undo_all(visit: SignedInVisit) -> Response:
    """Undo a decision about all open flags of a story."""
    with visit.context.database.read_connection() as connection:
        # The story may have been merged since.
        story_id = requested_story(visit, connection).story_id
    at_ms = undo_at(visit, story_id)
    return visit.redirect(f"/stories/{story_id}", **{DECIDED_AT_FIELD: at_ms})


def undo_at(visit: SignedInVisit, story_id: int | None) -> int:
    """Undo the decisions made at the time in the form, and return that time. Raises ``PageError``.

    Without ``story_id``, the flags may belong to several stories.
    """
    at_ms = visit.form.integer("at_ms")
    _undo(visit, lambda c: own_reviews_at(c, visit.person.person_id, story_id, at_ms), visit.context.now_ms())
    return at_ms


def _decision_about_many(fields: Fields) -> Decision:
    decision = _decision_in(fields)
    if decision not in HEADINGS:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Several flags together can only be right or wrong."))
    return decision


def _open_flags(visit: SignedInVisit, connection: Connection, story_id: int) -> list[FlagRow]:
    """Return the open flags of a story, oldest first, at most as many as one decision may cover."""
    filters = Filters(state="open", kind="flag", story_id=story_id)
    rows_max = visit.context.section.reviewed_at_once_max
    return list(queue.page(connection, filters, "oldest", rows_max, None).rows)
