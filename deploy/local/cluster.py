"""A cluster on this machine: three brokers, two region servers with all that they need, and a gateway."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from deploy.local.hbase import ThriftGateway
from deploy.local.hbase_cluster import CALL_MS, Master, RegionServer, ZooKeeper
from deploy.local.hdfs import DataNode, NameNode
from deploy.local.java_server import JavaServer
from deploy.local.kafka import KafkaBroker
from deploy.local.server import Server, launch_each

BROKERS: Final = (1, 2, 3)
REGION_SERVERS: Final = (1, 2)
_BASE_WAIT_S: Final = 180.0
"""How long ZooKeeper and HDFS may take to start, while three brokers start too."""
PORTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        **{f"kafka-{node}": 19092 + 10 * (node - 1) for node in BROKERS},
        **{f"kafka-{node}-controller": 19093 + 10 * (node - 1) for node in BROKERS},
        "zookeeper": 12181,
        "name-node": 18020,
        "name-node-web": 18021,
        "data-node": 18022,
        "data-node-ipc": 18023,
        "data-node-web": 18024,
        "hbase-master": 16000,
        **{f"region-server-{number}": 16020 + number for number in REGION_SERVERS},
        "gateway": 19090,
    }
)
"""The preferred ports, by name."""


class Cluster(NamedTuple):
    """The servers, running or not."""

    brokers: tuple[KafkaBroker, ...]
    zookeeper: ZooKeeper
    name_node: NameNode
    data_node: DataNode
    master: Master
    region_servers: tuple[RegionServer, ...]
    gateway: ThriftGateway

    @property
    def servers(self) -> dict[str, JavaServer]:
        """The servers by name, each after the servers that it needs."""
        return {
            "zookeeper": self.zookeeper,
            "name-node": self.name_node,
            "data-node": self.data_node,
            **{f"kafka-{broker.node}": broker for broker in self.brokers},
            "hbase-master": self.master,
            **{f"region-server-{number}": server for number, server in enumerate(self.region_servers, 1)},
            "gateway": self.gateway,
        }

    @property
    def address(self) -> str:
        """The bootstrap servers for clients."""
        return ",".join(broker.address for broker in self.brokers)


def cluster_of(
    folder: Path,
    ports: Mapping[str, int],
    common: Mapping[str, Any],
    *,
    kafka: Mapping[str, Any] = MappingProxyType({}),
    hbase: Mapping[str, str] = MappingProxyType({}),
) -> Cluster:
    """Return a cluster with these ports; ``common`` are fields of all servers.

    ``kafka`` are further fields of the brokers, ``hbase`` settings of master and region servers.
    """
    voters = {node: ports[f"kafka-{node}-controller"] for node in BROKERS}
    brokers = tuple(
        KafkaBroker(
            folder=folder / f"kafka-{node}",
            port=ports[f"kafka-{node}"],
            controller_port=voters[node],
            node=node,
            voters=voters,
            **kafka,
            **common,
        )
        for node in BROKERS
    )
    name_node = NameNode(
        folder=folder / "name-node", port=ports["name-node"], web_port=ports["name-node-web"], **common
    )
    data_node = DataNode(
        folder=folder / "data-node",
        port=ports["data-node"],
        ipc_port=ports["data-node-ipc"],
        web_port=ports["data-node-web"],
        name_node=name_node.url,
        **common,
    )
    zookeeper = ZooKeeper(folder=folder / "zookeeper", port=ports["zookeeper"], **common)
    settings = {"zookeeper_port": zookeeper.port, "file_system": name_node.url, "settings": hbase, **common}
    return Cluster(
        brokers,
        zookeeper,
        name_node,
        data_node,
        Master(folder=folder / "hbase-master", port=ports["hbase-master"], **settings),
        tuple(
            RegionServer(folder=folder / f"region-server-{number}", port=ports[f"region-server-{number}"], **settings)
            for number in REGION_SERVERS
        ),
        ThriftGateway(
            folder=folder / "gateway",
            port=ports["gateway"],
            zookeeper_port=zookeeper.port,
            settings={"hbase.rpc.timeout": str(CALL_MS)},
            **common,
        ),
    )


def launch(cluster: Cluster, servers: Sequence[Server], launched: Callable[[], None] = lambda: None) -> None:
    """Launch some of the cluster's servers, those of HBase once ZooKeeper and HDFS are ready.

    The caller must wait until they are ready. ``launched`` is called after each launch. Raises ``ServerFailed``.
    """
    base: list[Server] = [cluster.zookeeper, cluster.name_node, cluster.data_node]
    first = [server for server in servers if server in base or server in cluster.brokers]
    launch_each(first, launched)
    for server in base:
        if server in first:
            server.wait(_BASE_WAIT_S)
    launch_each([server for server in servers if server not in first], launched)
