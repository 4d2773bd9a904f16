"""``/healthz`` of ``dupwatch serve`` as a process: what hangs is noticed with the configured patience."""

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from deploy.local.ports import free_ports
from tests.cli.command import FAST, text, wait_for
from tests.cli.faulty_command import HANGS, start_faulty
from tests.cli.serve.service import Process, serving
from tests.unit.service.serving import WAIT_S, article, stays_alive

STUCK_S = 1.0
STUCK = ("--set", f"http.stuck_s={STUCK_S:g}")


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_hang_in_judging_is_noticed(tmp_path: Path, workers: str) -> None:
    """The log says where it hangs; a service that waits for articles is alive."""
    hanging = partial(start_faulty, "hangs-in-fingerprinting")
    more = (*STUCK, *FAST, "--set", f"workers={workers}")
    with serving(f"lmdb:{tmp_path / 'store'}", tmp_path, *more, begin=hanging) as service:
        service.wait_ready()
        stays_alive(service, STUCK_S)
        assert service.store(article(1)).status == 200
        stays_alive(service, STUCK_S)
        body = {"id": "b", "body": f"{HANGS} {text(2)}"}
        # Nobody answers it; it ends with the process.
        threading.Thread(target=lambda: _sent(service, body), daemon=True).start()
        wait_for(lambda: service.get("/healthz").status == 503, WAIT_S)
        assert service.get("/healthz").data.startswith(b"The judging thread has made no progress for ")
    assert ("hang_here" in service.log.read_text()) == (workers == "0")
    assert "The judging thread has made no progress for" in service.log.read_text()


def _sent(service: Process, body: dict[str, str]) -> None:
    with suppress(OSError):
        service.store(body)


def test_it_is_alive_while_it_waits_for_its_store_to_begin(tmp_path: Path) -> None:
    """It may wait for any time; a restart would not help."""
    (nobody,) = free_ports(1)
    store, more = f"hbase://127.0.0.1:{nobody}/feed", (*STUCK, "--set", "store.hbase.deadline_s=1")
    with serving(store, tmp_path, *more) as service:
        wait_for(lambda: "out of reach" in service.log.read_text(), WAIT_S)
        stays_alive(service, STUCK_S)
        assert service.get("/readyz").status == 503
        assert service.stop() == 0
