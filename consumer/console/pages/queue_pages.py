"""The queue, and updates for a page of it that is open in a browser."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.config.sections.console import ConsoleSection
from consumer.console.context import ArticleView
from consumer.console.faults import N_, PageError
from consumer.console.kind_words import WORDS
from consumer.console.mentioned_items import MentionedItem, mentioned_items
from consumer.console.pages.decision_notice import bulk_decision_notice, decision_notice
from consumer.console.pages.queue_filters import ANY, QueueSelection, selection_in
from consumer.console.pages.stored_articles import articles_of
from consumer.console.search_report import search_report
from consumer.console.visit import SignedInVisit
from consumer.reviews import queue
from consumer.reviews.database import Connection
from consumer.reviews.discussion import Decider, deciders
from consumer.reviews.flag_row import UNDECIDED, FlagRow, State
from consumer.reviews.moderation import reasons
from consumer.reviews.moderation.claims import open_elsewhere
from consumer.reviews.paging import BadCursor
from consumer.reviews.portable import ID_BYTES_MAX
from consumer.reviews.queries.scope import Hits
from consumer.reviews.queue import Filters
from consumer.reviews.search import COUNTED_MAX, Count, total

SOURCES_MAX: Final = 500
"""The maximum number of sources that a browser suggests while people type. Others are found by part of their names."""
SIMILAR_SOURCES_MAX: Final = 20
"""The maximum number of sources that are offered for part of a name."""
CHANGES_EVERY_MS: Final = 20_000
"""How often a visible page of the queue asks for updates."""

STATE_NAMES: Final = {
    "open": N_("Open"),
    "skipped": N_("Skipped"),
    "right": N_("Right"),
    "wrong": N_("Wrong"),
    "released": N_("Released elsewhere"),
    ANY: N_("All"),
}
ORDER_NAMES: Final = {
    "certainty": N_("Least certain first"),
    "newest": N_("Newest first"),
    "oldest": N_("Oldest first"),
    "similarity": N_("Most similar first"),
}
KIND_NAMES: Final[Mapping[str, str]] = {"": N_("all"), **{str(kind): words.plural for kind, words in WORDS.items()}}


class QueueRow(NamedTuple):
    """A row of the queue. ``others`` are other people who have the flag open.

    ``items`` are the bank items that the flag names. ``standing_of`` is the person whose standing decision decided the
    flag, or "" if no standing decision did.
    """

    flag: FlagRow
    article: ArticleView | None
    original: ArticleView | None
    others: tuple[str, ...]
    items: Sequence[MentionedItem]
    standing_of: str

    @property
    def can_be_decided(self) -> bool:
        """Whether the flag can be selected, to be decided together with others."""
        return self.flag.state in UNDECIDED


class Tab(NamedTuple):
    """A link to another view of the same page."""

    name: str
    href: str
    is_here: bool


class StateTab(NamedTuple):
    """A link to the queue in another state, with its number of flags."""

    state: str
    name: str
    href: str
    flags: Count
    is_here: bool


class SourceSuggestions(NamedTuple):
    """An unknown source in a filter, and links to sources with similar names."""

    name: str
    similar: Sequence[tuple[str, str]]


class RowStatus(NamedTuple):
    """A row on an open page. ``is_decided``: its state is no longer that of the page.

    ``decided_by`` is None if the row still has the state of the page, or if no person decided it.
    """

    flag: FlagRow
    is_decided: bool
    decided_by: Decider | None
    others: tuple[str, ...]


def show_queue(visit: SignedInVisit) -> Response:
    """Show a page of the queue."""
    context = visit.context
    selection = selection_in(visit.query, visit.context.cutter)
    cursor = visit.query.text("after") or None
    with context.database.read_connection() as connection:
        page = _page(visit, connection, selection, cursor)
        counts = queue.counts(connection)
        tabs = _tabs(visit, connection, selection, page.hits)
        latest_id = queue.latest_flag_id(connection)
        sources = queue.source_names(connection, SOURCES_MAX + 1)
        guesses = [] if page.rows else _source_suggestions(connection, selection)
        similar = [] if page.rows else _similar_sources(connection, selection, "q", "source", q="")
        choices = reasons.choices(connection)
        ids = [flag.flag_id for flag in page.rows]
        others = open_elsewhere(connection, ids, visit.person.person_id, context.now_ms())
        items = mentioned_items(context, connection, ids)
        decided_by = deciders(connection, [flag.flag_id for flag in page.rows if flag.state in {"right", "wrong"}])
        standing_of = {flag_id: decider.person for flag_id, decider in decided_by.items() if decider.is_standing}
        notice = decision_notice(visit, connection) or bulk_decision_notice(visit, connection, None, "/flags/undo")
        report = search_report(context, connection, selection.filters, page)
    found = articles_of(context, page.rows)
    return visit.page(
        "queue.html",
        rows=[
            QueueRow(
                flag,
                found.article(flag),
                found.original(flag),
                others.get(flag.flag_id, ()),
                items.get(flag.flag_id, ()),
                standing_of.get(flag.flag_id, ""),
            )
            for flag in page.rows
        ],
        counts=counts,
        tabs=tabs,
        selection=selection,
        page_at=cursor or "",
        choices=choices,
        selectable=min(sum(flag.state in UNDECIDED for flag in page.rows), selected_max(context.section)),
        before_href=None if page.before is None else f"/?{selection.with_fields(after=page.before)}",
        after_href=None if page.after is None else f"/?{selection.with_fields(after=page.after)}",
        changes_href=f"/queue/changes?{selection.with_fields(after_flag=str(latest_id))}",
        changes_every_ms=CHANGES_EVERY_MS,
        is_partial=page.is_partial,
        is_first=cursor is None,
        # Browsers do not mark invisible characters in suggestions.
        sources=[name for name in sources[:SOURCES_MAX] if name.isprintable()],
        sources_max=SOURCES_MAX if len(sources) > SOURCES_MAX else None,
        guesses=guesses,
        similar_sources=similar,
        store_is_away=found.is_away,
        decision=notice,
        report=report,
        orders=_options(visit, ORDER_NAMES),
        kinds=_options(visit, KIND_NAMES),
    )


def find_flag(visit: SignedInVisit) -> Response:
    """Redirect to the flag of a version; other programs link to it by article id and version."""
    article_id, version = (visit.query.exact(name, ID_BYTES_MAX) for name in ("id", "version"))
    with visit.context.database.read_connection() as connection:
        flag_id = queue.flag_of_version(connection, article_id, version)
    if flag_id is None:
        message = N_("The console has no flag for this version. A new flag takes a few seconds to arrive.")
        raise PageError(HTTPStatus.NOT_FOUND, message)
    return visit.redirect(f"/flags/{flag_id}")


def selected_max(section: ConsoleSection) -> int:
    """Return how many flags can be selected: a page, or fewer if a decision may cover fewer."""
    return min(section.page_rows, section.reviewed_at_once_max)


def show_changes(visit: SignedInVisit) -> Response:
    """Return the updates of an open page of the queue: counts, new flags, and who decided or opened its rows."""
    context, query = visit.context, visit.query
    selection = selection_in(query, visit.context.cutter)
    ids = query.integers("flag")
    if len(ids) > context.section.page_rows:
        message = N_("A page of the queue has at most %(most)s flags.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=context.section.page_rows)
    with context.database.read_connection() as connection:
        return visit.page(
            "queue_changes.html",
            counts=queue.counts(connection),
            tabs=_tabs(visit, connection, selection) if queue.is_counted_whole(selection.filters) else [],
            new=_new_flags(connection, selection.filters, query.integer("after_flag", 0)),
            new_href=f"/?{selection.with_fields(order='newest')}",
            changes=_changes(visit, connection, selection.filters.state, ids),
        )


def _new_flags(connection: Connection, filters: Filters, after_flag: int) -> Count:
    """Return how many flags arrived after the flag ``after_flag``; 0 unless the page is for open or all flags."""
    return Count(0) if filters.state not in {None, "open"} else queue.count_new(connection, filters, after_flag)


def _changes(visit: SignedInVisit, connection: Connection, state: State | None, ids: Sequence[int]) -> list[RowStatus]:
    """Return the status of rows on a page of this state. On a page of all states (None), no row counts as decided."""
    flags = queue.flags(connection, ids)
    left = {flag.flag_id for flag in flags if state not in {None, flag.state}}
    people = deciders(connection, [flag.flag_id for flag in flags if flag.flag_id in left and flag.state != "open"])
    others = open_elsewhere(connection, ids, visit.person.person_id, visit.context.now_ms())
    return [
        RowStatus(flag, flag.flag_id in left, people.get(flag.flag_id), others.get(flag.flag_id, ())) for flag in flags
    ]


def _source_suggestions(connection: Connection, selection: QueueSelection) -> list[SourceSuggestions]:
    """Return the unknown sources in the filters, each with sources of similar names."""
    guesses = []
    for name in ("source", "original_source"):
        similar = _similar_sources(connection, selection, name, name)
        if similar:
            guesses.append(SourceSuggestions(selection.field(name), similar))
    return guesses


def _similar_sources(
    connection: Connection, selection: QueueSelection, given: str, field: str, **changed: str
) -> list[tuple[str, str]]:
    """Return sources whose names contain the field ``given``, with links that put them into ``field``."""
    similar = queue.similar_sources(connection, selection.field(given), SIMILAR_SOURCES_MAX)
    return [(each, f"/?{selection.with_fields(**changed, **{field: each})}") for each in similar]


def _page(
    visit: SignedInVisit, connection: Connection, selection: QueueSelection, cursor: str | None
) -> queue.QueuePage:
    try:
        return queue.page(connection, selection.filters, selection.order, visit.context.section.page_rows, cursor)
    except BadCursor as error:
        message = N_("This page of the queue does not exist. Start at the first page.")
        raise PageError(HTTPStatus.BAD_REQUEST, message) from error


def _tabs(
    visit: SignedInVisit, connection: Connection, selection: QueueSelection, hits: Hits | None = None
) -> list[StateTab]:
    counts: dict[str, Count] = dict(queue.state_counts(connection, selection.filters, hits).items())
    together = total(counts.values())
    counts[ANY] = together if queue.is_counted_whole(selection.filters) else together.cut(COUNTED_MAX)
    return [
        StateTab(
            state,
            visit.language.gettext(name),
            f"/?{selection.with_fields(state=state)}",
            counts[state],
            is_here=selection.field("state") == state,
        )
        for state, name in STATE_NAMES.items()
    ]


def _options(visit: SignedInVisit, names: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(value, visit.language.gettext(name)) for value, name in names.items()]
