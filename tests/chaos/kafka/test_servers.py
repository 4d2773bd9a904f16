"""What is started again, and by whom."""

from pathlib import Path
from typing import ClassVar

import pytest

from deploy.local.server import Server, ServerFailed
from tests.chaos.kafka.servers import STARTS_MAX, Supervisor


class _Pretended(Server):
    """A server that is told whether it runs, and notes its starts."""

    name: ClassVar[str] = "a server"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder=folder)
        self.runs = True
        self.starts = 0
        self.fails = 0

    @property
    def alive(self) -> bool:
        return self.runs

    def start(self, wait_s: float = 1.0) -> None:
        self.starts += 1
        if self.starts <= self.fails:
            raise ServerFailed("gave up")
        self.runs = True

    def kill9(self) -> None:
        self.runs = False

    def ports(self) -> tuple[int, ...]:
        return ()

    def prepare(self) -> None:
        """Nothing."""

    def program(self) -> list[str]:
        return []

    def ready(self) -> bool:
        return True


@pytest.fixture
def server(tmp_path: Path) -> _Pretended:
    """One that runs."""
    return _Pretended(tmp_path)


def test_what_was_killed_stays_so_until_it_is_healed(server: _Pretended) -> None:
    """It has to be away for as long as the plan says; one that ends by itself is started at once, and counted."""
    supervisor = Supervisor([server])
    supervisor.kill(server)
    supervisor.mend()
    assert (server.alive, supervisor.ended_by_themselves) == (False, [])
    supervisor.start(server)
    server.runs = False
    supervisor.mend()
    assert (server.alive, supervisor.ended_by_themselves) == (True, ["a server"])


def test_a_start_that_fails_is_tried_again_and_not_for_ever(server: _Pretended) -> None:
    """Each failure is counted."""
    supervisor = Supervisor([server])
    supervisor.kill(server)
    server.fails = STARTS_MAX - 1
    supervisor.start(server)
    assert server.alive
    assert len(supervisor.ended_by_themselves) == STARTS_MAX - 1
    supervisor.kill(server)
    server.starts, server.fails = 0, STARTS_MAX
    with pytest.raises(ServerFailed):
        supervisor.start(server)
