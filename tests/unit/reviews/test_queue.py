"""Pages of the queue: every order and every filter, beside what sorting and filtering all rows gives."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, get_args

import pytest

from consumer.reviews import queue, search
from consumer.reviews.database import Database
from consumer.reviews.decisions import Decision, decide
from consumer.reviews.flag_row import STATES, FlagRow
from consumer.reviews.kinds.rules import KINDS
from consumer.reviews.moderation import claims
from consumer.reviews.paging import BadCursor, Cursor, decode_cursor, encode_cursor
from consumer.reviews.queries.scope import Seeker
from consumer.reviews.queue import ORDERS, Filters, Order, QueuePage
from consumer.reviews.search import Count
from consumer.reviews.word_index import parts, results
from consumer.reviews.word_index.results import QueueSearch
from consumer.reviews.word_index.words import Terms
from tests.examples import drawn
from tests.unit.reviews.made import (
    NOW_MS,
    add,
    add_matches,
    add_missed,
    add_person,
    add_repeats,
    bank_match,
    denied,
    flagged,
    near_miss,
    read,
    released,
    repeat_of_ended,
    rows_of,
    write,
)

ALL_ORDERS: Final[tuple[Order, ...]] = get_args(Order)
FLAGS_MADE: Final = 50


@pytest.fixture
def filled(database: Database) -> Database:
    """Flags of all states, in a few stories and sources, many of them equal in what they are sorted by."""
    events = [
        flagged(
            f"copy-{n:02}",
            f"original-{n % 4}",
            similarity=None if n % 11 == 0 else round(0.7 + n % 5 / 20, 4),
            at_ms=NOW_MS + n * 7 % 30,
            sources=(f"source-{n % 3}", None if n % 13 == 0 else f"source-{n % 2}"),
        )
        for n in range(FLAGS_MADE)
    ]
    add(database, *events, *(released(event) for event in events[::9]))
    add_missed(database, *(near_miss(f"near-{n}", f"original-{n % 2}", similarity=0.7 + n / 100) for n in range(9)))
    add_repeats(database, *(repeat_of_ended(f"again-{n}", f"original-{n % 2}", similarity=None) for n in range(3)))
    add_matches(database, *(bank_match(f"known-{n}", denied("offer", 0.7 + n / 10)) for n in range(3)))
    ids = [row.flag_id for row in rows_of(database).values()]
    person_id = add_person(database, "Ann").person_id
    choices: dict[Decision, list[int]] = {"right": ids[3::8], "wrong": ids[4::8], "skip": ids[5::8]}
    for decision, chosen in choices.items():
        write(database, decide, chosen, person_id, decision, "", NOW_MS, 0)
    return database


def some_filters(story_id: int) -> list[Filters]:
    """Filters of each sort, alone and together."""
    anything = Filters(state=None)
    few = [
        anything,
        Filters(),
        Filters(kind="near_miss"),
        Filters(kind="ended_before"),
        Filters(kind="bank_match"),
        Filters(kind="flag", state="wrong"),
        replace(anything, source="source-1"),
        replace(anything, source="source-1", original_source="source-0"),
        replace(anything, original_source="source-1", kind="flag"),
        replace(anything, source="nobody's"),
        replace(anything, story_id=story_id),
        replace(anything, story_id=-1),
        replace(anything, story_id=story_id, source="source-2", original_source="source-0"),
    ]
    ranges: list[dict[str, float | int]] = [
        {},
        {"similarity_min": 0.75},
        {"similarity_min": 0.2, "similarity_max": 0.8},
        {"arrived_from_ms": NOW_MS + 10},
        {"arrived_from_ms": NOW_MS + 5, "arrived_to_ms": NOW_MS + 20, "similarity_min": 0.75, "similarity_max": 0.85},
    ]
    return [replace(filters, **range_) for filters, range_ in product(few, ranges)]  # type: ignore[arg-type]


def expected(rows: Sequence[FlagRow], filters: Filters, order: Order) -> list[str]:
    """The articles that match, in order."""
    way = ORDERS[order]
    return [row.article_id for row in sorted(rows, key=way.key, reverse=way.is_descending) if _matches(row, filters)]


def _matches(row: FlagRow, filters: Filters) -> bool:
    similarity_given = filters.similarity_min is not None or filters.similarity_max is not None
    return (
        filters.state in {None, row.state}
        and filters.kind in {None, row.kind}
        and filters.source in {None, row.source}
        and filters.original_source in {None, row.original_source}
        and filters.story_id in {None, row.story_id}
        and not (similarity_given and row.similarity is None)
        and (filters.similarity_min is None or (row.similarity or 0) >= filters.similarity_min)
        and (filters.similarity_max is None or (row.similarity or 0) <= filters.similarity_max)
        and (filters.arrived_from_ms is None or row.arrived_ms >= filters.arrived_from_ms)
        and (filters.arrived_to_ms is None or row.arrived_ms < filters.arrived_to_ms)
    )


def walked(database: Database, filters: Filters, order: Order, rows_max: int) -> list[QueuePage]:
    """All pages from the first to the last."""
    pages: list[QueuePage] = []
    after: str | None = None
    with database.read_connection() as connection:
        while not pages or after is not None:
            pages.append(queue.page(connection, filters, order, rows_max, after))
            after = pages[-1].after
    return pages


def articles(pages: Sequence[QueuePage]) -> list[str]:
    """The articles of these pages, in order."""
    return [row.article_id for page in pages for row in page.rows]


@pytest.fixture(params=["by index", "row by row", "sorted"])
def _way_of_searching(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let limits be so small that each way of searching is used."""
    if request.param != "by index":
        monkeypatch.setattr(search, "SORTED_MAX", 0 if request.param == "row by row" else 1_000)
        monkeypatch.setattr(search, "EXAMINED_MAX", 40)


