"""The servers of a cluster that are harmed and healed: three brokers, two region servers and what these need."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from confluent_kafka import KafkaException

from deploy.local.cluster import Cluster
from deploy.local.hbase import ThriftGateway
from deploy.local.hbase_cluster import RegionServer
from deploy.local.process import wait_until
from deploy.local.regions import Region, Regions, RegionsFailed
from deploy.local.server import Server
from tests.chaos.kafka.faults import Act, Fault, Target
from tests.chaos.kafka.leadership import OFFSETS, TRANSACTIONS, Leadership, NotMoved
from tests.chaos.kafka.servers import Supervisor
from tests.hbase_server import CLUSTER_WAIT_S
from tests.kafka.topics import Topics

_RECOVER_S: Final = 180.0
_TRY_S: Final = 90.0
"""How long a move is tried again, while what is needed for it may be away."""
_AGAIN_S: Final = 0.5
_MOVED_S: Final = 120.0
"""So long it may take until all regions of a server that is stopped are on others."""
_ABORTED_S: Final = 60.0
"""So long after it was continued a region server that lost its regions has ended itself."""
_MOVES: Final = 4
_KEY_BYTES: Final = 4
_ENDS: Final = {"postings": b"\x18", "articles": b"\xff\xff"}
"""Roughly where the keys of a table end, for splits of its last region."""

_Answer = TypeVar("_Answer")


class ClusterServers:
    """A cluster that stays one: what is killed is started again, and gets its share of the regions."""

    recover_s: Final = _RECOVER_S
    replicas: Final = 3

    def __init__(self, cluster: Cluster, regions: Regions, namespace: str, seed: str) -> None:
        self.address = cluster.address
        self.gateway: ThriftGateway = cluster.gateway
        self._cluster = cluster
        self._regions = regions
        self._prefix = f"{namespace}:"
        self._leadership = Leadership(cluster.address, seed)
        self._chance = random.Random(f"regions {seed}")
        self._supervisor = Supervisor(list(cluster.servers.values()), CLUSTER_WAIT_S)
        self._harmed: dict[Fault, Server] = {}

    @property
    def ended_by_themselves(self) -> Sequence[str]:
        """As the port has it."""
        return self._supervisor.ended_by_themselves

    def strike(self, fault: Fault, topics: Topics) -> str:
        """As the port has it. A move that fails is tried again: a server that it needs may be starting."""
        match fault.kind:
            case (Target.REGIONS, Act.MOVE):
                return _until_done(self._move_regions)
            case (Target.REGIONS, _):
                return _until_done(self._split_region)
            case (Target.LEADERS, _):
                return _until_done(lambda: self._move_leaders(topics))
            case (Target.COORDINATORS, _):
                return _until_done(self._move_coordinators)
        server = self._server(fault, topics)
        self._harmed[fault] = server
        if fault.kind.act is Act.STOP:
            self._supervisor.stop(server)
        else:
            self._supervisor.kill(server)
        return server.folder.name

    def heal(self, fault: Fault) -> None:
        """As the port has it. A region server that was stopped is continued when it has lost all regions."""
        server = self._harmed.pop(fault, None)
        if server is None:
            return
        if fault.kind.act is Act.STOP:
            if isinstance(server, RegionServer):
                self._lose_regions(server)
            else:
                self._supervisor.resume(server)
        else:
            self._supervisor.start(server)
        if isinstance(server, RegionServer):
            _until_done(self._spread)

    def mend(self) -> None:
        """As the port has it."""
        self._supervisor.mend()

    def _server(self, fault: Fault, topics: Topics) -> Server:
        cluster = self._cluster
        match fault.kind.target:
            case Target.GATEWAY:
                return cluster.gateway
            case Target.REGION_SERVER:
                return cluster.region_servers[fault.number % len(cluster.region_servers)]
            case Target.COORDINATOR:
                node = _until_done(lambda: self._leadership.coordinator(topics.prefix))
                return next(broker for broker in cluster.brokers if broker.node == node)
            case _:
                return cluster.brokers[fault.number % len(cluster.brokers)]

    def _lose_regions(self, server: RegionServer) -> None:
        """Continue a server when others have its regions; it must end itself, and is started again."""
        moved = wait_until(lambda: not self._has_regions(server), _MOVED_S, _AGAIN_S)
        self._supervisor.expect_end(server)
        self._supervisor.resume(server)
        assert moved, f"regions of {server.folder.name} stayed where they were for {_MOVED_S:.0f} s"
        ended = wait_until(lambda: not server.alive, _ABORTED_S)
        assert ended, f"{server.folder.name} lost its regions and has not ended itself:\n{server.log_tail()}"
        self._supervisor.start(server)

    def _has_regions(self, server: RegionServer) -> bool:
        try:
            return any(_port(region.server) == server.port for region in self._regions.list_regions(""))
        except RegionsFailed:
            return True

    def _move_regions(self) -> str:
        """Move some to the other server, meta among them sometimes."""
        regions = self._regions.list_regions(self._prefix)
        moves = self._chance.sample(regions, min(_MOVES, len(regions)))
        moved = sum(self._move(region, self._chance.sample(self._live(), 2)) for region in moves)
        if not moved:
            raise RegionsFailed("no region could be moved")
        return f"{moved} moved"

    def _move(self, region: Region, servers: Sequence[str]) -> bool:
        """Move a region to the first of these servers on which it is not."""
        other = next((server for server in servers if server != region.server), None)
        if other is None:
            return False
        self._regions.move(region, other)
        return True

    def _split_region(self) -> str:
        """Split the first region that can be, in random order: one that was split lately cannot."""
        regions = [region for region in self._regions.list_regions(self._prefix) if _end(region)]
        failures = []
        for region in self._chance.sample(regions, len(regions)):
            key = _middle(region.start, region.end or _end(region))
            try:
                self._regions.split(region, key)
            except RegionsFailed as failed:
                failures.append(str(failed))
            else:
                return f"{region.table} at {key.hex()}"
        raise RegionsFailed("; ".join(failures))

    def _spread(self) -> str:
        """Move regions until each server has as many as the other, but for one."""
        regions = self._regions.list_regions(self._prefix)
        live = self._live()
        by_server = {server: [region for region in regions if region.server == server] for server in live}
        least, most = min(live, key=lambda name: len(by_server[name])), max(live, key=lambda name: len(by_server[name]))
        excess = (len(by_server[most]) - len(by_server[least])) // 2
        for region in self._chance.sample(by_server[most], excess):
            self._regions.move(region, least)
        return f"{excess} moved"

    def _live(self) -> list[str]:
        """The names of both servers. Raises ``RegionsFailed`` while there is only one, or the old and the new one."""
        names = self._regions.servers()
        if len(names) != len(self._cluster.region_servers):
            raise RegionsFailed(f"the region servers that are alive are {names}")
        return sorted(names)

    def _move_leaders(self, topics: Topics) -> str:
        return f"{self._leadership.move(lambda name: name.startswith(topics.prefix))} moved"

    def _move_coordinators(self) -> str:
        return f"{self._leadership.move(lambda name: name in {OFFSETS, TRANSACTIONS})} moved"


def _until_done(what: Callable[[], _Answer]) -> _Answer:
    """Try something until it succeeds, or for too long."""
    until_s = time.monotonic() + _TRY_S
    while True:
        try:
            return what()
        except (RegionsFailed, NotMoved, KafkaException, OSError):
            if time.monotonic() > until_s:
                raise
        time.sleep(_AGAIN_S)


def _port(server: str | None) -> int | None:
    return None if server is None else int(server.split(",")[1])


def _end(region: Region) -> bytes:
    """Roughly where the keys of the region's table end; nothing for a table that is not split."""
    return _ENDS.get(region.table.rpartition(":")[2], b"")


def _middle(start: bytes, end: bytes) -> bytes:
    """A key half way between two others."""
    low, high = (int.from_bytes(key[:_KEY_BYTES].ljust(_KEY_BYTES, b"\0")) for key in (start, end))
    return ((low + high) // 2).to_bytes(_KEY_BYTES)
