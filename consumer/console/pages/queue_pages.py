"""The queue: flags to look at, and what has changed of a page of it that somebody has open."""

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
from consumer.console.pages.queue_filters import ANY, QueueSelection, wanted_in
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
"""Sources that a browser offers while somebody types; a part of the name of any other one finds it."""
SIMILAR_SOURCES_MAX: Final = 20
"""Sources that are offered for a part of a name."""
CHANGES_EVERY_MS: Final = 20_000
"""How often an open page of the queue asks what has changed, while somebody can see it."""

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
    """A row of the queue. ``others`` have the flag open at this moment, ``items`` are those that it names of banks.

    ``standing_of`` is whose standing decision decided it, "" where none did.
    """

    flag: FlagRow
    article: ArticleView | None
    original: ArticleView | None
    others: tuple[str, ...]
    items: Sequence[MentionedItem]
    standing_of: str

    @property
    def can_be_decided(self) -> bool:
        """Whether it can be selected, to be decided with others."""
        return self.flag.state in UNDECIDED


class Tab(NamedTuple):
    """A link to the same page for something else."""

    name: str
    href: str
    is_here: bool


class StateTab(NamedTuple):
    """A link to the queue in another state, and how many flags it lists."""

    state: str
    name: str
    href: str
    flags: Count
    is_here: bool


class SourceSuggestions(NamedTuple):
    """A source in a filter that no flag has, and links to sources with similar names."""

    name: str
    similar: Sequence[tuple[str, str]]


class RowStatus(NamedTuple):
    """A row that somebody has open. ``decided_by`` is None where no person decided it, or it is in its state still."""

    flag: FlagRow
    is_decided: bool
    decided_by: Decider | None
    others: tuple[str, ...]


def show_queue(asked: SignedInVisit) -> Response:
    """Show a page of the queue."""
    desk = asked.desk
    wanted = wanted_in(asked.query, asked.desk.cutter)
    place = asked.query.text("after") or None
    with desk.database.reading() as connection:
        page = _page(asked, connection, wanted, place)
        counts = queue.counts(connection)
        tabs = _tabs(asked, connection, wanted, page.hits)
        latest_id = queue.latest_flag_id(connection)
        sources = queue.source_names(connection, SOURCES_MAX + 1)
        guesses = [] if page.rows else _guesses(connection, wanted)
        similar = [] if page.rows else _similar(connection, wanted, "q", "source", q="")
        choices = reasons.choices(connection)
        ids = [flag.flag_id for flag in page.rows]
        others = open_elsewhere(connection, ids, asked.person.person_id, desk.now_ms())
        items = mentioned_items(desk, connection, ids)
        decided_by = deciders(connection, [flag.flag_id for flag in page.rows if flag.state in {"right", "wrong"}])
        standing_of = {flag_id: decider.person for flag_id, decider in decided_by.items() if decider.is_standing}
        said = decision_notice(asked, connection) or bulk_decision_notice(asked, connection, None, "/flags/undo")
        report = search_report(desk, connection, wanted.filters, page)
    found = articles_of(desk, page.rows)
    return asked.page(
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
        wanted=wanted,
        page_at=place or "",
        choices=choices,
        selectable=min(sum(flag.state in UNDECIDED for flag in page.rows), selected_max(desk.section)),
        before_href=None if page.before is None else f"/?{wanted.but(after=page.before)}",
        after_href=None if page.after is None else f"/?{wanted.but(after=page.after)}",
        changes_href=f"/queue/changes?{wanted.but(after_flag=str(latest_id))}",
        changes_every_ms=CHANGES_EVERY_MS,
        is_partial=page.is_partial,
        is_first=place is None,
        # The browser shows them as they are.
        sources=[name for name in sources[:SOURCES_MAX] if name.isprintable()],
        sources_max=SOURCES_MAX if len(sources) > SOURCES_MAX else None,
        guesses=guesses,
        similar_sources=similar,
        store_is_away=found.is_away,
        decision=said,
        report=report,
        orders=_named(asked, ORDER_NAMES),
        kinds=_named(asked, KIND_NAMES),
    )


