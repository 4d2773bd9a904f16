"""The stories of kept articles."""

from collections.abc import Mapping

from sqlalchemy import Connection, insert, select

from consumer.reviews.bulk import portions
from consumer.reviews.tables import STORIES


def stories_by_root(connection: Connection, spans: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Return the story of each root; one that is new begins with the span of time that is given."""
    found: dict[str, int] = {}
    for portion in portions(spans):
        rows = connection.execute(select(STORIES.c.root_id, STORIES.c.story_id).where(STORIES.c.root_id.in_(portion)))
        found |= {row.root_id: row.story_id for row in rows}
    new = [
        {"root_id": root, "copies": 0, "open_copies": 0, "first_ms": span[0], "last_ms": span[1]}
        for root, span in spans.items()
        if root not in found
    ]
    statement = insert(STORIES).returning(STORIES.c.root_id, STORIES.c.story_id)
    for part in portions(new):
        found |= {row.root_id: row.story_id for row in connection.execute(statement, part)}
    return found
