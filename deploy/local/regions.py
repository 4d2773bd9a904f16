"""Lists, moves and splits the regions of an HBase, through one HBase client that stays open: regions.rb."""

import os
import select
import subprocess
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from deploy.local import java, shell

_PROGRAM: Final = Path(__file__).with_name("regions.rb")
_WAITS: Final = (
    "hbase.client.pause=50",
    "hbase.rpc.timeout=10000",
    "hbase.client.operation.timeout=20000",
    "hbase.client.meta.operation.timeout=20000",
)
_START_S: Final = 90.0
_ANSWER_S: Final = 45.0
_NOWHERE: Final = "-"
_FIELDS: Final = 5
_CHUNK_BYTES: Final = 1 << 16


class RegionsFailed(Exception):  # noqa: N818  # as ServerFailed
    """A command or the client failed; the message has the reason."""


class Region(NamedTuple):
    """A region. ``start`` is its first key, ``end`` the first key after it, which is empty for the last region.

    ``server`` is "host,port,start", or None while no server has the region.
    """

    name: str
    table: str
    start: bytes
    end: bytes
    server: str | None


class _Client(NamedTuple):
    """The running client and its pipes."""

    process: "subprocess.Popen[bytes]"
    commands: IO[bytes]
    answers: IO[bytes]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.commands, self.answers):
            with suppress(OSError):
                pipe.close()


class Regions(AbstractContextManager["Regions"]):
    """The client, which a command starts if it is not running. It ends with the ``with`` block or with this process."""

    def __init__(self, conf: Path, log: Path) -> None:
        self._conf = conf
        self._log = log
        self._client: _Client | None = None
        self._unread = b""

    def __exit__(self, *_: object) -> None:
        """End the client."""
        self._end()

    def list_regions(self, prefix: str) -> list[Region]:
        """Return the regions of all tables with this prefix, and of ``hbase:meta``. Raises ``RegionsFailed``."""
        return [_region(line) for line in self._ask(f"list {prefix}")]

    def servers(self) -> list[str]:
        """Return the servers that HBase thinks are alive, each "host,port,start". Raises ``RegionsFailed``."""
        return self._ask("servers")

    def move(self, region: Region, server: str) -> None:
        """Move a region to this server. Raises ``RegionsFailed``."""
        self._ask(f"move {region.name} {server}")

    def split(self, region: Region, key: bytes) -> None:
        """Split a region before this key. Raises ``RegionsFailed``."""
        self._ask(f"split {region.name} {key.hex()}")

    def _ask(self, command: str) -> list[str]:
        client = self._started()
        try:
            client.commands.write(f"{command}\n".encode())
            client.commands.flush()
        except OSError as error:
            self._end()
            raise RegionsFailed(f"{command}: the client has ended; see {self._log}") from error
        return self._answer(client, command, _ANSWER_S)

    def _started(self) -> _Client:
        if self._client is not None and self._client.alive:
            return self._client
        self._end()
        command = shell.ruby(self._conf, ["--disable-gems", str(_PROGRAM), *_WAITS])
        with self._log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603  # the command is ours
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=java.environment()
            )
        if process.stdin is None or process.stdout is None:
            raise RegionsFailed("the client has no pipes")
        self._client = _Client(process, process.stdin, process.stdout)
        self._answer(self._client, "the start of the client", _START_S)
        return self._client

    def _answer(self, client: _Client, command: str, wait_s: float) -> list[str]:
        lines: list[str] = []
        until_s = time.monotonic() + wait_s
        while (line := self._line(client, until_s)) is not None:
            if line == "done":
                return lines
            if line.startswith("failed "):
                raise RegionsFailed(f"{command}: {line.removeprefix('failed ')}")
            lines.append(line)
        # A late answer would be taken for the answer to the next command.
        self._end()
        raise RegionsFailed(f"{command}: the client has ended, or did not answer within {wait_s:g} s; see {self._log}")

    def _line(self, client: _Client, until_s: float) -> str | None:
        """Return the next line, or None if it does not come in time or the client has ended."""
        while b"\n" not in self._unread:
            ready, _, _ = select.select([client.answers], [], [], max(0.0, until_s - time.monotonic()))
            received = os.read(client.answers.fileno(), _CHUNK_BYTES) if ready else b""
            if not received:
                return None
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def _end(self) -> None:
        client, self._client, self._unread = self._client, None, b""
        if client is not None:
            client.end()


def _region(line: str) -> Region:
    fields = line.split("\t")
    if len(fields) != _FIELDS:
        raise RegionsFailed(f"not a region: {line!r}")
    name, table, start, end, server = fields
    return Region(name, table, bytes.fromhex(start), bytes.fromhex(end), None if server == _NOWHERE else server)