def find_flag(asked: SignedInVisit) -> Response:
    """Lead to the flag of a version, which other programs name by the article's id and the version."""
    article_id, version = (asked.query.exact(name, ID_BYTES_MAX) for name in ("id", "version"))
    with asked.desk.database.reading() as connection:
        flag_id = queue.flag_of_version(connection, article_id, version)
    if flag_id is None:
        message = N_("The console has no flag of this version. A new flag takes a few seconds to arrive.")
        raise PageError(HTTPStatus.NOT_FOUND, message)
    return asked.redirect(f"/flags/{flag_id}")


def selected_max(section: ConsoleSection) -> int:
    """Return how many flags can be selected: a page of them, unless fewer may be decided at once."""
    return min(section.page_rows, section.reviewed_at_once_max)


def show_changes(asked: SignedInVisit) -> Response:
    """Return what an open page of the queue shows in place: counts, what is new, and who decided or opened its rows."""
    desk, query = asked.desk, asked.query
    wanted = wanted_in(query, asked.desk.cutter)
    ids = query.integers("flag")
    if len(ids) > desk.section.page_rows:
        message = N_("A page of the queue has at most %(most)s flags.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=desk.section.page_rows)
    with desk.database.reading() as connection:
        return asked.page(
            "queue_changes.html",
            counts=queue.counts(connection),
            tabs=_tabs(asked, connection, wanted) if queue.is_counted_whole(wanted.filters) else [],
            new=_new(connection, wanted.filters, query.integer("after_flag", 0)),
            new_href=f"/?{wanted.but(order='newest')}",
            changes=_changes(asked, connection, wanted.filters.state, ids),
        )


def _new(connection: Connection, filters: Filters, after_flag: int) -> Count:
    """Return how many flags came since; all of them are open."""
    return Count(0) if filters.state not in {None, "open"} else queue.count_new(connection, filters, after_flag)


def _changes(asked: SignedInVisit, connection: Connection, state: State | None, ids: Sequence[int]) -> list[RowStatus]:
    """Return what became of rows. Where a page lists all states, its rows say theirs already."""
    flags = queue.flags(connection, ids)
    left = {flag.flag_id for flag in flags if state not in {None, flag.state}}
    people = deciders(connection, [flag.flag_id for flag in flags if flag.flag_id in left and flag.state != "open"])
    others = open_elsewhere(connection, ids, asked.person.person_id, asked.desk.now_ms())
    return [
        RowStatus(flag, flag.flag_id in left, people.get(flag.flag_id), others.get(flag.flag_id, ())) for flag in flags
    ]


def _guesses(connection: Connection, wanted: QueueSelection) -> list[SourceSuggestions]:
    """Return each source of a filter that no flag has, with those that somebody may have meant."""
    guesses = []
    for name in ("source", "original_source"):
        similar = _similar(connection, wanted, name, name)
        if similar:
            guesses.append(SourceSuggestions(wanted.field(name), similar))
    return guesses


def _similar(
    connection: Connection, wanted: QueueSelection, given: str, field: str, **changed: str
) -> list[tuple[str, str]]:
    """Return sources that what is given in a field may mean, with links to the queue that has them in another field."""
    similar = queue.similar_sources(connection, wanted.field(given), SIMILAR_SOURCES_MAX)
    return [(each, f"/?{wanted.but(**changed, **{field: each})}") for each in similar]


def _page(asked: SignedInVisit, connection: Connection, wanted: QueueSelection, place: str | None) -> queue.QueuePage:
    try:
        return queue.page(connection, wanted.filters, wanted.order, asked.desk.section.page_rows, place)
    except BadCursor as error:
        message = N_("This page of the queue cannot be found. Begin at the first page.")
        raise PageError(HTTPStatus.BAD_REQUEST, message) from error


def _tabs(
    asked: SignedInVisit, connection: Connection, wanted: QueueSelection, hits: Hits | None = None
) -> list[StateTab]:
    counts: dict[str, Count] = dict(queue.state_counts(connection, wanted.filters, hits).items())
    together = total(counts.values())
    counts[ANY] = together if queue.is_counted_whole(wanted.filters) else together.cut(COUNTED_MAX)
    return [
        StateTab(
            state,
            asked.language.gettext(name),
            f"/?{wanted.but(state=state)}",
            counts[state],
            is_here=wanted.field("state") == state,
        )
        for state, name in STATE_NAMES.items()
    ]


def _named(asked: SignedInVisit, names: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(value, asked.language.gettext(name)) for value, name in names.items()]
