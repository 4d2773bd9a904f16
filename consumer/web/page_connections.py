"""Limits the connections to the pages: how many at once, and for how long.

While a connection arrives, that is shakes hands and sends its request, nobody knows which page it wants. So if too many
arrive, the oldest connection of the client that has the most is cut. A complete probe has arrived within milliseconds;
a client that trickles its request stays until it is cut. Slow clients may share the address of the probes, behind a
proxy for example, and reconnect faster than a handshake is read. So no connection is cut before a grace is over; until
then the next one waits in the queue of the kernel, in order of arrival. Answers have a limit for each kind of page, so
that one kind cannot take the places of another.
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
    """One connection, and the limit under which it counts."""

    socket: socket.socket
    client: str
    limit: "PageLimit | None" = None
    was_cut: bool = False

    def move_to(self, limit: "PageLimit", *, cuts: bool) -> bool:
        """Leave the current limit for another, and return whether it was admitted: see ``PageLimit.admit``."""
        self.leave()
        if self.was_cut or not limit.admit(self, cuts=cuts):
            return False
        self.limit = limit
        return True

    def leave(self) -> None:
        """Count no longer under the current limit."""
        if self.limit is not None:
            self.limit.release(self)
            self.limit = None

    def cut(self) -> None:
        """End the connection under the thread that waits on it."""
        self.was_cut = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class PageLimit:
    """Admits at most ``most`` connections at once, each for at most ``seconds``; ``cut`` is called for each cut one.

    No connection is cut for another within its first ``grace_s``.
    """

    def __init__(
        self,
        most: int,
        seconds: float,
        cut: Callable[[], None],
        *,
        grace_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._grace_s = grace_s
        self._cut = cut
        self._clock = clock
        self._changed = threading.Condition()
        # In order of entry, since dictionaries keep it.
        self._inside: dict[PageConnection, float] = {}

    def __len__(self) -> int:
        return len(self._inside)

    def admit(self, connection: PageConnection, *, cuts: bool) -> bool:
        """Admit a connection. At the limit another one is cut for it, or it is refused (not ``cuts``).

        Waits until the grace of the connection to be cut is over, or another one leaves.
        """
        victim = None
        with self._changed:
            while len(self._inside) >= self._most:
                if not cuts:
                    return False
                first = self._most_crowding()
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
        """Note that it left; one that was cut has left already."""
        with self._changed:
            self._inside.pop(connection, None)
            self._changed.notify()

    def cut_late(self) -> None:
        """Cut the connections whose time is up."""
        now_s = self._clock()
        with self._changed:
            late = [inside for inside, entered_s in self._inside.items() if now_s - entered_s > self._seconds]
            for connection in late:
                del self._inside[connection]
        for connection in late:
            self._end(connection)

    def _most_crowding(self) -> PageConnection:
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
        """Read the next line. Raises ``LineTooLong``, which is answered with 431, beyond the limit."""
        line: bytes = self._file.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("request")
        return line

    def close(self) -> None:
        """Close the file."""
        self._file.close()