@pytest.mark.usefixtures("_way_of_searching")
@pytest.mark.parametrize("order", ALL_ORDERS)
def test_pages_have_each_row_that_matches_once_and_in_order(filled: Database, order: Order) -> None:
    """Whatever is asked for, and whether an index has it, or rows are looked at."""
    rows = list(rows_of(filled).values())
    story_id = rows[0].story_id
    for filters in drawn(some_filters(story_id), 8):
        pages = walked(filled, filters, order, 17)
        assert articles(pages) == expected(rows, filters, order), filters
        assert all(len(page.rows) == 17 or page.is_partial for page in pages[:-1]), filters


MANY, SOME, NOWHERE = 1, 2, 3
"""Words by their numbers."""


@pytest.mark.parametrize("sorted_max", [0, 2_000])
def test_a_search_is_a_filter_like_others(filled: Database, sorted_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags are found by words while they are undecided, by the beginning of an id, and by their source, in any order.

    A page that stops in between says so.
    """
    if not sorted_max:
        monkeypatch.setattr(search, "SORTED_MAX", sorted_max)
        monkeypatch.setattr(search, "EXAMINED_MAX", 150)
        monkeypatch.setattr(results, "_WALKED_FIRST", 7)
    rows = list(rows_of(filled).values())
    words = {row.flag_id: {MANY} | ({SOME} if row.flag_id % 5 == 0 else set()) for row in rows if row.flag_id % 7}
    for some in (words.keys(), [0]):
        write(filled, parts.add_part, {flag_id: words.get(flag_id, {SOME}) for flag_id in some}, NOW_MS)
    searches = [
        QueueSearch(text, Terms(terms, terms, is_cut=False))
        for text in ("nothing", "copy-1", "original-2", "source-1")
        for terms in ((), (MANY,), (SOME, MANY), (NOWHERE,))
    ]
    for filters, search_, order in drawn(list(product(some_filters(rows[0].story_id), searches, ALL_ORDERS)), 100):
        chosen = [
            row
            for row in rows
            if (search_.terms and search_.terms.words and row.state in {"open", "skipped"} and row.flag_id in words
                and words[row.flag_id].issuperset(search_.terms.words))
            or row.article_id.startswith(search_.text)
            or row.original_id.startswith(search_.text)
            or row.source == search_.text
        ]  # fmt: skip
        pages = walked(filled, replace(filters, search=search_), order, 17)
        assert articles(pages) == expected(chosen, filters, order), (filters, search_, order)
        assert all(len(page.rows) == 17 or page.is_partial for page in pages[:-1]), filters
        for state, count in read(filled, queue.state_counts, replace(filters, search=search_)).items():
            wanted = expected(chosen, replace(filters, state=state), order)
            assert count.rows == len(wanted) or not count.is_exact, (filters, search_, state)


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_pages_lead_back(filled: Database, order: Order) -> None:
    """Page by page, to the first one, which is a whole page."""
    filters = Filters(state=None)
    pages = walked(filled, filters, order, 10)
    back: list[QueuePage] = [pages[-1]]
    with filled.read_connection() as connection:
        while back[-1].before is not None:
            back.append(queue.page(connection, filters, order, 10, back[-1].before))
            assert back[-1].after is not None
            assert queue.page(connection, filters, order, 10, back[-1].after).rows[0] == back[-2].rows[0]
    assert [page.rows for page in back[::-1]] == [page.rows for page in pages]
    assert pages[0].before is None


def test_a_page_looks_at_so_many_rows_and_no_more(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has not looked at is for the next page, which it names."""
    monkeypatch.setattr(search, "SORTED_MAX", 0)
    monkeypatch.setattr(search, "EXAMINED_MAX", 3)
    filters = Filters(state="open", kind="flag", similarity_min=0.9, similarity_max=0.9)
    page = read(filled, queue.page, filters, "newest", 50)
    assert (len(page.rows) < 3, page.is_partial, page.after is not None) == (True, True, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "WyJhZnRlciIsMSwx",
        "A" * 300,
        "é",
        encode_cursor(Cursor("after", 1e300, 1)),
        encode_cursor(Cursor("after", 1, -1)),
    ],
)
def test_what_is_no_place_is_refused(filled: Database, text: str) -> None:
    """Links are changed by people, too."""
    with pytest.raises(BadCursor):
        read(filled, queue.page, Filters(), "newest", 5, text)


