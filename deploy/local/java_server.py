"""A server that is a Java program: its memory is limited, and it may start faster.

See ``quick.py`` for what makes it start faster.
"""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from deploy.local import quick
from deploy.local.server import Server


@dataclass(slots=True, kw_only=True)
class JavaServer(Server):
    """One server in a Java process of its own."""

    jars: Path
    java: str
    heap_mb: int
    quick: bool = False
    """Compile less: it starts faster, but stays slower under load."""
    direct_mb: ClassVar[int] = 64
    code_mb: ClassVar[int] = 64
    metaspace_mb: ClassVar[int] = 128
    kind: ClassVar[str]
    """The name of the archive of its classes."""

    def program(self) -> list[str]:
        """Return Java with its options for memory and speed, then the server's own options and command."""
        return [self.java, *self._memory(), *self._speed(), *self.options(), *self.command()]

    def keep_classes(self) -> None:
        """Save the classes of a running ``quick`` server, so that others of its kind start faster.

        The server does not answer until they are saved.
        """
        if self.quick and self.process is not None and self.alive:
            quick.write(self._archive, self.java, self.process.pid)

    @abstractmethod
    def options(self) -> list[str]:
        """Return Java's options apart from memory: properties and modules."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return class path, main class and arguments."""

    def _memory(self) -> list[str]:
        return [
            "-Xms64m",
            f"-Xmx{self.heap_mb}m",
            f"-XX:MaxDirectMemorySize={self.direct_mb}m",
            f"-XX:MaxMetaspaceSize={self.metaspace_mb}m",
            f"-XX:ReservedCodeCacheSize={self.code_mb}m",
            # A single collector thread: the machine is shared, and heaps are small.
            "-XX:+UseSerialGC",
            "-Djava.awt.headless=true",
            "-Djava.net.preferIPv4Stack=true",
        ]

    def _speed(self) -> list[str]:
        return [*quick.OPTIONS, *quick.use(self._archive, self.java)] if self.quick else []

    @property
    def _archive(self) -> Path:
        return quick.archive(self.jars, self.kind, self.java)
