"""Pages of what a search finds, in every order and with every filter of the queue."""

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
from consumer.reviews.queries.scope import KEYS, NUMBERS, Hits, RowOrder, Scope
from consumer.reviews.search import Count, RowBatch, branches, read_rows, united
from consumer.reviews.sources import source_id
from consumer.reviews.tables import FLAGS
from consumer.reviews.word_index.pages import NO_NUMBERS, Numbers, are_among
from consumer.reviews.word_index.text_hits import text_hits
from consumer.reviews.word_index.words import Terms

IDS_MAX: Final = 1_000
"""Flags that are found by an id, or by its beginning. Where there are more, only those with the whole id are found."""
BEGINNING_MIN: Final = 3
"""Characters from which on a search is also looked for at the beginning of ids."""
_WALKED_FIRST: Final = 500
_WALKED_GROWTH: Final = 4
_LAST_CHARACTER: Final = "\U0010ffff"


class QueueSearch(NamedTuple):
    """A search. ``terms`` is None where texts are not indexed."""

    text: str
    terms: Terms | None


class _Place(NamedTuple):
    key: float
    flag_id: int


def search_hits(connection: Connection, search_: QueueSearch) -> Hits:
    """Return what a search finds: by words of texts, by an id or its beginning, by the name of a source."""
    terms = search_.terms
    match = None if terms is None else text_hits(connection, terms)
    by_id, ids_cut = _by_id(connection, search_.text)
    return Hits(
        by_text=NO_NUMBERS if match is None else match.flag_ids,
        by_id=by_id,
        source_id=source_id(connection, search_.text),
        by_characters=match is not None and match.by_characters,
        words_cut=terms is not None and terms.is_cut,
        ids_cut=ids_cut,
    )


def found_by_search(
    connection: Connection, scope: Scope, way: RowOrder, rows_max: int, cursor: Cursor | None
) -> RowBatch:
    """Return up to ``rows_max`` rows of what a search finds that come after a place, as ``search.read_rows`` does."""
    what = scope.hits
    assert what is not None  # noqa: S101  # or there is no search
    plain = replace(scope, hits=None)
    several = [_of_ids(connection, plain, way, rows_max, cursor, what.by_id)]
    states = tuple(state for state in scope.states or STATES if state in UNDECIDED)
    if states:
        several.append(_of_ids(connection, replace(plain, states=states), way, rows_max, cursor, what.by_text))
    if what.source_id is not None and scope.source_id in {None, what.source_id}:
        several.append(read_rows(connection, replace(plain, source_id=what.source_id), way, rows_max, cursor))
    return _together(several, way, rows_max)


def _together(several: Sequence[RowBatch], way: RowOrder, rows_max: int) -> RowBatch:
    """Return the rows of several searches in order: up to the first place where one of them had to stop."""
    rows = {row.flag_id: row for each in several for row in each.rows}
    order = sorted(rows.values(), key=way.key, reverse=way.is_descending)
    stops = [_Place(each.more.key, each.more.row_id) for each in several if each.more is not None]
    if stops:
        stop = max(stops) if way.is_descending else min(stops)
        order = [row for row in order if not way.passes(way.key(row), stop)]
        if len(order) <= rows_max:
            return RowBatch(order, Cursor("after", *stop), is_partial=len(order) < rows_max)
    return search.cut(order, rows_max, way)


def hit_counts(connection: Connection, scope: Scope) -> dict[State, Count]:
    """Return how many rows of what a search finds are in each state, as ``search.counts`` does."""
    what = scope.hits
    assert what is not None  # noqa: S101  # or there is no search
    way, most = RowOrder("certainty", is_descending=False), search.COUNTED_MAX
    found_: dict[State, Count] = {}
    for state in scope.states or STATES:
        plain = replace(scope, hits=None, states=(state,))
        several = [_places(connection, plain, way, most, None, what.by_id)]
        if state in UNDECIDED:
            several.append(_places(connection, plain, way, most, None, what.by_text))
        if what.source_id is not None and scope.source_id in {None, what.source_id}:
            several.append(_walked(connection, replace(plain, source_id=what.source_id), way, most, None, None))
        flag_ids = {place.flag_id for places, _ in several for place in places}
        is_exact = all(stop is None for _, stop in several)
        found_[state] = Count(len(flag_ids), is_exact).cut(most)
    return found_


