"""Statements are built once for all values."""

from dataclasses import replace
from pathlib import Path

import pytest

from consumer.reviews import search
from consumer.reviews.database import Database
from consumer.reviews.outbox.story_events import write_growth_events
from consumer.reviews.paging import Cursor
from consumer.reviews.queries.scope import Range, RowOrder, Scope
from tests.unit.reviews.made import NOW_MS, add, database_in, executions, flagged, write

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


@pytest.mark.parametrize("address", [pytest.param("postgresql", marks=pytest.mark.servers)], indirect=True)
def test_any_number_of_flags_needs_the_same_statements(database: Database) -> None:
    """PostgreSQL and its client take most of the time of a batch to read statements that have a parameter per flag."""
    # The first event of all differs: no earlier one must be forgotten.
    _, few, many = (taken_in(database, flags) for flags in (1, 3, 400))
    assert few == many


def taken_in(database: Database, flags: int) -> set[str]:
    """Take in new flags, two in a story; return the statements of that."""
    new = [
        flagged(f"{flags}-copy-{n}", f"{flags}-original-{n // 2}", sources=(f"{flags}-{n}", "s")) for n in range(flags)
    ]
    with executions(database) as executed:
        added = add(database, *new)
        write(database, write_growth_events, added.grown, NOW_MS)
    return {each.sql for each in executed}
