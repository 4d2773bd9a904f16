"""HBase as in a cluster: ZooKeeper, a master and region servers, each in its own process, on HDFS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from deploy.local import hadoop, hdfs
from deploy.local.java_server import JavaServer
from deploy.local.ports import HOST, is_free

SESSION_MS: Final = 6_000
"""The time without a sign of life after which a region server counts as dead. HBase's default is 90 s."""
CALL_MS: Final = 5_000
"""How long master, region servers and gateway wait for a region server that does not answer. HBase's default is 60 s.

A region server that hangs closes no connection, so every caller waits for this long. So does the master: it assigns
none of that server's regions until its own call to ``hbase:meta`` has ended.
"""
_TICK_MS: Final = 1_000
"""The length of ZooKeeper's tick. ZooKeeper grants sessions of 2 to 20 ticks."""


@dataclass(slots=True, kw_only=True)
class ZooKeeper(JavaServer):
    """A single ZooKeeper server."""

    port: int
    heap_mb: int = 96
    name: ClassVar[str] = "ZooKeeper"
    kind: ClassVar[str] = "zookeeper"

    def ports(self) -> tuple[int, ...]:
        """Return the port for clients."""
        return (self.port,)

    def prepare(self) -> None:
        """Write the configuration."""
        hadoop.write_conf(self.folder / "conf", {})
        settings = {
            "dataDir": str(self.folder / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": HOST,
            "tickTime": str(_TICK_MS),
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
        }
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="ascii")

    def options(self) -> list[str]:
        """Return no options: ZooKeeper needs none."""
        return []

    def command(self) -> list[str]:
        """Return the command of the server, with its settings."""
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return [*hadoop.class_path(self.folder / "conf", self.jars), main, str(self._settings)]

    def ready(self) -> bool:
        """Return whether ZooKeeper listens."""
        return not is_free(self.port)

    @property
    def _settings(self) -> Path:
        return self.folder / "zoo.cfg"


@dataclass(slots=True, kw_only=True)
class Master(JavaServer):
    """The master, which assigns regions and holds none."""

    port: int
    zookeeper_port: int
    file_system: str
    """The root of HDFS."""
    heap_mb: int = 320
    settings: Mapping[str, str] = field(default_factory=dict)
    name: ClassVar[str] = "HBase's master"
    kind: ClassVar[str] = "hbase-master"

    @property
    def conf(self) -> Path:
        """The folder with its configuration, which clients use too."""
        return self.folder / "conf"

    def ports(self) -> tuple[int, ...]:
        """Return its port."""
        return (self.port,)

    def prepare(self) -> None:
        """Write the configuration."""
        own = {
            "hbase.master.ipc.address": HOST,
            "hbase.master.hostname": "localhost",
            "hbase.master.port": str(self.port),
            "hbase.master.info.port": "-1",
            # The master waits up to 5 s for both region servers; then one is enough.
            "hbase.master.wait.on.regionservers.mintostart": "1",
            "hbase.master.wait.on.regionservers.maxtostart": "2",
            "hbase.master.wait.on.regionservers.timeout": "5000",
            "hbase.master.wait.on.regionservers.interval": "200",
            "hbase.master.handler.count": "10",
            # Regions stay where they are unless somebody moves them.
            "hbase.balancer.period": str(2**31 - 1),
        }
        hadoop.write_conf(
            self.conf, _server(self.zookeeper_port, self.file_system, self.folder) | own | dict(self.settings)
        )

    def options(self) -> list[str]:
        """Return the options that Hadoop and HBase need on newer versions of Java."""
        return hadoop.options()

    def command(self) -> list[str]:
        """Return the command of the master."""
        return [*hadoop.class_path(self.conf, self.jars), "org.apache.hadoop.hbase.master.HMaster", "start"]

    def ready(self) -> bool:
        """Return whether the master has logged that it is initialized."""
        return self.logged("Master has completed initialization")


@dataclass(slots=True, kw_only=True)
class RegionServer(JavaServer):
    """A region server; the cluster has several."""

    port: int
    zookeeper_port: int
    file_system: str
    """The root of HDFS."""
    heap_mb: int = 448
    settings: Mapping[str, str] = field(default_factory=dict)
    direct_mb: ClassVar[int] = 128
    code_mb: ClassVar[int] = 96
    name: ClassVar[str] = "a region server"
    kind: ClassVar[str] = "region-server"

    def ports(self) -> tuple[int, ...]:
        """Return its port."""
        return (self.port,)

    def prepare(self) -> None:
        """Write the configuration."""
        own = {
            "hbase.regionserver.ipc.address": HOST,
            "hbase.unsafe.regionserver.hostname": "localhost",
            "hbase.regionserver.port": str(self.port),
            "hbase.regionserver.info.port": "-1",
            "hbase.regionserver.msginterval": "300",
            "hbase.regionserver.handler.count": "10",
        }
        hadoop.write_conf(
            self.folder / "conf",
            _server(self.zookeeper_port, self.file_system, self.folder) | own | dict(self.settings),
            info="org.apache.hadoop.hbase.regionserver.HRegionServer",
        )

    def options(self) -> list[str]:
        """Return the options that Hadoop and HBase need on newer versions of Java."""
        return hadoop.options()

    def command(self) -> list[str]:
        """Return the command of the region server."""
        main = "org.apache.hadoop.hbase.regionserver.HRegionServer"
        return [*hadoop.class_path(self.folder / "conf", self.jars), main, "start"]

    def ready(self) -> bool:
        """Return whether the region server has logged that it serves."""
        return self.logged("Serving as localhost")


def _server(zookeeper_port: int, file_system: str, folder: Path) -> dict[str, str]:
    return (
        hadoop.hbase_client(zookeeper_port)
        | hdfs.client(file_system)
        | {
            "hbase.cluster.distributed": "true",
            "hbase.rootdir": f"{file_system}/hbase",
            "hbase.tmp.dir": str(folder / "scratch"),
            "zookeeper.session.timeout": str(SESSION_MS),
            "hbase.rpc.timeout": str(CALL_MS),
            # How soon HDFS is asked again whether the log of a dead server has been closed.
            "hbase.lease.recovery.first.pause": "500",
            "hbase.lease.recovery.pause": "500",
            "hbase.lease.recovery.dfs.timeout": "4000",
        }
    )