def test_a_place_of_another_order_does_no_harm(filled: Database) -> None:
    """It is just another place."""
    for order, key in product(ALL_ORDERS, (0.5, 0, 10**15, -1)):
        place = encode_cursor(Cursor("after", key, 3))
        assert decode_cursor(place).key == key
        read(filled, queue.page, Filters(state=None), order, 5, place)


def test_open_flags_before_and_after_one(filled: Database) -> None:
    """They follow in the same order and filter; after the last one comes the first; some may be left out."""
    filters = Filters(kind="flag", source="source-1")
    rows = rows_of(filled)
    order = expected(list(rows.values()), filters, "certainty")
    for this, following in zip(order, [*order[1:], order[0]], strict=True):
        found = read(filled, queue.open_after, filters, "certainty", rows[this], 1)
        assert found == [rows[following].flag_id]
        before = read(filled, queue.open_before, filters, "certainty", rows[following])
        assert before == (None if following == order[0] else rows[this].flag_id)
    others = [rows[name].flag_id for name in (*order[3:], *order[:2])]
    assert read(filled, queue.open_after, filters, "certainty", rows[order[2]], 1_000) == others
    ann = add_person(filled, "Ann at her desk").person_id
    for opened, left in ((others[1:4], [others[0], others[4]]), (others, [])):
        for flag_id in opened:
            write(filled, claims.open_flag, flag_id, ann, NOW_MS)
        for person, found in ((ann + 1, left), (ann, others[:2])):
            seeker = Seeker(person, NOW_MS - 1)
            assert read(filled, queue.open_after, filters, "certainty", rows[order[2]], 2, seeker) == found
    only = replace(filters, arrived_from_ms=rows[order[0]].arrived_ms, similarity_min=0.0)
    single = [name for name in order if _matches(rows[name], replace(only, source="nobody's"))]
    assert single == []
    assert read(filled, queue.open_after, replace(only, source="nobody's"), "newest", rows[order[0]], 1) == []


def test_a_flag_that_alone_is_open_has_no_next_one(database: Database) -> None:
    """Also not itself."""
    add(database, flagged("b", "a"))
    (row,) = rows_of(database).values()
    assert read(database, queue.open_after, Filters(), "certainty", row, 1) == []