def _of_ids(
    connection: Connection, scope: Scope, way: RowOrder, rows_max: int, cursor: Cursor | None, flag_ids: Numbers
) -> RowBatch:
    places, stop = _places(connection, scope, way, rows_max, cursor, flag_ids)
    has_more = len(places) > rows_max
    more = Cursor("after", *places[rows_max - 1]) if has_more else stop
    rows = _rows(connection, [place.flag_id for place in places[:rows_max]])
    ordered = sorted(rows, key=way.key, reverse=way.is_descending)
    return RowBatch(ordered, more, is_partial=more is not None and not has_more)


def _places(
    connection: Connection, scope: Scope, way: RowOrder, rows_max: int, cursor: Cursor | None, flag_ids: Numbers
) -> tuple[list[_Place], Cursor | None]:
    """Return the places of flags that are in a scope, more than ``rows_max`` if there are, and where it had to stop."""
    if len(flag_ids) > search.SORTED_MAX:
        return _walked(connection, scope, way, rows_max, cursor, flag_ids)
    return sorted(_accepted(connection, scope, way, cursor, flag_ids), reverse=way.is_descending), None


def _accepted(
    connection: Connection, scope: Scope, way: RowOrder, cursor: Cursor | None, flag_ids: Numbers
) -> Iterator[_Place]:
    """Yield the places of those of a few flags that are in a scope and come after a place."""
    start = None if cursor is None else (cursor.key, cursor.row_id)
    columns = ("flag_id", "kind", "state", *NUMBERS, *KEYS)
    for portion in portions(flag_ids.tolist()):
        # By number alone: with a state, too, SQLite would read all flags in that state.
        query = select(*(FLAGS.c[name] for name in columns)).where(FLAGS.c.flag_id.in_(portion))
        for row in connection.execute(query).mappings():
            place = _Place(row[way.by], row["flag_id"])
            if (start is None or way.passes(place, start)) and _is_in(scope, row):
                yield place


def _is_in(scope: Scope, row: RowMapping) -> bool:
    return (
        row["flag_id"] not in scope.without
        and row["state"] in (scope.states or STATES)
        and row["kind"] in (scope.kinds or KINDS)
        and all(getattr(scope, name) in {None, row[name]} for name in NUMBERS)
        and all(scope.range(key).holds(row[key]) for key in KEYS)
    )


def _walked(
    connection: Connection, scope: Scope, way: RowOrder, rows_max: int, cursor: Cursor | None, flag_ids: Numbers | None
) -> tuple[list[_Place], Cursor | None]:
    """Return the first places of many flags, or of all, in a scope, and where it had to stop, by walking through it."""
    places: list[_Place] = []
    walked, size = 0, _WALKED_FIRST
    while len(places) <= rows_max and walked < search.EXAMINED_MAX:
        conditions = [*scope.within("certainty"), *scope.within("arrived_ms"), *(way.beyond() if cursor else [])]
        if scope.story_id is not None:
            conditions += scope.of_sources(FLAGS)
        some = united(branches(scope, way, conditions, size))
        query = select(some.c[way.by], some.c.flag_id).order_by(*way.ordered(some)).limit(size)
        values = scope.values() | (way.place(cursor) if cursor else {})
        rows = [_Place(*row) for row in connection.execute(query, values)]
        if flag_ids is None:
            places += rows
        else:
            are_hits = are_among(np.fromiter((row.flag_id for row in rows), np.int64), flag_ids)
            places += [row for row, is_hit in zip(rows, are_hits, strict=True) if is_hit]
        if len(rows) < size:
            return places, None
        cursor = Cursor("after", *rows[-1])
        walked, size = walked + size, min(size * _WALKED_GROWTH, search.EXAMINED_MAX - walked)
    return places, cursor


def _rows(connection: Connection, flag_ids: Sequence[int]) -> list[FlagRow]:
    found_: list[FlagRow] = []
    for portion in portions(flag_ids):
        found_ += map(flag_row, connection.execute(flag_rows().where(FLAGS.c.flag_id.in_(portion))))
    return found_


def _by_id(connection: Connection, text: str) -> tuple[Numbers, bool]:
    """Return flags whose article, or the one it repeats, has this id or one that begins so; whether there are more."""
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
