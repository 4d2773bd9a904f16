"""A bounded number of connections, spread over the gateways of one HBase."""

import random
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from typing import Final

from storage.hbase.connection import GatewayConnection
from storage.hbase.failures import ConnectionLost, RequestDenied
from storage.hbase.options import GatewayAddress, HbaseOptions, TlsOptions
from storage.hbase.waits import Deadline
from storage.watched import ConnectionChange

_AGE_MAX_S: Final = 300.0
"""The maximum age of a connection, so that a gateway that is back gets its share of connections again."""
_SHUN_S: Final = 1.0
_SHUN_S_MAX: Final = 30.0
"""The maximum time for which a gateway is avoided: after its first failure, and after many in a row."""

Connect = Callable[[GatewayAddress, Deadline], GatewayConnection]
"""Opens a connection, or raises ``ConnectionLost``."""
Notify = Callable[[ConnectionChange], None]
"""Called when a connection was opened, could not be opened, or broke."""


@dataclass(slots=True)
class _Gateway:
    """The state of a gateway: how many of its connections are lent, and until when the gateway is avoided.

    ``failures`` counts its failures in a row.
    """

    lent: int = 0
    shunned_until_s: float = 0.0
    failures: int = 0

    def fail(self, now_s: float) -> None:
        """Avoid the gateway for a while, longer after each failure in a row."""
        wait_s = min(_SHUN_S * 2.0**self.failures, _SHUN_S_MAX)
        self.shunned_until_s = now_s + wait_s * random.uniform(0.5, 1.0)  # noqa: S311  # spread, not secrecy
        self.failures += 1

    def answer(self) -> None:
        """Stop avoiding the gateway, since it answers."""
        self.shunned_until_s = 0.0
        self.failures = 0


class Pool:
    """A pool that lends connections. Thread-safe.

    The gateway with the fewest lent connections comes first; an unreachable one is avoided while another is reachable.
    A lost connection is discarded together with the idle ones to its gateway, which is most likely down.
    """

    def __init__(
        self,
        addresses: Sequence[GatewayAddress],
        options: HbaseOptions,
        connect: Connect | None = None,
        notify: Notify | None = None,
    ) -> None:
        self._options = options
        self._notify: Notify = notify or (lambda _: None)
        self._connect = connect or _connector(options)
        self._gateways = {address: _Gateway() for address in addresses}
        self._idle: list[GatewayConnection] = []
        self._lent = 0
        self._changed = Condition()
        self._is_closed = False

    @contextmanager
    def connection(self, deadline: Deadline) -> Iterator[GatewayConnection]:
        """Lend a connection for requests that must be answered by the deadline.

        Raises ``ConnectionLost`` if by then no gateway can be reached or no connection becomes free.
        """
        self._wait_for_turn(deadline)
        try:
            connection = self._take(deadline)
        except BaseException:
            with self._changed:
                self._end_turn()
            raise
        connection.deadline = deadline
        is_sound = False
        try:
            yield connection
            is_sound = not connection.is_lost
        except RequestDenied:
            is_sound = not connection.is_lost
            raise
        finally:
            self._give_back(connection, is_sound=is_sound)

    def close(self) -> None:
        """Close idle connections now, and lent ones when they are returned."""
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _wait_for_turn(self, deadline: Deadline) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._lent < self._options.connections_max, deadline.left_s):
                raise ConnectionLost(f"all {self._options.connections_max} connections are in use")
            self._lent += 1

    def _end_turn(self) -> None:
        self._lent -= 1
        self._changed.notify()

    def _take(self, deadline: Deadline) -> GatewayConnection:
        last: ConnectionLost | None = None
        for address in self._in_order():
            connection = self._take_idle(address)
            if connection is not None:
                return connection
            try:
                connection = self._connect(address, deadline.at_most(self._options.connect_s))
            except ConnectionLost as lost:
                last = lost
                self._notify("refused")
                with self._changed:
                    self._gateways[address].fail(time.monotonic())
                    self._gateways[address].lent -= 1
                continue
            self._notify("opened")
            with self._changed:
                self._gateways[address].answer()
            return connection
        raise last or ConnectionLost("there are no gateways")

    def _in_order(self) -> Iterator[GatewayAddress]:
        """Yield every gateway once: reachable ones first, and the least busy of them before the others.

        From then on a connection to the yielded gateway counts as lent.
        """
        untried = set(self._gateways)
        while untried:
            with self._changed:
                now_s = time.monotonic()
                # Ties are broken at random, since the order of a set is not random.
                address = min(
                    untried,
                    key=lambda candidate: (
                        max(self._gateways[candidate].shunned_until_s - now_s, 0.0),
                        self._gateways[candidate].lent,
                        random.random(),  # noqa: S311  # spread, not secrecy
                    ),
                )
                self._gateways[address].lent += 1
            untried.remove(address)
            yield address

    def _take_idle(self, address: GatewayAddress) -> GatewayConnection | None:
        """Take the most recently used idle connection to this gateway that is not stale.

        Return None if there is no such connection; then the caller opens one. Stale connections are closed, and other
        idle ones if there are too many.
        """
        with self._changed:
            now_s = time.monotonic()
            stale = [connection for connection in self._idle if self._is_stale(connection, now_s)]
            self._idle = [connection for connection in self._idle if not self._is_stale(connection, now_s)]
            matching = [connection for connection in self._idle if connection.address == address]
            if matching:
                self._idle.remove(matching[-1])
            excess = max(len(self._idle) + self._lent - self._options.connections_max, 0)
            gone, self._idle = stale + self._idle[:excess], self._idle[excess:]
        for connection in gone:
            connection.close()
        return matching[-1] if matching else None

    def _is_stale(self, connection: GatewayConnection, now_s: float) -> bool:
        return now_s - connection.used_s > self._options.retire_s or now_s - connection.opened_s > _AGE_MAX_S

    def _give_back(self, connection: GatewayConnection, *, is_sound: bool) -> None:
        connection.used_s = time.monotonic()
        gone: list[GatewayConnection] = []
        with self._changed:
            self._gateways[connection.address].lent -= 1
            self._end_turn()
            if is_sound and not self._is_closed:
                self._idle.append(connection)
            else:
                gone.append(connection)
            if not is_sound:
                gone += [idle for idle in self._idle if idle.address == connection.address]
                self._idle = [idle for idle in self._idle if idle.address != connection.address]
        for discarded in gone:
            discarded.close()
        if not is_sound:
            self._notify("lost")


def _connector(options: HbaseOptions) -> Connect:
    tls = None if options.tls is None else tls_context(options.tls)

    def connect(address: GatewayAddress, deadline: Deadline) -> GatewayConnection:
        connection = GatewayConnection(address, tls, options.call_s)
        connection.connect(deadline)
        return connection

    return connect


def tls_context(options: TlsOptions) -> ssl.SSLContext:
    """Return a TLS context that checks certificates and host names. Raises ``OSError`` and ``ValueError``."""
    context = ssl.create_default_context(cafile=options.ca)
    if options.certificate is not None:
        context.load_cert_chain(options.certificate, options.key)
    return context
