"""How many flags there are of each kind and state."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, select, update

from consumer.reviews.flag_row import KINDS, STATES, Kind, State
from consumer.reviews.tables import TALLY


def add_to_tally(connection: Connection, changes: Mapping[tuple[Kind, State], int]) -> None:
    """Count that so many flags came into a state, or with a negative number left it.

    Whoever changes states holds ``FLAGS_LOCK``, so nobody else changes the same rows.
    """
    rows = [{"this_kind": kind, "this_state": state, "more": more} for (kind, state), more in changes.items() if more]
    if rows:
        where = (TALLY.c.kind == bindparam("this_kind"), TALLY.c.state == bindparam("this_state"))
        connection.execute(update(TALLY).where(*where).values(flags=TALLY.c.flags + bindparam("more")), rows)


def tally(connection: Connection) -> dict[tuple[Kind, State], int]:
    """Return how many there are, of each kind and state."""
    found = {(row.kind, row.state): row.flags for row in connection.execute(select(TALLY))}
    return {(kind, state): found.get((kind, state), 0) for kind in KINDS for state in STATES}
