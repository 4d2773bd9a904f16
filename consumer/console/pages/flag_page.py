"""The page of one flag: both texts side by side, why it was flagged, its story and its history."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import PlainTextResponse, Response

from consumer.console.context import ConsoleContext
from consumer.console.faults import N_, PageError, not_found
from consumer.console.i18n import Language
from consumer.console.kind_words import WORDS
from consumer.console.mentioned_items import ITEMS_MAX, MentionedItem, chosen_item, mentioned_items
from consumer.console.pages.bank_choice import bank_choice
from consumer.console.pages.decision_notice import DecisionNotice, decision_notice, review_notice
from consumer.console.pages.look_up.pair_texts import pair_keywords, pair_texts
from consumer.console.pages.look_up.related import related_parts
from consumer.console.pages.queue_filters import QueueSelection, selection_in
from consumer.console.pages.repairs.repaired import split_line
from consumer.console.pages.rule_advice import advice
from consumer.console.pages.sources.preferred_line import read_preferred
from consumer.console.pages.standing.standing_words import mute_href
from consumer.console.pages.stored_articles import StoryRow, articles_of, story_rows
from consumer.console.rendering import moment
from consumer.console.verdict_words import reasons
from consumer.console.visit import SignedInVisit
from consumer.reviews import discussion, queue, stories
from consumer.reviews.database import Connection
from consumer.reviews.decisions import Decision
from consumer.reviews.discussion import DiscussionEntry
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.kinds.rules import RULES, Kind
from consumer.reviews.moderation import claims
from consumer.reviews.moderation import reasons as list_of_reasons
from consumer.reviews.standing.standing_decisions import StandingDecision, in_force
from consumer.text.visible import paragraphs

AROUND_MAX: Final = 3
"""The maximum number of copies of the story that a flag's page lists before the flag, and after it."""
OPENED_BY_OTHERS_FIELD: Final = "with_others"
"""Query field: set if other people have all remaining flags open."""
SIDES: Final = ("article", "original")
ITEM: Final = "item"
"""Query field: the bank item to show, if an entry matches several."""


def show_flag(visit: SignedInVisit) -> Response:
    """Show a flag."""
    return flag_answer(visit, selection_in(visit.query, visit.context.cutter))


def flag_answer(
    visit: SignedInVisit, selection: QueueSelection, *, conflict: str = "", status: HTTPStatus = HTTPStatus.OK
) -> Response:
    """Record that the flag in the path is open, and return its page; ``conflict`` says why an action was refused."""
    context, now_ms = visit.context, visit.context.now_ms()
    with context.database.read_connection() as connection:
        flag = _read_requested(visit, connection)
        viewers = claims.viewers(connection, flag.flag_id)
        before, has_next = _neighbours(connection, selection, flag)
        story = stories.story_by_id(connection, flag.story_id)
        around = stories.flags_around(connection, flag, AROUND_MAX)
        members = None if story is None or not story.copies else read_preferred(connection, [story])
        history = discussion.history(connection, flag.flag_id)
        items = _items(context, connection, flag)
        choices = list_of_reasons.choices(connection)
        notice = decision_notice(visit, connection) or _undoable_decision(visit, connection, history)
        muted = _muted(visit, connection, flag)
        split = split_line(connection, flag)
    others = claims.record_opening(context.database, viewers, flag.flag_id, visit.person.person_id, now_ms)
    found = articles_of(context, [flag], bodies=True)
    article, item = found.article(flag), chosen_item(items, visit.query.text(ITEM))
    related = related_parts([article, found.original(flag)], _story_ids(flag, around))
    others_named = [*related.named, *(() if members is None else members.named)]
    named = articles_of(context, around, others=others_named, known=found.articles)
    original = found.original(flag) if RULES[flag.kind].has_original else item and item.view
    texts = pair_texts((flag.article_id, flag.original_id), (article, original), visit.query.integer("part", 1))
    verdict = article.verdict if article else None

    return visit.page(
        "flag.html",
        status=status,
        flag=flag,
        texts=texts,
        article=texts.article,
        original=texts.original,
        part_href=lambda number: _query(selection, item, part=number),
        keywords=pair_keywords(article, original),
        reasons=reasons(context, visit.language, flag, verdict, [each.mention for each in items]),
        items=items[:ITEMS_MAX],
        items_left_out=max(len(items) - ITEMS_MAX, 0),
        item=item,
        item_href=lambda of: f"{_query(selection, of)}#item",
        text_query=f"?{urlencode(item_field(item))}" if item else "",
        choices=choices,
        story=story,
        around=story_rows(around, named),
        related=related.articles(named),
        preferred=None if story is None or members is None else members.line(story.story_id, named),
        split=split,
        can_be_split=StoryRow(flag, article).can_be_split,
        history=[_history_entry(visit, flag.kind, entry, now_ms) for entry in history],
        advice=advice(flag.source, flag.original_source),
        others=others,
        selection=selection,
        before_href=None if before is None else flag_href(before, selection),
        leave_href=flag_href(flag.flag_id, selection, "/leave"),
        opened_ms=now_ms,
        after_href=flag_href(flag.flag_id, selection, "/next") if has_next else None,
        all_with_others=bool(others) and OPENED_BY_OTHERS_FIELD in visit.query,
        store_is_away=found.is_away,
        decision=notice,
        banks=bank_choice(visit),
        muted=muted,
        mute_href=mute_href(flag.source, flag.original_source) if RULES[flag.kind].releases else None,
        conflict=conflict,
    )


