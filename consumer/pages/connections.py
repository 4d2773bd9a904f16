"""Who may be connected to the pages, how many at once, and for how long.

A connection is first in the hall, where it shakes hands and sends its request. Which page it wants is not known there,
so a full hall makes room: the oldest connection of the client with the most of them is cut. A probe that is sent whole
is out of the hall within milliseconds; a client that trickles waits there until it is cut. Slow clients may come from
the address of the probes, as behind a proxy, and come again faster than a handshake is read. So nobody is cut before a
grace is over: until then who comes next waits, in the queue of the kernel, which is in order of arrival. Answers are
given in rooms, one for each kind of page, so that no kind takes the places of another.
"""

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import LineTooLong
from typing import Any, Final

HEAD_BYTES_MAX: Final = 32 * 1024
"""How long a request may be, so that those who send many take no memory."""


@dataclass(eq=False, slots=True)
class Connection:
    """One connection, and the room it is in."""

    socket: socket.socket
    client: str
    room: "Room | None" = None
    was_cut: bool = False

    def move_to(self, room: "Room", *, cuts: bool) -> bool:
        """Leave the room it is in for another, and say whether it is inside: see ``Room.admit``."""
        self.leave()
        if self.was_cut or not room.admit(self, cuts=cuts):
            return False
        self.room = room
        return True

    def leave(self) -> None:
        """Give its place back."""
        if self.room is not None:
            self.room.release(self)
            self.room = None

    def cut(self) -> None:
        """End it under the thread that still waits on it."""
        self.was_cut = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Room:
    """At most ``limit`` connections, each for at most ``seconds``; ``cut`` is told of each that had to go.

    None is cut for another within its first ``grace_s``.
    """

    def __init__(
        self,
        limit: int,
        seconds: float,
        cut: Callable[[], None],
        *,
        grace_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._seconds = seconds
        self._grace_s = grace_s
        self._cut = cut
        self._clock = clock
        self._changed = threading.Condition()
        # In order of entry, since dictionaries keep it.
        self._inside: dict[Connection, float] = {}

    def __len__(self) -> int:
        return len(self._inside)

    def admit(self, connection: Connection, *, cuts: bool) -> bool:
        """Let it in. Where there is no room, one that is inside is cut for it, or it is refused (not ``cuts``).

        Waits for the grace of the one that is to be cut, or until another leaves.
        """
        victim = None
        with self._changed:
            while len(self._inside) >= self._limit:
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

    def release(self, connection: Connection) -> None:
        """It has left; one that was cut had left already."""
        with self._changed:
            self._inside.pop(connection, None)
            self._changed.notify()

    def cut_late(self) -> None:
        """Cut those whose time is up."""
        now_s = self._clock()
        with self._changed:
            late = [one for one, entered_s in self._inside.items() if now_s - entered_s > self._seconds]
            for one in late:
                del self._inside[one]
        for one in late:
            self._end(one)

    def _most_crowding(self) -> Connection:
        counts = Counter(one.client for one in self._inside)
        most = max(counts.values())
        return next(one for one in self._inside if counts[one.client] == most)

    def _end(self, connection: Connection) -> None:
        connection.cut()
        self._cut()


class Head:
    """What a client sends before it is answered, up to a limit."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401  # as the handler has it
        self._file = file
        self._left = HEAD_BYTES_MAX

    def readline(self, size: int) -> bytes:
        """The next line; ``LineTooLong``, which is answered with 431, where all of them are too much."""
        line: bytes = self._file.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("request")
        return line

    def close(self) -> None:
        """As of the file."""
        self._file.close()
