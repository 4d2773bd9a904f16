"""A thousand clients that do nothing, and two hundred that send a byte now and then: others do not wait for them."""

import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.service.connections import IDLE, SLOW, crowded
from consumer.service.descriptors import OTHERS, allow_connections
from tests.cli.command import DUPWATCH, FAST, environment, text
from tests.cli.serve.service import serving

ROUNDS = 60
OFTEN_S = 0.5
AT_MOST_S = 5.0
"""Far more than a machine that is busy needs, and less than idle clients may stay."""
FEW_FILES = 1_024
"""What most systems begin with; it can be raised."""


def started(*arguments: str, **options: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401  # as Popen takes them
    """Start the command with few open files, as a shell does."""
    command = ["sh", "-c", f'ulimit -Sn {FEW_FILES}; exec "$@"', "sh", str(DUPWATCH), *arguments]
    return subprocess.Popen(command, env=environment(), start_new_session=True, **options)


def test_a_thousand_idle_and_two_hundred_slow_clients_keep_nobody_waiting(tmp_path: Path) -> None:
    """Probes and checks on new connections are answered meanwhile, also where few files may be open at first."""
    allow_connections(IDLE + SLOW)
    with serving("memory:", tmp_path, "--sink", "nowhere:", *FAST, begin=started) as service:
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
    more = f" --set service.listen=127.0.0.1:0 --set service.connections_max={FEW_FILES - OTHERS + 1}"
    ended = subprocess.run(["sh", "-c", command + more], capture_output=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert f"needs {FEW_FILES + 1} open files, and this process may have {FEW_FILES}" in ended.stderr.decode()
