"""A standalone worker of Kafka Connect."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from deploy.local.java_server import JavaServer


@dataclass(slots=True, kw_only=True)
class ConnectWorker(JavaServer):
    """A worker that runs these connectors; its jars are those of ``fetch.connect_jars``."""

    port: int
    worker: Path
    """The properties file, which must have ``port`` in ``listeners``."""
    connectors: Sequence[Path]
    """A JSON file each."""
    heap_mb: int = 256
    name: ClassVar[str] = "Kafka Connect"
    kind: ClassVar[str] = "connect"

    def ports(self) -> tuple[int, ...]:
        """Return the port of its REST interface."""
        return (self.port,)

    def prepare(self) -> None:
        """Write nothing: the configuration is the caller's."""

    def options(self) -> list[str]:
        """Return the options that log only warnings, and the line that says that the worker has started."""
        return [
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.connect.runtime.Connect=info",
        ]

    def command(self) -> list[str]:
        """Return the command of the worker, with its properties file and those of the connectors."""
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        return ["-cp", f"{self.jars / 'connect'}/*", main, str(self.worker), *map(str, self.connectors)]

    def ready(self) -> bool:
        """Return whether the worker has logged that it is ready."""
        return self.logged("Kafka Connect started")
