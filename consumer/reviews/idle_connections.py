"""Replaces connections to PostgreSQL that died while idle, before anybody gets an error from them.

A connection taken from the pool is checked only if it was idle for a while, or if there is something to read, such as
the end of the stream. A check each time would cost as much as a short statement.
"""

import select
import time
from typing import Any, Final

from sqlalchemy import Engine, event
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

PING_S: Final = 5.0
"""A connection that was idle for longer is checked, because its network may have failed without a sign."""
_RETURNED_S: Final = "dupwatch_returned_s"


def replace_dead_connections(engine: Engine) -> None:
    """Check connections when they are taken from the pool, and replace all of them if one is dead."""

    @event.listens_for(engine, "checkin")
    def _returned(_connection: Any, entry: ConnectionPoolEntry) -> None:  # noqa: ANN401  # the driver's
        entry.info[_RETURNED_S] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _taken(connection: Any, entry: ConnectionPoolEntry, _proxy: object) -> None:  # noqa: ANN401  # as above
        returned_s = entry.info.get(_RETURNED_S)
        if returned_s is None:
            # A new connection.
            return
        try:
            if time.monotonic() - returned_s > PING_S or _has_input(connection.fileno()):
                engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError from error


def _has_input(descriptor: int) -> bool:
    """Return whether a socket has something to read. The end of the stream counts, too."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
