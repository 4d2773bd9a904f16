"""Connections whose requests wait for a verdict: they need no thread, so they may be all that there are."""

from typing import cast

from consumer.web.connections import Connection, ConnectionLimits, Connections
from consumer.web.requests import ConnectionsChanged, LimitExceeded


class _Connection:
    """A connection, its request being worked on or not."""

    def __init__(self, connections: Connections, *, is_needed: bool) -> None:
        self._connections = connections
        self.is_needed = is_needed
        self.was_aborted = False

    def abort(self) -> None:
        self._connections.leave(cast("Connection", self))
        self.was_aborted = True


def test_where_all_wait_for_an_answer_a_new_connection_gives_way() -> None:
    """Otherwise one that does not."""
    reported: list[object] = []
    connections = Connections(ConnectionLimits(2, 1.0, 1.0, 1), reported.append)
    entered = [_Connection(connections, is_needed=number < 2) for number in range(3)]
    for each in entered:
        connections.enter(cast("Connection", each))
    assert [each.was_aborted for each in entered] == [False, False, True]
    assert reported[-1:] == [LimitExceeded("connections_max")]
    entered[0].is_needed = False
    connections.enter(cast("Connection", _Connection(connections, is_needed=False)))
    assert entered[0].was_aborted
    assert reported[-1:] == [ConnectionsChanged(2)]
