"""The queue: flags to look at."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.console.context import ArticleView
from consumer.console.faults import N_, PageError
from consumer.console.pages.queue_filters import ANY, Wanted, wanted_in
from consumer.console.pages.said import said_of_decision
from consumer.console.pages.stored_articles import articles_of
from consumer.console.visit import Asked
from consumer.reviews import queue
from consumer.reviews.database import Connection
from consumer.reviews.discussion import open_elsewhere
from consumer.reviews.flag_row import STATES, FlagRow
from consumer.reviews.paging import BadCursor
from consumer.reviews.portable import ID_BYTES_MAX
from consumer.reviews.queue import Counts

SOURCES_MAX: Final = 500
"""Sources that a browser offers while somebody types."""

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
KIND_NAMES: Final = {
    "": N_("Flags and near misses"),
    "flag": N_("Flags"),
    "near_miss": N_("Near misses"),
}


class Row(NamedTuple):
    """A row of the queue. ``others`` have the flag open at this moment."""

    flag: FlagRow
    article: ArticleView | None
    original: ArticleView | None
    others: tuple[str, ...]


class Tab(NamedTuple):
    """A link to the same page for something else; ``flags`` is how many are there, None where it is not counted."""

    name: str
    href: str
    flags: int | None
    is_here: bool


def show_queue(asked: Asked) -> Response:
    """Show a page of the queue."""
    desk = asked.desk
    wanted = wanted_in(asked.query)
    place = asked.query.text("after") or None
    with desk.database.reading() as connection:
        page = _page(asked, connection, wanted, place)
        counts = queue.counts(connection)
        sources = queue.source_names(connection, SOURCES_MAX)
        ids = [flag.flag_id for flag in page.rows]
        others = open_elsewhere(connection, ids, asked.person.person_id, desk.now_ms())
        said = said_of_decision(asked, connection)
    found = articles_of(desk, page.rows)
    return asked.page(
        "queue.html",
        rows=[Row(flag, found.article(flag), found.original(flag), others.get(flag.flag_id, ())) for flag in page.rows],
        counts=counts,
        tabs=_tabs(asked, counts, wanted),
        wanted=wanted,
        before_href=None if page.before is None else f"/?{wanted.but(after=page.before)}",
        after_href=None if page.after is None else f"/?{wanted.but(after=page.after)}",
        is_partial=page.is_partial,
        is_first=place is None,
        # The browser shows them as they are.
        sources=[name for name in sources if name.isprintable()],
        store_is_away=found.is_away,
        decision=said,
        orders=_named(asked, ORDER_NAMES),
        kinds=_named(asked, KIND_NAMES),
    )


def find_flag(asked: Asked) -> Response:
    """Lead to the flag of a version, which other programs name by the article's id and the version."""
    article_id, version = (asked.query.exact(name, ID_BYTES_MAX) for name in ("id", "version"))
    with asked.desk.database.reading() as connection:
        flag_id = queue.flag_of_version(connection, article_id, version)
    if flag_id is None:
        message = N_("The console has no flag of this version. A new flag takes a few seconds to arrive.")
        raise PageError(HTTPStatus.NOT_FOUND, message)
    return asked.redirect(f"/flags/{flag_id}")


def _page(asked: Asked, connection: Connection, wanted: Wanted, place: str | None) -> queue.Page:
    try:
        return queue.page(connection, wanted.filters, wanted.order, asked.desk.section.page_rows, place)
    except BadCursor as error:
        message = N_("This page of the queue cannot be found. Begin at the first page.")
        raise PageError(HTTPStatus.BAD_REQUEST, message) from error


def _tabs(asked: Asked, counts: Counts, wanted: Wanted) -> list[Tab]:
    # Counts are of the whole queue, so beside a filter they would mislead.
    counted: dict[str, int] = {} if wanted.narrows else {state: getattr(counts, state) for state in STATES}
    return [
        Tab(
            asked.language.gettext(name),
            f"/?{wanted.but(state=state)}",
            counted.get(state),
            is_here=wanted.field("state") == state,
        )
        for state, name in STATE_NAMES.items()
    ]


def _named(asked: Asked, names: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(value, asked.language.gettext(name)) for value, name in names.items()]
