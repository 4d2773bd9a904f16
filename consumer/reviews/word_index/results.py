"""Pages of search results, in every order and with every filter of the queue."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, RowMapping, select

from consumer.reviews import search
from consumer.reviews.flag_row import STATES, UNDECIDED, FlagRow, State, flag_row, flag_rows
from consumer.reviews.kinds.rules import KINDS
from consumer.reviews.paging import Cursor
from consumer.reviews.portable import ID_BYTES_MAX, portions
from consumer.reviews.queries.scope import KEYS, SINGLE_VALUE_COLUMNS, Hits, RowOrder, Scope
from consumer.reviews.search import Count, RowBatch, branches, read_rows, union_of
from consumer.reviews.sources import source_id
from consumer.reviews.tables import FLAGS
from consumer.reviews.word_index.pages import NO_NUMBERS, Numbers, is_among
from consumer.reviews.word_index.text_hits import text_hits
from consumer.reviews.word_index.words import Terms

IDS_MAX: Final = 1_000
"""The maximum number of flags found by their article's id, and of flags found by their original's id.

If more flags have an id that begins with the text, only equal ids are found.
"""
BEGINNING_MIN: Final = 3
"""Minimum length of a search text that may also match the beginning of an id."""
_WALKED_FIRST: Final = 500
_WALKED_GROWTH: Final = 4
_LAST_CHARACTER: Final = "\U0010ffff"


class QueueSearch(NamedTuple):
    """A search. ``terms`` is None if texts are not indexed."""

    text: str
    terms: Terms | None


class _Place(NamedTuple):
    key: float
    flag_id: int


def search_hits(connection: Connection, search_: QueueSearch) -> Hits:
    """Return the flags found by words of their texts, by an id or its beginning, and by the name of a source."""
    terms = search_.terms
    match = None if terms is None else text_hits(connection, terms)
    by_id, ids_cut = _flags_by_id(connection, search_.text)
    return Hits(
        by_text=NO_NUMBERS if match is None else match.flag_ids,
        by_id=by_id,
        source_id=source_id(connection, search_.text),
        by_characters=match is not None and match.by_characters,
        words_cut=terms is not None and terms.is_cut,
        ids_cut=ids_cut,
    )


def read_hits(
    connection: Connection, scope: Scope, row_order: RowOrder, rows_max: int, cursor: Cursor | None
) -> RowBatch:
    """Return up to ``rows_max`` hits after a cursor, as ``search.read_rows`` does."""
    hits = scope.hits
    assert hits is not None  # noqa: S101  # callers pass a scope with a search
    plain = replace(scope, hits=None)
    batches = [_batch_of_ids(connection, plain, row_order, rows_max, cursor, hits.by_id)]
    states = tuple(state for state in scope.states or STATES if state in UNDECIDED)
    if states:
        batches.append(
            _batch_of_ids(connection, replace(plain, states=states), row_order, rows_max, cursor, hits.by_text)
        )
    if hits.source_id is not None and scope.source_id in {None, hits.source_id}:
        batches.append(read_rows(connection, replace(plain, source_id=hits.source_id), row_order, rows_max, cursor))
    return _merge_batches(batches, row_order, rows_max)


def _merge_batches(batches: Sequence[RowBatch], row_order: RowOrder, rows_max: int) -> RowBatch:
    """Return the rows of several batches in order, up to the first place where one of them stopped."""
    rows = {row.flag_id: row for batch in batches for row in batch.rows}
    order = sorted(rows.values(), key=row_order.key, reverse=row_order.is_descending)
    stops = [_Place(batch.more.key, batch.more.row_id) for batch in batches if batch.more is not None]
    if stops:
        stop = max(stops) if row_order.is_descending else min(stops)
        order = [row for row in order if not row_order.is_after(row_order.key(row), stop)]
        if len(order) <= rows_max:
            return RowBatch(order, Cursor("after", *stop), is_partial=len(order) < rows_max)
    return search.cut(order, rows_max, row_order)


def hit_counts(connection: Connection, scope: Scope) -> dict[State, Count]:
    """Return how many hits are in each state, as ``search.counts`` does."""
    hits = scope.hits
    assert hits is not None  # noqa: S101  # callers pass a scope with a search
    row_order, most = RowOrder("certainty", is_descending=False), search.COUNTED_MAX
    found: dict[State, Count] = {}
    for state in scope.states or STATES:
        plain = replace(scope, hits=None, states=(state,))
        batches = [_places(connection, plain, row_order, most, None, hits.by_id)]
        if state in UNDECIDED:
            batches.append(_places(connection, plain, row_order, most, None, hits.by_text))
        if hits.source_id is not None and scope.source_id in {None, hits.source_id}:
            batches.append(_walk(connection, replace(plain, source_id=hits.source_id), row_order, most, None, None))
        flag_ids = {place.flag_id for places, _ in batches for place in places}
        is_exact = all(stop is None for _, stop in batches)
        found[state] = Count(len(flag_ids), is_exact).cut(most)
    return found


def _batch_of_ids(
    connection: Connection, scope: Scope, row_order: RowOrder, rows_max: int, cursor: Cursor | None, flag_ids: Numbers
) -> RowBatch:
    places, stop = _places(connection, scope, row_order, rows_max, cursor, flag_ids)
    has_more = len(places) > rows_max
    more = Cursor("after", *places[rows_max - 1]) if has_more else stop
    rows = _rows(connection, [place.flag_id for place in places[:rows_max]])
    ordered_rows = sorted(rows, key=row_order.key, reverse=row_order.is_descending)
    return RowBatch(ordered_rows, more, is_partial=more is not None and not has_more)


def _places(
    connection: Connection, scope: Scope, row_order: RowOrder, rows_max: int, cursor: Cursor | None, flag_ids: Numbers
) -> tuple[list[_Place], Cursor | None]:
    """Return the places, in order, of those flags that are in a scope and after a cursor.

    Also return where the scan stopped, if it did. If there are more than ``rows_max`` places, even more may follow.
    """
    if len(flag_ids) > search.SORTED_MAX:
        return _walk(connection, scope, row_order, rows_max, cursor, flag_ids)
    return sorted(
        _places_in_scope(connection, scope, row_order, cursor, flag_ids), reverse=row_order.is_descending
    ), None


def _places_in_scope(
    connection: Connection, scope: Scope, row_order: RowOrder, cursor: Cursor | None, flag_ids: Numbers
) -> Iterator[_Place]:
    """Yield the places of the given flags that are in a scope and after a cursor."""
    start = None if cursor is None else (cursor.key, cursor.row_id)
    columns = ("flag_id", "kind", "state", *SINGLE_VALUE_COLUMNS, *KEYS)
    for portion in portions(flag_ids.tolist()):
        # By number alone: with a condition on the state, SQLite would read all flags in that state.
        query = select(*(FLAGS.c[name] for name in columns)).where(FLAGS.c.flag_id.in_(portion))
        for row in connection.execute(query).mappings():
            place = _Place(row[row_order.by], row["flag_id"])
            if (start is None or row_order.is_after(place, start)) and _is_in(scope, row):
                yield place


def _is_in(scope: Scope, row: RowMapping) -> bool:
    return (
        row["flag_id"] not in scope.without
        and row["state"] in (scope.states or STATES)
        and row["kind"] in (scope.kinds or KINDS)
        and all(getattr(scope, name) in {None, row[name]} for name in SINGLE_VALUE_COLUMNS)
        and all(scope.range(key).contains(row[key]) for key in KEYS)
    )


def _walk(
    connection: Connection,
    scope: Scope,
    row_order: RowOrder,
    rows_max: int,
    cursor: Cursor | None,
    flag_ids: Numbers | None,
) -> tuple[list[_Place], Cursor | None]:
    """Scan a scope for the given flags, or for all if ``flag_ids`` is None.

    Return the first places of these flags, and where the scan stopped: None if it reached the end.
    """
    places: list[_Place] = []
    walked, size = 0, _WALKED_FIRST
    while len(places) <= rows_max and walked < search.EXAMINED_MAX:
        conditions = [
            *scope.range_conditions("certainty"),
            *scope.range_conditions("arrived_ms"),
            *(row_order.after_cursor() if cursor else []),
        ]
        if scope.story_id is not None:
            conditions += scope.source_conditions(FLAGS)
        some = union_of(branches(scope, row_order, conditions, size))
        query = select(some.c[row_order.by], some.c.flag_id).order_by(*row_order.order_by_columns(some)).limit(size)
        values = scope.values() | (row_order.cursor_values(cursor) if cursor else {})
        rows = [_Place(*row) for row in connection.execute(query, values)]
        if flag_ids is None:
            places += rows
        else:
            are_hits = is_among(np.fromiter((row.flag_id for row in rows), np.int64), flag_ids)
            places += [row for row, is_hit in zip(rows, are_hits, strict=True) if is_hit]
        if len(rows) < size:
            return places, None
        cursor = Cursor("after", *rows[-1])
        walked, size = walked + size, min(size * _WALKED_GROWTH, search.EXAMINED_MAX - walked)
    return places, cursor


def _rows(connection: Connection, flag_ids: Sequence[int]) -> list[FlagRow]:
    found: list[FlagRow] = []
    for portion in portions(flag_ids):
        found += map(flag_row, connection.execute(flag_rows().where(FLAGS.c.flag_id.in_(portion))))
    return found


def _flags_by_id(connection: Connection, text: str) -> tuple[Numbers, bool]:
    """Return flags whose article or original has an id that begins with a text, and whether some are left out.

    A text of fewer than ``BEGINNING_MIN`` characters must be the whole id.
    """
    if len(text.encode()) > ID_BYTES_MAX:
        return NO_NUMBERS, False
    flag_ids: set[int] = set()
    is_cut = False
    for column in (FLAGS.c.article_id, FLAGS.c.original_id):
        some = select(FLAGS.c.flag_id).order_by(column).limit(IDS_MAX + 1)
        whole, beginning = some.where(column == text), some.where(column >= text, column < text + _LAST_CHARACTER)
        ids = connection.execute(whole if len(text) < BEGINNING_MIN else beginning).scalars().all()
        if len(ids) > IDS_MAX:
            is_cut = True
            ids = connection.execute(whole.limit(IDS_MAX)).scalars().all()
        flag_ids.update(ids)
    return np.array(sorted(flag_ids), np.int64), is_cut
