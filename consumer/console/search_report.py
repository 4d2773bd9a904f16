"""Describes a search in the queue: how many texts were searched, and how flags were found."""

from dataclasses import dataclass

from consumer.console.context import ConsoleContext
from consumer.reviews.database import Connection
from consumer.reviews.flag_row import UNDECIDED, tally
from consumer.reviews.kinds.rules import KINDS
from consumer.reviews.queries.scope import Hits
from consumer.reviews.queue import Filters, QueuePage
from consumer.reviews.word_index.parts import indexed_count
from consumer.reviews.word_index.results import IDS_MAX
from consumer.reviews.word_index.waiting import waiting_count
from consumer.reviews.word_index.words import TERMS_MAX, TEXT_CHARS_MAX


@dataclass(frozen=True, slots=True)
class SearchReport:
    """A search as its page describes it. ``has_index``: the words of texts are indexed.

    ``indexed`` and ``waiting`` are numbers of flags, or None if no texts were searched.
    """

    text: str
    hits: Hits
    has_index: bool
    indexed: int | None
    waiting: int | None
    ids_max: int = IDS_MAX
    words_max: int = TERMS_MAX
    chars_max: int = TEXT_CHARS_MAX


def search_report(
    context: ConsoleContext, connection: Connection, filters: Filters, page: QueuePage
) -> SearchReport | None:
    """Return the description of a page's search, or None without a search."""
    if filters.search is None or page.hits is None:
        return None
    has_index = context.cutter is not None
    if not has_index or filters.state not in {*UNDECIDED, None}:
        return SearchReport(filters.search.text, page.hits, has_index, None, None)
    counts = tally(connection)
    undecided = sum(counts[kind, state] for kind in KINDS for state in UNDECIDED)
    indexed = min(indexed_count(connection), undecided)
    # Some of the waiting flags may have been decided in the meantime.
    waiting = min(waiting_count(connection), undecided)
    return SearchReport(filters.search.text, page.hits, has_index, indexed, waiting)
