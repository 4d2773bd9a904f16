"""A Kafka broker that is its own controller, or one of several that elect one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from deploy.local import formatted, quick
from deploy.local.java_server import JavaServer
from deploy.local.ports import HOST

_CLUSTER: Final = "ZHVwd2F0Y2gtbG9jYWwwMQ"
"""The id of every cluster, of 22 characters. It need not be unique, since brokers find each other by port."""
_REPLICAS_MAX: Final = 3


@dataclass(slots=True, kw_only=True)
class KafkaBroker(JavaServer):
    """A broker that is its own controller (KRaft), or one of a cluster in which each broker may be elected."""

    port: int
    controller_port: int
    node: int = 1
    voters: Mapping[int, int] = field(default_factory=dict)
    """The controller ports of all brokers of the cluster by node; empty for a single broker."""
    heap_mb: int = 384
    settings: Mapping[str, str] = field(default_factory=dict)
    direct_mb: ClassVar[int] = 256
    """Each of its network threads keeps a buffer as large as the largest request it has seen."""
    name: ClassVar[str] = "Kafka"
    kind: ClassVar[str] = "kafka"

    @property
    def address(self) -> str:
        """The bootstrap server for clients."""
        return f"{HOST}:{self.port}"

    def ports(self) -> tuple[int, ...]:
        """Return the ports for clients and for the controller."""
        return (self.port, self.controller_port)

    def prepare(self) -> None:
        """Write the configuration, and format the data of a new cluster if there is none."""
        data = self.folder / "data"
        lines = (f"{name}={value}" for name, value in (_kafka(self, data) | dict(self.settings)).items())
        self._properties.write_text("\n".join(lines) + "\n", encoding="ascii")
        if (data / "meta.properties").exists():
            return
        # All new brokers with the same number have the same formatted data.
        format_data = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties)]
        java = [self.java, "-Xmx128m", "-XX:+UseSerialGC", *quick.OPTIONS, *self.options()]
        keep = self.jars / f"new-broker-{_CLUSTER}-{self.node}"
        formatted.provide(self.name, data, keep, [*java, *self._class_path(), *format_data])

    def options(self) -> list[str]:
        """Return the options that log only warnings, and the line that says that the broker has started."""
        return [
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
            f"-Dkafka.logs.dir={self.folder}",
        ]

    def command(self) -> list[str]:
        """Return the command of the broker, with its properties file."""
        return [*self._class_path(), "kafka.Kafka", str(self._properties)]

    def ready(self) -> bool:
        """Return whether the broker has logged that it is ready; its port answers earlier."""
        return self.logged("Kafka Server started")

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _class_path(self) -> list[str]:
        return ["-cp", f"{self.jars / 'kafka'}/*"]


def _kafka(broker: KafkaBroker, data: Path) -> dict[str, str]:
    voters = broker.voters or {broker.node: broker.controller_port}
    # With three replicas a write is acknowledged by two brokers, so it outlives either of them.
    replicas = min(_REPLICAS_MAX, len(voters))
    in_sync = max(1, replicas - 1)
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(broker.node),
        "controller.quorum.voters": ",".join(f"{node}@{HOST}:{port}" for node, port in voters.items()),
        "listeners": f"PLAINTEXT://{HOST}:{broker.port},CONTROLLER://{HOST}:{broker.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{broker.port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(16 << 20),
        # A killed broker is admitted again once its session has expired.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
    if len(voters) == 1:
        # A single controller need not prove to others twice a second that it is alive.
        settings["metadata.max.idle.interval.ms"] = "5000"
    return settings
