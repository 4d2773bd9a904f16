"""The names of sources. Flags refer to them by number."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from consumer.reviews.portable import among, dialect_insert, portions, storable_text
from consumer.reviews.tables import SOURCES


def source_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Return the number of each name. New names are stored and numbered."""
    stored_names = {name: storable_text(name) for name in names}
    found = _known_ids(connection, set(stored_names.values()))
    new = sorted(set(stored_names.values()) - found.keys())
    if new:
        insert = dialect_insert(connection, SOURCES).on_conflict_do_nothing()
        connection.execute(insert, [{"name": name} for name in new])
        found |= _known_ids(connection, new)
    return {name: found[stored] for name, stored in stored_names.items()}


def source_id(connection: Connection, name: str) -> int | None:
    """Return the number of a name, or None if it is unknown."""
    return connection.execute(select(SOURCES.c.source_id).where(SOURCES.c.name == storable_text(name))).scalar()


def _known_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for portion in portions(names):
        is_named = among(connection, SOURCES.c.name, portion)
        rows = connection.execute(select(SOURCES.c.name, SOURCES.c.source_id).where(is_named))
        found |= {row.name: row.source_id for row in rows}
    return found