def test_counts_are_as_long_as_the_lists(filled: Database) -> None:
    """Of every state, for every filter."""
    story_id = rows_of(filled)["copy-01"].story_id
    for filters in drawn(some_filters(story_id), 5):
        found = read(filled, queue.state_counts, filters)
        for state in STATES:
            wanted = replace(filters, state=state)
            listed = read(filled, queue.page, wanted, "oldest", 1_000).rows
            assert found[state] == Count(len(listed)), wanted


@pytest.mark.parametrize(
    "range_", [{}, {"similarity_min": 0.1, "arrived_from_ms": NOW_MS, "arrived_to_ms": NOW_MS + 99}]
)
def test_no_more_is_counted_than_so_many(
    filled: Database, monkeypatch: pytest.MonkeyPatch, range_: dict[str, Any]
) -> None:
    """A count says that there are at least so many, and no more entries of an index are looked at than may be."""
    filters = Filters(original_source="source-1", **range_)
    exact = read(filled, queue.state_counts, filters)["open"]
    monkeypatch.setattr(search, "COUNTED_MAX", exact.rows)
    assert read(filled, queue.state_counts, filters)["open"] == exact
    monkeypatch.setattr(search, "COUNTED_MAX", exact.rows - 1)
    assert read(filled, queue.state_counts, filters)["open"] == Count(exact.rows - 1, is_exact=False)
    monkeypatch.setattr(search, "COUNT_EXAMINED_MAX", 2)
    examined = read(filled, queue.state_counts, filters)["open"]
    assert not examined.is_exact
    assert examined.rows <= (2 if range_ else exact.rows - 1)


def test_what_came_since_is_counted(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same filters; of many only so many are looked at."""
    since = read(filled, queue.latest_flag_id)
    assert read(filled, queue.count_new, Filters(), since) == Count(0)
    add(filled, flagged("new-1", "original-1"), flagged("new-2", "original-9", sources=("source-1", "x")))
    add_missed(filled, near_miss("new-3", "original-1", similarity=0.5))
    story_id = rows_of(filled)["new-2"].story_id
    for filters in drawn(some_filters(story_id), 5):
        listed = read(filled, queue.page, filters, "oldest", 1_000).rows
        new = [row for row in listed if row.flag_id > since]
        assert read(filled, queue.count_new, filters, since) == Count(len(new)), filters
    monkeypatch.setattr(search, "NEW_EXAMINED_MAX", 2)
    assert read(filled, queue.count_new, Filters(), since) == Count(2, is_exact=False)
    assert read(filled, queue.count_new, Filters(source="nobody's"), since) == Count(0)


def test_counts(filled: Database) -> None:
    """Of each state, other kinds apart, and the oldest flag that is open."""
    rows = rows_of(filled).values()
    flags = [row for row in rows if row.kind == "flag"]
    counts = read(filled, queue.counts)
    for state in ("open", "skipped", "right", "wrong", "released"):
        assert getattr(counts, state) == sum(row.state == state for row in flags), state
    for kind, open_ in counts.others_open.items():
        assert open_ == sum(row.state == "open" for row in rows if row.kind == kind), kind
    assert counts.all_open == sum(row.state == "open" for row in rows)
    assert counts.oldest_open_ms == min(row.arrived_ms for row in flags if row.state == "open")


def test_an_empty_queue(database: Database) -> None:
    """Nothing is counted, and there is nothing to show."""
    assert read(database, queue.counts) == queue.QueueCounts(0, 0, 0, 0, 0, dict.fromkeys(KINDS[1:], 0), None)
    assert read(database, queue.page, Filters(), "certainty", 5) == QueuePage((), None)
    assert read(database, queue.flag, 1) is None
    assert read(database, queue.source_names, 5) == []


def test_names_of_sources_are_in_order_and_without_the_empty_one(database: Database) -> None:
    """By their characters' numbers, on every machine alike."""
    add(database, flagged("c", "b", sources=("Z", "")), flagged("d", "b", sources=("a", "é")))
    assert read(database, queue.source_names, 9) == ["Z", "a", "é"]
    assert read(database, queue.source_names, 1) == ["Z"]
