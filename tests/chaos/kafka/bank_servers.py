"""The servers of a run with banks: those of any run, and the service through which banks are changed."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final, Self

from storage.clock import now_ms
from tests.chaos.kafka.bank_answers import Outage
from tests.chaos.kafka.faults import Fault, Target
from tests.chaos.kafka.servers import OneOfEach
from tests.cli.command import FAST
from tests.cli.serve.service import Process, serving
from tests.kafka.topics import Topics
from tests.unit.service.serving import WAIT_S


class BankService(AbstractContextManager["BankService"]):
    """One ``dupwatch serve``, which is killed and started again; each time on another port."""

    def __init__(self, topics: Topics, store_url: str, folder: Path, *settings: str) -> None:
        self._store_url = store_url
        self._folder = folder
        self._settings = ("--sink", "nowhere:", "--set", f"banks.url={topics.sink_url()}", *FAST, *settings)
        self._starts = 0
        self._running = ExitStack()
        self._process: Process | None = None

    def __enter__(self) -> Self:
        """Start it, and return when it is ready."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._running.close()

    @property
    def process(self) -> Process:
        """The one that was started last."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Start it, and return when it is ready."""
        self._starts += 1
        folder = self._folder / f"service-{self._starts}"
        folder.mkdir(parents=True)
        self._process = self._running.enter_context(serving(self._store_url, folder, *self._settings))
        self._process.wait_ready()

    def kill(self) -> None:
        """SIGKILL."""
        self.check()
        self.process.process.kill()
        self.process.process.wait(WAIT_S)

    def check(self) -> None:
        """Raise ``AssertionError`` if it has ended by itself."""
        assert self.process.process.poll() in {None, -9}, self.process.log.read_text()


class ServersAndService:
    """One of each server, and the service. ``outages`` are the times in which the broker was away."""

    replicas: Final = 1
    recover_s: Final = OneOfEach.recover_s

    def __init__(self, servers: OneOfEach, service: BankService) -> None:
        self.address = servers.address
        self.gateway = servers.gateway
        self.outages: list[Outage] = []
        self._servers = servers
        self._service = service
        self._away_since_ms = 0

    @property
    def ended_by_themselves(self) -> Sequence[str]:
        """As the port has it."""
        return self._servers.ended_by_themselves

    def strike(self, fault: Fault, topics: Topics) -> str:
        """As the port has it."""
        if fault.kind.target is Target.SERVICE:
            self._service.kill()
            return ""
        self._away_since_ms = now_ms()
        return self._servers.strike(fault, topics)

    def heal(self, fault: Fault) -> None:
        """As the port has it."""
        if fault.kind.target is Target.SERVICE:
            self._service.start()
        else:
            self._servers.heal(fault)
            self.outages.append(Outage(self._away_since_ms, now_ms()))

    def mend(self) -> None:
        """As the port has it."""
        self._service.check()
        self._servers.mend()
