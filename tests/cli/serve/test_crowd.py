"""Crowds of clients that do nothing, send a byte now and then, or send many requests at once: others do not wait."""

import logging
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.service.connections import IDLE, SLOW, crowded
from consumer.web.server import OTHER_FILES, allow_connections
from tests.cli.command import DUPWATCH, FAST, environment, text
from tests.cli.serve.service import Process, serving
from tests.unit.service.test_limits import read_all
from tests.unit.service.test_pipelining import ANSWERED, PROBE

log = logging.getLogger(__name__)

ROUNDS = 60
OFTEN_S = 0.5
AT_MOST_S = 30.0
"""Far more than a machine that is busy needs, and less than idle clients may stay."""
PATIENT = ("--set", "service.receive_s=60")
PIPELINING = 900
PIPELINED = 200
PROCESSOR_S = 5.0
PROBED_S = 1.0
PROBERS = 10
FEW_FILES = 1_024
"""What most systems begin with; it can be raised."""


def started(*arguments: str, **options: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401  # as Popen takes them
    """Start the command with few open files, as a shell does."""
    command = ["sh", "-c", f'ulimit -Sn {FEW_FILES}; exec "$@"', "sh", str(DUPWATCH), *arguments]
    return subprocess.Popen(command, env=environment(), start_new_session=True, **options)


def test_a_thousand_idle_and_two_hundred_slow_clients_keep_nobody_waiting(tmp_path: Path) -> None:
    """Probes and checks on new connections are answered meanwhile, also where few files may be open at first."""
    allow_connections(IDLE + SLOW)
    with serving("memory:", tmp_path, "--sink", "nowhere:", *PATIENT, *FAST, begin=started) as service:
        service.wait_ready()
        with crowded(service.url):
            assert service.metric("dupwatch_connections") > IDLE + SLOW
            took_s: list[float] = []
            for number in range(ROUNDS):
                began_s = time.monotonic()
                assert service.get("/healthz").status == 200
                probed_s = time.monotonic()
                assert service.check({"body": text(number)}).status == 200
                took_s += (probed_s - began_s, time.monotonic() - probed_s)
        assert sorted(took_s)[len(took_s) // 2] < OFTEN_S
        assert max(took_s) < AT_MOST_S
        assert service.stop() == 0


def test_more_connections_than_files_are_refused_at_the_start(tmp_path: Path) -> None:
    """With what to do about it."""
    command = f"ulimit -n {FEW_FILES}; exec {DUPWATCH} serve --store memory: --sink nowhere:"
    more = f" --set service.listen=127.0.0.1:0 --set service.connections_max={FEW_FILES - OTHER_FILES + 1}"
    ended = subprocess.run(["sh", "-c", command + more], capture_output=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert f"needs {FEW_FILES + 1} open files, and this process may have {FEW_FILES}" in ended.stderr.decode()


@contextmanager
def probed(service: Process, took_s: list[float]) -> Iterator[None]:
    """Probe on new connections, several at a time, until the context is left; note how long each probe took."""
    ended = threading.Event()

    def probe() -> None:
        while not ended.wait(0.02):
            began_s = time.monotonic()
            assert service.get("/healthz").status == 200
            took_s.append(time.monotonic() - began_s)

    with ThreadPoolExecutor(PROBERS) as pool:
        probing = [pool.submit(probe) for _ in range(PROBERS)]
        try:
            yield
        finally:
            ended.set()
        for each in probing:
            each.result()


def processor_s(process: "subprocess.Popen[bytes]") -> float:
    """Return the processor time that a process has had."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.load
def test_nine_hundred_clients_that_pipeline_keep_nobody_waiting(tmp_path: Path) -> None:
    """Each of them gets one answer for two hundred requests, in little processor time."""
    allow_connections(PIPELINING)
    with serving("memory:", tmp_path, "--sink", "nowhere:", *FAST, begin=started) as service, ExitStack() as opened:
        service.wait_ready()
        took_s: list[float] = []
        with probed(service, took_s):
            before_s = processor_s(service.process)
            clients = [
                opened.enter_context(socket.create_connection(service.address, AT_MOST_S)) for _ in range(PIPELINING)
            ]
            for client in clients:
                client.sendall(PROBE * PIPELINED)
            answers = [read_all(client).count(ANSWERED) for client in clients]
            spent_s = processor_s(service.process) - before_s
        assert answers == [1] * PIPELINING
        assert service.limits_met("waiting_max") == PIPELINING
        log.info("%.2f s of processor time; %d probes, the slowest %.2f s", spent_s, len(took_s), max(took_s))
        assert spent_s < PROCESSOR_S
        assert sorted(took_s)[int(len(took_s) * 0.99)] < PROBED_S
