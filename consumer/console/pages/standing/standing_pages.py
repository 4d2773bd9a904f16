"""Standing decisions: lists them, makes them for a story or a pair of sources, and ends them."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.console.context import ArticleView
from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.reasons_page import chosen_reason, reason_errors_as_pages
from consumer.console.pages.standing.standing_words import (
    DEFAULT_S,
    done_fields,
    duration_choices,
    duration_ms_in,
    standing_notice,
)
from consumer.console.pages.stored_articles import articles_named
from consumer.console.pages.story_pages import requested_story
from consumer.console.visit import Fields, SignedInVisit
from consumer.reviews.audit import NewAuditEntry, add_entries
from consumer.reviews.database import Connection
from consumer.reviews.decisions import NOTE_CHARS_MAX
from consumer.reviews.moderation import reasons
from consumer.reviews.moderation.reasons import with_note
from consumer.reviews.sources import source_id
from consumer.reviews.standing import standing_decisions
from consumer.reviews.standing.standing_decisions import (
    IN_FORCE_MAX,
    DuplicateStandingDecision,
    NewStandingDecision,
    OwnerDisabled,
    StandingDecision,
    StandingDecisionEnded,
    StandingRevocation,
    TooManyStandingDecisions,
    UnknownStandingDecision,
)
from consumer.reviews.stories import root_versions
from consumer.text.timestamps import rfc3339
from storage.clock import MS_PER_DAY

LISTED_MS: Final = 30 * MS_PER_DAY
"""How long the list shows a standing decision after its end."""
RECORD_MS: Final = 7 * MS_PER_DAY
"""The time span before now for which the mute page summarises a pair's flags."""
SOURCE_CHARS_MAX: Final = 2_000
_REFUSAL_MESSAGES: Final[Mapping[type[Exception], str]] = {
    DuplicateStandingDecision: N_(
        "There is already a standing decision about this. Nothing was changed. Stop it first."
    ),
    TooManyStandingDecisions: N_(
        "At most %(most)s standing decisions can be in force together. Nothing was changed. Stop one first."
    ),
    OwnerDisabled: N_("Your account was disabled. Nothing was changed."),
    StandingDecisionEnded: N_("This standing decision has already ended. Nothing was changed."),
}


class StandingRow(NamedTuple):
    """A standing decision in the list; ``root`` is the original of its story, if the store has it."""

    standing: StandingDecision
    root: ArticleView | None


def show_standing(visit: SignedInVisit) -> Response:
    """Show the standing decisions in force, and those that ended recently."""
    now_ms = visit.context.now_ms()
    with visit.context.database.read_connection() as connection:
        running = standing_decisions.in_force(connection, now_ms)[::-1]
        ended = standing_decisions.ended_since(connection, now_ms - LISTED_MS, now_ms)
        roots = [each.root_id for each in (*running, *ended) if each.root_id is not None]
        versions = root_versions(connection, roots)
    articles = articles_named(visit.context, versions.items()).articles

    def rows(listed: Sequence[StandingDecision]) -> list[StandingRow]:
        return [
            StandingRow(each, articles.get((each.root_id or "", versions.get(each.root_id or "", ""))))
            for each in listed
        ]

    return visit.page("standing.html", running=rows(running), ended=rows(ended), notice=standing_notice(visit))


def begin_for_story(visit: SignedInVisit) -> Response:
    """Decide that all further copies of a story are right."""
    form, now_ms = visit.form, visit.context.now_ms()
    duration_ms, note = duration_ms_in(form, "right"), form.text("note", NOTE_CHARS_MAX)
    with visit.context.database.read_connection() as connection:
        story = requested_story(visit, connection)
    _begin(
        visit,
        NewStandingDecision("right", visit.person.person_id, now_ms + duration_ms, note, story_id=story.story_id),
        now_ms,
    )
    return visit.redirect(f"/stories/{story.story_id}", **done_fields("begun"))


