"""The page of one flag: both texts side by side, why it was flagged, its story and its history.

Why a pair was flagged, or was not: the figures of its verdict beside what they were measured by, as sentences.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import PlainTextResponse, Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.i18n import Language
from consumer.console.kind_words import WORDS
from consumer.console.mentioned_items import ITEMS_MAX, MentionedItem, chosen_item, mentioned_items
from consumer.console.pages.bank_choice import bank_choice
from consumer.console.pages.decision_notice import DecisionNotice, decision_notice, review_notice
from consumer.console.pages.look_up.pair_texts import pair_keywords, pair_texts
from consumer.console.pages.queue_filters import QueueSelection, wanted_in
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
"""Copies of the story before a flag, and after it, that its page names."""
WITH_OTHERS: Final = "with_others"
"""The field of a query that is there where others have all flags open that could come next."""
SIDES: Final = ("article", "original")
ITEM: Final = "item"
"""The field of a query that names one of the items of banks that an entry names."""


def show_flag(asked: SignedInVisit) -> Response:
    """Show a flag."""
    return flag_answer(asked, wanted_in(asked.query, asked.desk.cutter))


def flag_answer(
    asked: SignedInVisit, wanted: QueueSelection, *, conflict: str = "", status: HTTPStatus = HTTPStatus.OK
) -> Response:
    """Answer with the page of the flag that the path names; ``conflict`` says why something was not done to it."""
    desk, now_ms = asked.desk, asked.desk.now_ms()
    flag = the_flag(asked)
    others = claims.look(desk.database, flag.flag_id, asked.person.person_id, now_ms)
    with desk.database.reading() as connection:
        before, has_next = _neighbours(connection, wanted, flag)
        story = stories.story(connection, flag.story_id)
        around = stories.around(connection, flag, AROUND_MAX)
        members = None if story is None or not story.copies else read_preferred(connection, [story])
        history = discussion.history(connection, flag.flag_id)
        items = mentioned_items(desk, connection, [flag.flag_id]).get(flag.flag_id, ())
        choices = list_of_reasons.choices(connection)
        said = decision_notice(asked, connection) or _still_open(asked, connection, history)
        muted = _muted(asked, connection, flag)
        split = split_line(connection, flag)
    found = articles_of(desk, [flag], bodies=True)
    named = articles_of(desk, around, others=() if members is None else members.named)
    article, original = found.article(flag), found.original(flag)
    item = chosen_item(items, asked.query.text(ITEM))
    if not RULES[flag.kind].has_original:
        original = None if item is None else item.view
    texts = pair_texts((flag.article_id, flag.original_id), (article, original), asked.query.integer("part", 1))
    verdict = article.verdict if article else None

    def part_href(number: int) -> str:
        return f"?{urlencode({**wanted.fields, **item_field(item), 'part': number})}"

    def item_href(of: MentionedItem) -> str:
        return f"?{urlencode({**wanted.fields, **item_field(of)})}#item"

    return asked.page(
        "flag.html",
        status=status,
        flag=flag,
        texts=texts,
        article=texts.article,
        original=texts.original,
        part_href=part_href,
        keywords=pair_keywords(article, original),
        reasons=reasons(desk, asked.language, flag, verdict, [each.mention for each in items]),
        items=items[:ITEMS_MAX],
        items_left_out=max(len(items) - ITEMS_MAX, 0),
        item=item,
        item_href=item_href,
        text_query=f"?{urlencode(item_field(item))}" if item else "",
        choices=choices,
        story=story,
        around=story_rows(around, named),
        preferred=None if story is None or members is None else members.line(story.story_id, named),
        split=split,
        can_be_split=StoryRow(flag, article).can_be_split,
        history=[_told(asked, flag.kind, said, now_ms) for said in history],
        advice=advice(flag.source, flag.original_source),
        others=others,
        wanted=wanted,
        before_href=None if before is None else flag_href(before, wanted),
        leave_href=flag_href(flag.flag_id, wanted, "/leave"),
        opened_ms=now_ms,
        after_href=flag_href(flag.flag_id, wanted, "/next") if has_next else None,
        all_with_others=bool(others) and WITH_OTHERS in asked.query,
        store_is_away=found.is_away,
        decision=said,
        banks=bank_choice(asked),
        muted=muted,
        mute_href=mute_href(flag.source, flag.original_source) if RULES[flag.kind].releases else None,
        conflict=conflict,
    )


def show_text(asked: SignedInVisit) -> Response:
    """Return the whole text of one of the two articles."""
    if asked.places["side"] not in SIDES:
        raise not_found()
    flag = the_flag(asked)
    is_of_item = asked.places["side"] == "original" and not RULES[flag.kind].has_original
    if is_of_item:
        return _item_text(asked, flag)
    found = articles_of(asked.desk, [flag], bodies=True)
    view = found.article(flag) if asked.places["side"] == "article" else found.original(flag)
    if found.is_away:
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, N_("The store with the texts does not answer. Try again."))
    if view is None or view.body is None:
        raise not_found()
    return PlainTextResponse(paragraphs(view.body, len(view.body)))


def _item_text(asked: SignedInVisit, flag: FlagRow) -> Response:
    with asked.desk.database.reading() as connection:
        items = mentioned_items(asked.desk, connection, [flag.flag_id]).get(flag.flag_id, ())
    chosen = chosen_item(items, asked.query.text(ITEM))
    if chosen is None or chosen.item is None:
        raise not_found()
    return PlainTextResponse(paragraphs(chosen.item.text, len(chosen.item.text)))


def item_field(item: MentionedItem | None) -> dict[str, str]:
    """Return the query that names an item."""
    return {} if item is None else {ITEM: item.name}


def flag_href(flag_id: int, wanted: QueueSelection, more: str = "") -> str:
    """Return the path of a flag within a part of the queue, or of ``more`` behind it."""
    path = f"/flags/{flag_id}{more}"
    return f"{path}?{wanted.query}" if wanted.query else path


def the_flag(asked: SignedInVisit) -> FlagRow:
    """Return the flag that the path names. Raises ``PageError`` where there is none."""
    with asked.desk.database.reading() as connection:
        flag = queue.flag(connection, asked.places["flag_id"])
    if flag is None:
        raise not_found()
    return flag


def _still_open(
    asked: SignedInVisit, connection: Connection, history: Sequence[DiscussionEntry]
) -> DecisionNotice | None:
    """Return one's own decision about the flag that is shown, as long as it can be undone."""
    last = [said for said in history if said.decision is not None and said.undone_ms is None][-1:]
    said = review_notice(asked, connection, last[0].entry_id) if last else None
    return said if said is not None and said.can_be_undone else None


