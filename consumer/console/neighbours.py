"""Which open flags stand beside one in the queue."""

from dataclasses import replace
from typing import NamedTuple

from consumer.console.queue_filters import Wanted
from consumer.reviews import queue
from consumer.reviews.database import Connection
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.paging import Cursor, encoded


class Neighbours(NamedTuple):
    """The numbers of the open flags before and after one; None where there is none."""

    before: int | None
    after: int | None


def neighbours(connection: Connection, wanted: Wanted, flag: FlagRow) -> Neighbours:
    """Return the open flags beside one, in the part of the queue that somebody looks at."""
    after = queue.next_open(connection, wanted.filters, wanted.order, flag)
    way = queue.ORDERS[wanted.order]
    here = encoded(Cursor("before", *way.key(flag)))
    page = queue.page(connection, replace(wanted.filters, state="open"), wanted.order, 1, here)
    # At the beginning the page is filled up with what follows.
    before = [row.flag_id for row in page.rows if way.passes(way.key(flag), way.key(row))]
    return Neighbours(before[0] if before else None, after)
