"""Statements of the queue are built once for all values."""

from dataclasses import replace
from pathlib import Path

import pytest

from consumer.reviews import search
from consumer.reviews.paging import Cursor
from consumer.reviews.queries.scope import Range, RowOrder, Scope
from tests.unit.reviews.made import database_in

NEWEST = RowOrder("arrived_ms", is_descending=True)
SCOPE = Scope(states=("open",), source_id=1, arrived_ms=Range(5, None), without=frozenset([1, 2]))


@pytest.mark.parametrize(
    ("other", "built"),
    [
        (replace(SCOPE, source_id=2, arrived_ms=Range(9, None), without=frozenset([3])), 0),
        (replace(SCOPE, states=("skipped",)), 1),
        (replace(SCOPE, arrived_ms=Range(None, 5)), 1),
        (replace(SCOPE, without=frozenset()), 1),
        (replace(SCOPE, source_id=None, original_source_id=1), 1),
    ],
)
def test_a_statement_is_built_for_another_form_only(tmp_path: Path, other: Scope, built: int) -> None:
    """Not for another source, another day or other flags that are left out."""
    search._walk_query.cache_clear()
    database = database_in(tmp_path)
    with database.read_connection() as connection:
        for scope in (SCOPE, other):
            assert search.read_rows(connection, scope, NEWEST, 5, Cursor("after", 7, 7)).rows == []
    database.close()
    assert search._walk_query.cache_info().misses == 1 + built