def _neighbours(connection: Connection, wanted: QueueSelection, flag: FlagRow) -> tuple[int | None, bool]:
    """Return the open flag before one, None for none, and whether another one is open, in this part of the queue."""
    before = queue.open_before(connection, wanted.filters, wanted.order, flag)
    return before, before is not None or bool(queue.open_after(connection, wanted.filters, wanted.order, flag, 1))


def _muted(asked: SignedInVisit, connection: Connection, flag: FlagRow) -> StandingDecision | None:
    """Return the standing decision that mutes the two sources of a flag, None where there is none."""
    pair = (flag.source, flag.original_source)
    standing = in_force(connection, asked.desk.now_ms())
    return next((each for each in standing if (each.source, each.original_source) == pair != (None, None)), None)


class FlagHistoryEntry(NamedTuple):
    """One thing that somebody did. ``after`` says what became of it, "" where there is nothing to say.

    ``standing`` is what a standing decision of the person decided, None where they did it themselves.
    """

    said: str
    after: str
    person: str
    at_ms: int
    # Of the list, None where none was chosen.
    reason: str | None
    text: str
    is_undone: bool
    standing: Decision | None = None


def _told(asked: SignedInVisit, kind: Kind, said: DiscussionEntry, now_ms: int) -> FlagHistoryEntry:
    language = asked.language
    if said.decision is None:
        return FlagHistoryEntry(
            language.gettext(N_("Note")), "", said.person, said.at_ms, None, said.text, is_undone=False
        )
    name = language.gettext(WORDS[kind].decisions[said.decision])
    after = _after(asked, kind, said, now_ms)
    is_undone, standing = said.undone_ms is not None, said.decision if said.is_standing else None
    return FlagHistoryEntry(name, after, said.person, said.at_ms, said.reason, said.text, is_undone, standing)


def _after(asked: SignedInVisit, kind: Kind, said: DiscussionEntry, now_ms: int) -> str:
    language = asked.language
    if said.undone_ms is not None:
        return _at(language, N_("undone %(time)s"), said.undone_ms)
    if said.decision != "wrong" or not RULES[kind].releases:
        return ""
    if said.sent_ms is not None:
        return _at(language, N_("released %(time)s"), said.sent_ms)
    if said.refused is not None:
        return language.gettext(N_("could not be released: %(why)s"), why=said.refused)
    return _of_due(asked, said, now_ms)


def _of_due(asked: SignedInVisit, said: DiscussionEntry, now_ms: int) -> str:
    """Say when a release is sent, or why it waits."""
    language, path = asked.language, asked.desk.warnings().unwritable
    if path is not None:
        return language.gettext(N_("the release waits, since this console may not write %(path)s"), path=path)
    if said.final_ms is not None and now_ms < said.final_ms:
        return _at(language, N_("will be released %(time)s"), said.final_ms)
    return language.gettext(N_("final; the release is on its way"))


def _at(language: Language, message: str, at_ms: int) -> Markup:
    told = language.gettext(message, time=moment(language, at_ms))
    return Markup(told)  # noqa: S704  # from the catalogue, with a time
