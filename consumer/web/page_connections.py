"""Limits on connections to the pages of a consumer: how many at once, and for how long.

Until a connection has sent its request, its page is unknown. So if too many connections arrive, the oldest one of the
client with the most connections is cut. A probe sends its whole request within milliseconds; a client that trickles its
request stays until it is cut.

Slow clients may share the address of the probes, for example behind a proxy, and reconnect faster than a handshake is
read. So no connection is cut within its grace period. In the meantime, new connections wait in the kernel's queue.

Answers have a limit for each kind of page, so that one kind cannot crowd out another.
"""

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import LineTooLong
from typing import Any

from consumer.web.requests import HEAD_BYTES_MAX


@dataclass(eq=False, slots=True)
class PageConnection:
    """One connection, and the limit that counts it."""

    socket: socket.socket
    client: str
    limit: "PageLimit | None" = None
    was_cut: bool = False

    def move_to(self, limit: "PageLimit", *, cuts: bool) -> bool:
        """Move to another limit, and return whether the connection was admitted; see ``PageLimit.admit``."""
        self.leave()
        if self.was_cut or not limit.admit(self, cuts=cuts):
            return False
        self.limit = limit
        return True

    def leave(self) -> None:
        """Leave the current limit."""
        if self.limit is not None:
            self.limit.release(self)
            self.limit = None

    def cut(self) -> None:
        """Shut the connection down, even while its thread waits for it."""
        self.was_cut = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class PageLimit:
    """A limit of ``connections_max`` connections at once, each for at most ``seconds``.

    No connection is cut in favour of another one in its first ``grace_s`` seconds. ``cut`` is called after each cut.
    """

    def __init__(
        self,
        connections_max: int,
        seconds: float,
        cut: Callable[[], None],
        *,
        grace_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections_max = connections_max
        self._seconds = seconds
        self._grace_s = grace_s
        self._cut = cut
        self._clock = clock
        self._changed = threading.Condition()
        # When each connection was admitted, the oldest first: dictionaries keep their order.
        self._inside: dict[PageConnection, float] = {}

    def __len__(self) -> int:
        return len(self._inside)

    def admit(self, connection: PageConnection, *, cuts: bool) -> bool:
        """Admit a connection, and return True. At the limit, replace another connection if ``cuts``, else return False.

        The other connection is the oldest one of the client with the most connections. It is not cut within its grace
        period: the call waits until the period is over or any connection leaves.
        """
        victim = None
        with self._changed:
            while len(self._inside) >= self._connections_max:
                if not cuts:
                    return False
                first = self._connection_to_cut()
                grace_left_s = self._inside[first] + self._grace_s - self._clock()
                if grace_left_s <= 0:
                    victim = first
                    del self._inside[victim]
                else:
                    self._changed.wait(grace_left_s)
            self._inside[connection] = self._clock()
        if victim is not None:
            self._end(victim)
        return True

    def release(self, connection: PageConnection) -> None:
        """Remove a connection, unless a cut has already removed it."""
        with self._changed:
            self._inside.pop(connection, None)
            self._changed.notify()

    def cut_late(self) -> None:
        """Cut the connections that have exceeded the time limit."""
        now_s = self._clock()
        with self._changed:
            late = [inside for inside, entered_s in self._inside.items() if now_s - entered_s > self._seconds]
            for connection in late:
                del self._inside[connection]
        for connection in late:
            self._end(connection)

    def _connection_to_cut(self) -> PageConnection:
        counts = Counter(connection.client for connection in self._inside)
        highest = max(counts.values())
        return next(connection for connection in self._inside if counts[connection.client] == highest)

    def _end(self, connection: PageConnection) -> None:
        connection.cut()
        self._cut()


class RequestHead:
    """The request line and headers of a client, up to a limit."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401  # as the handler has it
        self._file = file
        self._left = HEAD_BYTES_MAX

    def readline(self, size: int) -> bytes:
        """Read the next line. Raises ``LineTooLong`` beyond the limit.

        In a header, the base class of the handler answers with 431. In the request line, the connection is closed.
        """
        line: bytes = self._file.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("request")
        return line

    def close(self) -> None:
        """Close the file."""
        self._file.close()