def confirm_mute(visit: SignedInVisit) -> Response:
    """Show what muting a pair of sources would do, and ask for confirmation."""
    now_ms = visit.context.now_ms()
    with visit.context.database.read_connection() as connection:
        source, original_source = _pair_in(visit.query, connection)
        record = standing_decisions.pair_history(connection, (source, original_source), now_ms - RECORD_MS)
        muted = [
            each
            for each in standing_decisions.in_force(connection, now_ms)
            if (each.source_id, each.original_source_id) == (source, original_source)
        ]
        choices = reasons.choices(connection)
    return visit.page(
        "mute.html",
        source=visit.query.exact("source", SOURCE_CHARS_MAX),
        original_source=visit.query.exact("original_source", SOURCE_CHARS_MAX),
        record=record,
        muted=muted[0] if muted else None,
        choices=choices,
        lasts=duration_choices(visit, "wrong"),
        default=str(DEFAULT_S),
    )


def mute(visit: SignedInVisit) -> Response:
    """Mute a pair of sources: decide that its flags are wrong as they arrive."""
    form, now_ms = visit.form, visit.context.now_ms()
    ends_ms, note = now_ms + duration_ms_in(form, "wrong"), form.text("note", NOTE_CHARS_MAX)
    reason_id = chosen_reason(form)
    with visit.context.database.read_connection() as connection:
        sources = _pair_in(form, connection)
    _begin(
        visit, NewStandingDecision("wrong", visit.person.person_id, ends_ms, note, reason_id, sources=sources), now_ms
    )
    return visit.redirect("/standing", **done_fields("muted"))


def end(visit: SignedInVisit) -> Response:
    """End a standing decision, whoever made it, and show the page of the form again."""
    now_ms, story_id = visit.context.now_ms(), visit.form.integer("story_id", 0)

    def end_with_audit_entries(connection: Connection) -> StandingRevocation:
        ending = standing_decisions.end(connection, visit.path_parameters["standing_id"], now_ms)
        standing = ending.standing
        why = f"{standing.decision}, of {standing.person}: {len(ending.reopened)} taken back, {ending.kept} final"
        visit.add_audit_entry(connection, "standing.end", at_ms=now_ms, subject=standing.subject, why=why)
        undone = [
            NewAuditEntry(now_ms, visit.person.name, visit.address, "flag.undo", flag.article_id, flag.flag_id)
            for flag in ending.reopened
        ]
        add_entries(connection, undone)
        return ending

    try:
        ending = visit.context.database.write(end_with_audit_entries)
    except UnknownStandingDecision as error:
        raise not_found() from error
    except StandingDecisionEnded as error:
        raise _refusal(error) from error
    return visit.redirect(f"/stories/{story_id}" if story_id else "/standing", **done_fields("ended", ending))


def _begin(visit: SignedInVisit, new: NewStandingDecision, now_ms: int) -> None:
    """Make a standing decision, and record it in the audit log. Raises ``PageError``."""

    def begin_with_audit_entry(connection: Connection) -> None:
        reason = None if new.reason_id is None else reasons.choice_numbered(connection, new.reason_id).name
        made = standing_decisions.begin(connection, new, now_ms)
        why = with_note(f"{new.decision} until {rfc3339(new.ends_ms)}", with_note(reason, new.note))
        visit.add_audit_entry(connection, "standing.begin", at_ms=now_ms, subject=made.subject, why=why)

    try:
        with reason_errors_as_pages():
            visit.context.database.write(begin_with_audit_entry)
    except (DuplicateStandingDecision, TooManyStandingDecisions, OwnerDisabled) as error:
        raise _refusal(error) from error


def _refusal(error: Exception) -> PageError:
    return PageError(HTTPStatus.CONFLICT, _REFUSAL_MESSAGES[type(error)], most=IN_FORCE_MAX)


def _pair_in(fields: Fields, connection: Connection) -> tuple[int, int]:
    """Return the ids of the two sources in a query or a form. Raises ``PageError``."""
    names = [fields.exact(name, SOURCE_CHARS_MAX) for name in ("source", "original_source")]
    source, original_source = (source_id(connection, name) if name else None for name in names)
    if source is None or original_source is None:
        message = N_("Only sources of flags can be muted. Choose a pair on the page Sources.")
        raise PageError(HTTPStatus.BAD_REQUEST, message)
    return source, original_source
