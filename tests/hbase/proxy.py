"""A proxy between a store and a Thrift gateway that lets a test delay, swap and cut off answers.

It knows Thrift's binary protocol just as far as to tell where an answer ends.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

_FIXED = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
_STRING, _STRUCT = 11, 12
_KINDS_OF = {13: 2, 14: 1, 15: 1}


@dataclass(eq=False)
class Answer:
    """An answer of the gateway on its way back: to which call, and all its bytes."""

    link: "Link"
    call: str
    raw: bytes


@dataclass(eq=False)
class Link:
    """A client's connection, and the proxy's own to the gateway."""

    client: socket.socket
    gateway: socket.socket
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_cut: bool = False

    def deliver(self, raw: bytes) -> None:
        """Send bytes to the client; one that has gone does not matter."""
        with self.lock, suppress(OSError):
            self.client.sendall(raw)

    def cut(self) -> None:
        """End both connections."""
        for side in (self.client, self.gateway):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        self.is_cut = True


Rule = Callable[[Answer], None]
"""Does with an answer what it likes; it is called on a thread of the answer's link."""


def pass_on(answer: Answer) -> None:
    """Deliver it as it is."""
    answer.link.deliver(answer.raw)


class Proxy:
    """Listens on a port of its own; ``rule`` may be changed at any time."""

    def __init__(self, gateway: str, rule: Rule = pass_on) -> None:
        host, port = gateway.split(":")
        self._gateway = (host, int(port))
        self.rule = rule
        self.links: list[Link] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End everything."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self.links:
            link.cut()
            link.client.close()
            link.gateway.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    gateway = socket.create_connection(self._gateway)
                except OSError:
                    client.close()
                    continue
                link = Link(client, gateway)
                self.links.append(link)
                for work in (self._forth, self._back):
                    threading.Thread(target=work, args=(link,), daemon=True).start()

    def _forth(self, link: Link) -> None:
        with suppress(OSError):
            while some := link.client.recv(1 << 16):
                link.gateway.sendall(some)
        link.cut()

    def _back(self, link: Link) -> None:
        with suppress(OSError, EOFError), link.gateway.makefile("rb") as stream:
            while True:
                message = Message(stream)
                self.rule(Answer(link, message.call, bytes(message.raw)))
        link.cut()


@contextmanager
def proxied(gateway: str) -> Iterator[Proxy]:
    """A proxy for the length of a block."""
    proxy = Proxy(gateway)
    try:
        yield proxy
    finally:
        proxy.close()


class Message:
    """Reads one message and keeps its bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.raw = bytearray()
        self._number(">i")
        self.call = self._take(self._number(">i")).decode()
        self._number(">i")
        self._skip(_STRUCT)

    def _take(self, count: int) -> bytes:
        some = self._stream.read(count)
        if len(some) < count:
            raise EOFError
        self.raw.extend(some)
        return some

    def _number(self, layout: str) -> int:
        value: int = struct.unpack(layout, self._take(struct.calcsize(layout)))[0]
        return value

    def _skip(self, kind: int) -> None:
        if kind in _FIXED:
            self._take(_FIXED[kind])
        elif kind == _STRING:
            self._take(self._number(">i"))
        elif kind == _STRUCT:
            while inner := self._number(">b"):
                self._number(">h")
                self._skip(inner)
        else:
            # A map has two kinds before its size, a list or a set one.
            kinds = [self._number(">b") for _ in range(_KINDS_OF[kind])]
            for inner in kinds * self._number(">i"):
                self._skip(inner)


class Swapping:
    """A rule that exchanges answers between connections, and holds some back beyond a client's patience.

    An answer waits for another to the same call on another connection, and both go to the wrong one. ``chance`` says
    which of them do.
    """

    def __init__(self, chance: Any, wait_s: float, late_s: float) -> None:  # noqa: ANN401  # random.Random
        self._chance = chance
        self._wait_s = wait_s
        self._late_s = late_s
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[Answer, threading.Event]] = {}
        self.swapped = 0
        self.late = 0

    def __call__(self, answer: Answer) -> None:
        """What is done with one answer."""
        with self._lock:
            lot = self._chance.random()
            self.late += lot < 0.01
        if lot < 0.01:
            threading.Event().wait(self._late_s)
            pass_on(answer)
        elif lot < 0.3:
            self._swap(answer)
        else:
            pass_on(answer)

    def _swap(self, answer: Answer) -> None:
        taken = threading.Event()
        with self._lock:
            other = self._waiting.pop(answer.call, None)
            if other is None or other[0].link is answer.link:
                self._waiting[answer.call] = (answer, taken)
                other = None
        if other is not None:
            self.swapped += 1
            other[0].link.deliver(answer.raw)
            answer.link.deliver(other[0].raw)
            other[1].set()
        elif not taken.wait(self._wait_s):
            with self._lock:
                is_mine = self._waiting.get(answer.call, (None, None))[0] is answer
                if is_mine:
                    del self._waiting[answer.call]
            if is_mine:
                pass_on(answer)
