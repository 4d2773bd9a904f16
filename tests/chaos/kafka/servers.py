"""Servers that are harmed and healed: those of the plainest system, one of each."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final, Protocol

from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.kafka import KafkaBroker
from deploy.local.ports import is_free
from deploy.local.server import START_WAIT_S, Server, ServerFailed
from tests.chaos.kafka.faults import Act, Fault, Target
from tests.kafka.topics import Topics

STARTS_MAX: Final = 3
DEAF_S: Final = 20.0
"""HBase's region server may end, and the process remain: nobody listens then, and it is to be started again."""
_RECOVER_S: Final = 120.0


class Servers(Protocol):
    """What the consumers need, and what can happen to it."""

    @property
    def address(self) -> str:
        """The bootstrap servers."""

    @property
    def gateway(self) -> ThriftGateway:
        """The gateway to HBase."""

    @property
    def replicas(self) -> int:
        """How many brokers have each partition."""

    @property
    def recover_s(self) -> float:
        """However bad it was, so long after the servers are back every partition goes on."""

    @property
    def ended_by_themselves(self) -> Sequence[str]:
        """The names of the servers that had to be started again without having been killed."""

    def strike(self, fault: Fault, topics: Topics) -> str:
        """Do harm, unless the fault is a consumer's; return which server it was, or how many things were moved."""

    def heal(self, fault: Fault) -> None:
        """Undo the harm, and return when the servers that were harmed run again."""

    def mend(self) -> None:
        """Start the servers again that have ended by themselves."""


class Supervisor:
    """Kills and stops servers, and starts them again, as those who run them do."""

    def __init__(self, servers: Sequence[Server], start_s: float = START_WAIT_S) -> None:
        self.ended_by_themselves: list[str] = []
        self._servers = servers
        self._start_s = start_s
        self._killed: list[Server] = []

    def kill(self, server: Server) -> None:
        """Kill it, until it is started."""
        assert server.alive, f"{server.name} was not running"
        self.expect_end(server)
        server.kill9()

    def expect_end(self, server: Server) -> None:
        """Do not start it when it has ended: whoever calls this does."""
        self._killed.append(server)

    def stop(self, server: Server) -> None:
        """Stop it, until it is continued."""
        assert server.alive, f"{server.name} was not running"
        self._signal(server, signal.SIGSTOP)

    def resume(self, server: Server) -> None:
        """Continue it."""
        self._signal(server, signal.SIGCONT)

    def start(self, server: Server) -> None:
        """Restart servers as a supervisor does: HBase's master may give up during a start after a kill."""
        for left in reversed(range(STARTS_MAX)):
            try:
                server.start(self._start_s)
            except ServerFailed:
                if not left:
                    raise
                self._tell(server, "did not come up")
            else:
                break
        self._killed = [killed for killed in self._killed if killed is not server]

    def mend(self) -> None:
        """Start the servers that have ended, but were not killed."""
        for server in self._servers:
            if not server.alive and not any(killed is server for killed in self._killed):
                self._tell(server, "ended by itself")
                self.start(server)

    def _tell(self, server: Server, what: str) -> None:
        self.ended_by_themselves.append(server.name)
        sys.stderr.write(f"           {server.name} in {server.folder.name} {what}, and is started again\n")

    def _signal(self, server: Server, which: signal.Signals) -> None:
        if server.process is not None and server.alive:
            os.kill(server.process.pid, which)


class OneOfEach:
    """A broker, an HBase in one process, and a gateway."""

    replicas: Final = 1
    recover_s: Final = _RECOVER_S

    def __init__(self, broker: KafkaBroker, hbase: Hbase, gateway: ThriftGateway) -> None:
        self.address = broker.address
        self.gateway = gateway
        self._hbase = hbase
        self._servers: dict[Target, Server] = {
            Target.HBASE: hbase,
            Target.GATEWAY: gateway,
            Target.BROKER: broker,
        }
        self._supervisor = Supervisor(list(self._servers.values()))
        self._heard_s = time.monotonic()

    @property
    def ended_by_themselves(self) -> Sequence[str]:
        """As the port has it."""
        return self._supervisor.ended_by_themselves

    def strike(self, fault: Fault, topics: Topics) -> str:
        """As the port has it."""
        del topics
        server = self._servers[fault.kind.target]
        if fault.kind.act is Act.STOP:
            self._supervisor.stop(server)
        else:
            self._supervisor.kill(server)
        return ""

    def heal(self, fault: Fault) -> None:
        """As the port has it."""
        server = self._servers[fault.kind.target]
        if fault.kind.act is Act.STOP:
            self._supervisor.resume(server)
        else:
            self._supervisor.start(server)

    def mend(self) -> None:
        """As the port has it; an HBase that listens no longer is killed first."""
        if self._deaf():
            self._hbase.kill9()
        self._supervisor.mend()

    def _deaf(self) -> bool:
        if not self._hbase.alive or not is_free(self._hbase.region_port):
            self._heard_s = time.monotonic()
        return time.monotonic() >= self._heard_s + DEAF_S
