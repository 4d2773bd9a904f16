"""HDFS with one replica: the file system of an HBase that has several region servers.

A local file system is not enough for several region servers. When a region server seems dead, another one replays its
log. A server that was only suspended would wake up with its log still open, and acknowledge writes that nobody replays.
HDFS takes the log away from its writer first.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from deploy.local import formatted, hadoop, quick
from deploy.local.java_server import JavaServer
from deploy.local.ports import HOST, is_free

_SITE: Final = "hdfs-site.xml"


@dataclass(slots=True, kw_only=True)
class NameNode(JavaServer):
    """The server that knows which blocks a file has, and who may write it."""

    port: int
    web_port: int
    heap_mb: int = 192
    name: ClassVar[str] = "HDFS's name node"
    kind: ClassVar[str] = "name-node"

    @property
    def url(self) -> str:
        """The root of the file system."""
        return f"hdfs://{HOST}:{self.port}"

    def ports(self) -> tuple[int, ...]:
        """Return the ports for clients and for its pages, which cannot be turned off."""
        return (self.port, self.web_port)

    def prepare(self) -> None:
        """Write the configuration, and format the data of a new file system if there is none."""
        data = self.folder / "data"
        settings = {
            "dfs.namenode.name.dir": f"file://{data}",
            "dfs.namenode.http-address": f"{HOST}:{self.web_port}",
            # After a restart clients learn at once where a block is.
            "dfs.namenode.safemode.extension": "0",
            "dfs.permissions.enabled": "false",
        }
        conf = self.folder / "conf"
        hadoop.write_conf(conf, _common(self.url) | settings, _SITE)
        # The folder of its pages must exist, but may be empty.
        (conf / "webapps" / "hdfs").mkdir(parents=True, exist_ok=True)
        if not data.exists():
            java = [self.java, "-Xmx128m", "-XX:+UseSerialGC", *quick.OPTIONS, *self.options()]
            keep = self.jars / "new-name-node"
            formatted.provide(self.name, data, keep, [*java, *self.command(), "-format", "-nonInteractive"])

    def options(self) -> list[str]:
        """Return the options that Hadoop needs on newer versions of Java."""
        return hadoop.options()

    def command(self) -> list[str]:
        """Return the command of the name node."""
        return [
            *hadoop.class_path(self.folder / "conf", self.jars),
            "org.apache.hadoop.hdfs.server.namenode.NameNode",
        ]

    def ready(self) -> bool:
        """Return whether it listens; it opens this port after it has read its data."""
        return not is_free(self.port)


@dataclass(slots=True, kw_only=True)
class DataNode(JavaServer):
    """The server that stores the blocks."""

    port: int
    ipc_port: int
    web_port: int
    name_node: str
    """The root of the file system, ``NameNode.url``."""
    heap_mb: int = 192
    name: ClassVar[str] = "HDFS's data node"
    kind: ClassVar[str] = "data-node"

    def ports(self) -> tuple[int, ...]:
        """Return the ports for blocks, for calls, and for its pages."""
        return (self.port, self.ipc_port, self.web_port)

    def prepare(self) -> None:
        """Write the configuration."""
        settings = {
            "dfs.datanode.data.dir": f"file://{self.folder / 'data'}",
            "dfs.datanode.address": f"{HOST}:{self.port}",
            "dfs.datanode.ipc.address": f"{HOST}:{self.ipc_port}",
            "dfs.datanode.http.address": f"{HOST}:{self.web_port}",
            # The answer to a heartbeat asks the node to settle the end of a dead server's log.
            "dfs.heartbeat.interval": "1",
        }
        conf = self.folder / "conf"
        info = "org.apache.hadoop.hdfs.server.datanode.DataNode"
        hadoop.write_conf(conf, _common(self.name_node) | settings, _SITE, info=info)
        (conf / "webapps" / "datanode").mkdir(parents=True, exist_ok=True)

    def options(self) -> list[str]:
        """Return the options that Hadoop needs on newer versions of Java."""
        return hadoop.options()

    def command(self) -> list[str]:
        """Return the command of the data node."""
        return [
            *hadoop.class_path(self.folder / "conf", self.jars),
            "org.apache.hadoop.hdfs.server.datanode.DataNode",
        ]

    def ready(self) -> bool:
        """Return whether the name node knows it."""
        return self.logged("successfully registered with NN")


def client(url: str) -> dict[str, str]:
    """Return the settings of a client of the file system with this root."""
    return {"dfs.replication": "1", "fs.defaultFS": url}


def _common(url: str) -> dict[str, str]:
    return client(url) | {"dfs.namenode.rpc-bind-host": HOST}