def _query(selection: QueueSelection, item: MentionedItem | None, **more: int) -> str:
    return f"?{urlencode({**selection.fields, **item_field(item), **more})}"


def show_text(visit: SignedInVisit) -> Response:
    """Return the whole text of one of the two articles, or of the matched bank item."""
    if visit.path_parameters["side"] not in SIDES:
        raise not_found()
    flag = requested_flag(visit)
    is_of_item = visit.path_parameters["side"] == "original" and not RULES[flag.kind].has_original
    if is_of_item:
        return _item_text(visit, flag)
    found = articles_of(visit.context, [flag], bodies=True)
    view = found.article(flag) if visit.path_parameters["side"] == "article" else found.original(flag)
    if found.is_away:
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, N_("The store does not answer. Try again."))
    if view is None or view.body is None:
        raise not_found()
    return PlainTextResponse(paragraphs(view.body, len(view.body)))


def _item_text(visit: SignedInVisit, flag: FlagRow) -> Response:
    with visit.context.database.read_connection() as connection:
        items = _items(visit.context, connection, flag)
    chosen = chosen_item(items, visit.query.text(ITEM))
    if chosen is None or chosen.item is None:
        raise not_found()
    return PlainTextResponse(paragraphs(chosen.item.text, len(chosen.item.text)))


def item_field(item: MentionedItem | None) -> dict[str, str]:
    """Return the query fields that name an item."""
    return {} if item is None else {ITEM: item.name}


def flag_href(flag_id: int, selection: QueueSelection, more: str = "") -> str:
    """Return the address of a flag within a selection of the queue, with ``more`` appended to its path."""
    path = f"/flags/{flag_id}{more}"
    return f"{path}?{selection.query}" if selection.query else path


def requested_flag(visit: SignedInVisit) -> FlagRow:
    """Return the flag in the path. Raises ``PageError`` if it does not exist."""
    with visit.context.database.read_connection() as connection:
        return _read_requested(visit, connection)


def _read_requested(visit: SignedInVisit, connection: Connection) -> FlagRow:
    flag = queue.flag(connection, visit.path_parameters["flag_id"])
    if flag is None:
        raise not_found()
    return flag


def _items(context: ConsoleContext, connection: Connection, flag: FlagRow) -> Sequence[MentionedItem]:
    """Return the bank items that an entry names. An entry that has an original does not name items."""
    if RULES[flag.kind].has_original:
        return ()
    return mentioned_items(context, connection, [flag.flag_id]).get(flag.flag_id, ())


