"""A standalone HBase, and its Thrift gateways."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from deploy.local import hadoop
from deploy.local.java_server import JavaServer
from deploy.local.ports import HOST, gateway_answers


@dataclass(slots=True, kw_only=True)
class Hbase(JavaServer):
    """A standalone HBase: master, region server and ZooKeeper in one process, on the local file system."""

    zookeeper_port: int
    master_port: int
    region_port: int
    heap_mb: int = 768
    settings: Mapping[str, str] = field(default_factory=dict)
    direct_mb: ClassVar[int] = 256
    code_mb: ClassVar[int] = 96
    name: ClassVar[str] = "HBase"
    kind: ClassVar[str] = "hbase"

    @property
    def conf(self) -> Path:
        """The folder with its configuration, which clients use too."""
        return self.folder / "conf"

    def ports(self) -> tuple[int, ...]:
        """Return the ports of ZooKeeper, master and region server."""
        return (self.zookeeper_port, self.master_port, self.region_port)

    def prepare(self) -> None:
        """Write hbase-site.xml and the logging configuration."""
        hadoop.write_conf(self.conf, _hbase(self) | dict(self.settings))

    def options(self) -> list[str]:
        """Return the options that Hadoop and HBase need on newer versions of Java."""
        return hadoop.options()

    def command(self) -> list[str]:
        """Return the command of the master, which also runs a region server and ZooKeeper."""
        return [*hadoop.class_path(self.conf, self.jars), "org.apache.hadoop.hbase.master.HMaster", "start"]

    def ready(self) -> bool:
        """Return whether the master has logged that it is initialized."""
        return self.logged("Master has completed initialization")


@dataclass(slots=True, kw_only=True)
class ThriftGateway(JavaServer):
    """A Thrift 1 gateway to an HBase, for happybase; there may be several."""

    port: int
    zookeeper_port: int
    heap_mb: int = 384
    idle_ms: int = 60_000
    """How long a connection may be idle before it is closed."""
    settings: Mapping[str, str] = field(default_factory=dict)
    name: ClassVar[str] = "the Thrift gateway"
    kind: ClassVar[str] = "gateway"

    @property
    def address(self) -> str:
        """Host and port for clients."""
        return f"{HOST}:{self.port}"

    def ports(self) -> tuple[int, ...]:
        """Return the port for clients; the gateway has no other."""
        return (self.port,)

    def prepare(self) -> None:
        """Write hbase-site.xml and the logging configuration."""
        idle = {"hbase.thrift.server.socket.read.timeout": str(self.idle_ms)}
        hadoop.write_conf(self.folder / "conf", hadoop.hbase_client(self.zookeeper_port) | idle | dict(self.settings))

    def options(self) -> list[str]:
        """Return the same options as for HBase."""
        return hadoop.options()

    def command(self) -> list[str]:
        """Return the command of the gateway for Thrift 1."""
        main = ["org.apache.hadoop.hbase.thrift.ThriftServer", "start", "-b", HOST, "-p", str(self.port)]
        return [*hadoop.class_path(self.folder / "conf", self.jars), *main]

    def ready(self) -> bool:
        """Return whether the gateway answers and reaches HBase."""
        return gateway_answers(self.port, tls=self.settings.get("hbase.thrift.ssl.enabled") == "true")


def _hbase(hbase: Hbase) -> dict[str, str]:
    data = hbase.folder / "data"
    return hadoop.hbase_client(hbase.zookeeper_port) | {
        "hbase.cluster.distributed": "false",
        "hbase.rootdir": f"file://{data}/hbase",
        "hbase.tmp.dir": str(data / "scratch"),
        "hadoop.tmp.dir": str(data / "hadoop"),
        "hbase.zookeeper.property.dataDir": str(data / "zookeeper"),
        # The only local file system that flushes writes to a log.
        "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "hbase.wal.provider": "filesystem",
        "hbase.master.ipc.address": HOST,
        "hbase.regionserver.ipc.address": HOST,
        "hbase.master.hostname": "localhost",
        "hbase.unsafe.regionserver.hostname": "localhost",
        "hbase.master.port": str(hbase.master_port),
        "hbase.regionserver.port": str(hbase.region_port),
        "hbase.master.info.port": "-1",
        "hbase.regionserver.info.port": "-1",
        # There is only one region server to wait for.
        "hbase.master.wait.on.regionservers.mintostart": "1",
        "hbase.master.wait.on.regionservers.maxtostart": "1",
        "hbase.master.wait.on.regionservers.timeout": "200",
        "hbase.master.wait.on.regionservers.interval": "100",
        # Not more often: each report has the load of every region, and a hundred regions are usual in tests.
        "hbase.regionserver.msginterval": "1000",
        "hbase.regionserver.handler.count": "10",
        "hbase.master.handler.count": "5",
        # All servers are in one process, which may be suspended. A restart does not wait for the session to expire.
        "zookeeper.session.timeout.localHBaseCluster": "60000",
    }
