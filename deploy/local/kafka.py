"""A Kafka broker that is its own controller."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import ClassVar, Final

from deploy.local import quick
from deploy.local.java import environment
from deploy.local.ports import HOST
from deploy.local.server import Server, ServerFailed

_CLUSTER: Final = "ZHVwd2F0Y2gtbG9jYWwwMQ"
"""A cluster needs an id of 22 characters; since each has one broker, any id will do."""
_NODE: Final = "1"


@dataclass(slots=True, kw_only=True)
class KafkaBroker(Server):
    """A broker that is its own controller (KRaft)."""

    port: int
    controller_port: int
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
        # All new brokers have the same formatted data, so a copy is kept beside the jars.
        new = self.jars / f"new-broker-{_CLUSTER}-{_NODE}"
        if not new.exists():
            self._format(data, new)
        else:
            shutil.copytree(new, data, dirs_exist_ok=True)

    def _format(self, data: Path, keep: Path) -> None:
        """Format the data of a new cluster, and keep a copy: formatting takes half as long as starting a broker."""
        format_data = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties)]
        java = [self.java, "-Xmx128m", "-XX:+UseSerialGC", *quick.OPTIONS, *self.options()]
        command = [*java, *self._class_path(), *format_data]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())  # noqa: S603
        if done.returncode:
            raise ServerFailed(f"Kafka's data in {data} could not be formatted: {done.stdout}{done.stderr}")
        try:
            unfinished = Path(mkdtemp(dir=keep.parent, prefix=f"{keep.name}.unfinished-"))
        except OSError:
            # The folder of the jars may be read-only; then the next broker formats its own data.
            return
        try:
            shutil.copytree(data, unfinished, dirs_exist_ok=True)
            unfinished.rename(keep)
        except OSError:
            # Another process was faster, or the disk is full.
            shutil.rmtree(unfinished)

    def options(self) -> list[str]:
        """Log warnings only, and the line that says it has started."""
        return [
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
            f"-Dkafka.logs.dir={self.folder}",
        ]

    def command(self) -> list[str]:
        """Return the broker with its properties file."""
        return [*self._class_path(), "kafka.Kafka", str(self._properties)]

    def ready(self) -> bool:
        """Check the log: the port answers earlier."""
        return self.logged("Kafka Server started")

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _class_path(self) -> list[str]:
        return ["-cp", f"{self.jars / 'kafka'}/*"]


def _kafka(broker: KafkaBroker, data: Path) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": _NODE,
        "controller.quorum.voters": f"{_NODE}@{HOST}:{broker.controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{broker.port},CONTROLLER://{HOST}:{broker.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{broker.port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        # There is only one broker.
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(16 << 20),
        # A killed broker is admitted again when its session has expired.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # A single controller need not prove to others twice a second that it is alive.
        "metadata.max.idle.interval.ms": "5000",
    }
