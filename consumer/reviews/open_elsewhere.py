"""Which flags of a list others have open at this moment."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from consumer.reviews.discussion import LOOKING_MS
from consumer.reviews.tables import LOOKING, PEOPLE


def open_elsewhere(
    connection: Connection, flag_ids: Sequence[int], person_id: int, now_ms: int
) -> dict[int, tuple[str, ...]]:
    """Return the names of others for each flag that they have open; flags that nobody has open are left out."""
    query = (
        select(LOOKING.c.flag_id, PEOPLE.c.name)
        .join_from(LOOKING, PEOPLE, PEOPLE.c.person_id == LOOKING.c.person_id)
        .where(LOOKING.c.flag_id.in_(flag_ids), LOOKING.c.person_id != person_id, LOOKING.c.at_ms > now_ms - LOOKING_MS)
        .order_by(LOOKING.c.flag_id, PEOPLE.c.name)
    )
    found: dict[int, tuple[str, ...]] = {}
    for flag_id, name in connection.execute(query):
        found[flag_id] = (*found.get(flag_id, ()), name)
    return found