def _undoable_decision(
    visit: SignedInVisit, connection: Connection, history: Sequence[DiscussionEntry]
) -> DecisionNotice | None:
    """Return the last decision about the flag if this person made it and can undo it, else None."""
    last = [entry for entry in history if entry.decision is not None and entry.undone_ms is None][-1:]
    notice = review_notice(visit, connection, last[0].entry_id) if last else None
    return notice if notice is not None and notice.can_be_undone else None


def _neighbours(connection: Connection, selection: QueueSelection, flag: FlagRow) -> tuple[int | None, bool]:
    """Return the open flag before this one in the selection, if any, and whether any other flag is open."""
    before = queue.open_before(connection, selection.filters, selection.order, flag)
    return before, before is not None or bool(queue.open_after(connection, selection.filters, selection.order, flag, 1))


def _story_ids(flag: FlagRow, around: Sequence[FlagRow]) -> set[str]:
    """Return the ids of the story's articles on the page of a flag."""
    return {article_id for each in (flag, *around) for article_id in (each.article_id, each.original_id, each.root_id)}


def _muted(visit: SignedInVisit, connection: Connection, flag: FlagRow) -> StandingDecision | None:
    """Return the standing decision that mutes the two sources of a flag, or None if they are not muted."""
    pair = (flag.source, flag.original_source)
    standing = in_force(connection, visit.context.now_ms())
    return next((each for each in standing if (each.source, each.original_source) == pair != (None, None)), None)


class FlagHistoryEntry(NamedTuple):
    """A decision or a note in the history of a flag. ``outcome`` says what became of it, or is "".

    ``standing`` is the decision if a standing decision of the person made it, else None.
    """

    name: str
    outcome: str
    person: str
    at_ms: int
    # None if no reason was chosen.
    reason: str | None
    text: str
    is_undone: bool
    standing: Decision | None = None


def _history_entry(visit: SignedInVisit, kind: Kind, entry: DiscussionEntry, now_ms: int) -> FlagHistoryEntry:
    language = visit.language
    if entry.decision is None:
        return FlagHistoryEntry(
            language.gettext(N_("Note")), "", entry.person, entry.at_ms, None, entry.text, is_undone=False
        )
    name = language.gettext(WORDS[kind].decisions[entry.decision])
    outcome = _outcome(visit, kind, entry, now_ms)
    is_undone, standing = entry.undone_ms is not None, entry.decision if entry.is_standing else None
    return FlagHistoryEntry(name, outcome, entry.person, entry.at_ms, entry.reason, entry.text, is_undone, standing)


def _outcome(visit: SignedInVisit, kind: Kind, entry: DiscussionEntry, now_ms: int) -> str:
    language = visit.language
    if entry.undone_ms is not None:
        return _with_time(language, N_("undone %(time)s"), entry.undone_ms)
    if entry.decision != "wrong" or not RULES[kind].releases:
        return ""
    if entry.sent_ms is not None:
        return _with_time(language, N_("released %(time)s"), entry.sent_ms)
    if entry.refused is not None:
        return language.gettext(N_("could not be released: %(why)s"), why=entry.refused)
    return _release_status(visit, entry, now_ms)


def _release_status(visit: SignedInVisit, entry: DiscussionEntry, now_ms: int) -> str:
    """Return when a release will be sent, or why it waits."""
    language, path = visit.language, visit.context.warnings().unwritable
    if path is not None:
        return language.gettext(N_("the release is waiting: this console cannot write to %(path)s"), path=path)
    if entry.final_ms is not None and now_ms < entry.final_ms:
        return _with_time(language, N_("will be released %(time)s"), entry.final_ms)
    return language.gettext(N_("final; the release is on its way"))


def _with_time(language: Language, message: str, at_ms: int) -> Markup:
    sentence = language.gettext(message, time=moment(language, at_ms))
    return Markup(sentence)  # noqa: S704  # from the catalogue, with a time
