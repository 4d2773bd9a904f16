"""The receiver of docker-compose.yml: its log has a line for each alert, and nothing else."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.alerts.log import alert_server
from deploy.local.ports import HOST

WAIT_S = 30.0
RUNBOOK = "https://runbooks.example/docs/operate/runbooks/consumer-down.md#dupwatchdown"
FIRING: dict[str, Any] = {
    "status": "firing",
    "labels": {"alertname": "DupwatchDown", "severity": "critical"},
    "annotations": {
        "summary": "No consumer answers",
        "description": "First check whether the processes run.",
        "runbook_url": RUNBOOK,
    },
    "startsAt": "2026-11-23T09:00:00Z",
    "endsAt": "0001-01-01T00:00:00Z",
}
RESOLVED = FIRING | {"status": "resolved", "endsAt": "2026-11-23T09:05:00Z"}


@pytest.fixture
def url() -> Iterator[str]:
    """Where one listens."""
    with alert_server((HOST, 0)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def sent(url: str, data: bytes | None) -> int:
    """The status of the answer."""
    try:
        with urllib.request.urlopen(url, data, timeout=WAIT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_alerts_are_lines_of_the_log(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With their runbook while they fire; what a label brings along ends no line and moves no cursor."""
    hostile = FIRING | {"annotations": {"summary": "a\nb\x1b[2J", "description": "c", "runbook_url": "d"}}
    # As in https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
    notification = {"version": "4", "receiver": "team", "status": "firing", "alerts": [FIRING, RESOLVED, hostile]}
    assert sent(url, json.dumps(notification).encode()) == 200
    assert sent(url, None) == 200
    down = "DupwatchDown: No consumer answers"
    assert capsys.readouterr().out.splitlines() == [
        f"2026-11-23T09:00:00Z firing critical {down} - First check whether the processes run. Runbook: {RUNBOOK}",
        f"2026-11-23T09:05:00Z resolved critical {down}",
        "2026-11-23T09:00:00Z firing critical DupwatchDown: a b\N{REPLACEMENT CHARACTER}[2J - c Runbook: d",
    ]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"alerts": 1}', b'{"alerts": [{}]}', b"[" * 100_000])
def test_what_is_no_notification_is_refused(url: str, capsys: pytest.CaptureFixture[str], body: bytes) -> None:
    """Nothing of it is printed."""
    assert sent(url, body) == 400
    assert capsys.readouterr().out == ""


def test_a_client_that_stalls_holds_up_no_alert(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in its head nor in its body."""
    port = int(url.rstrip("/").rpartition(":")[2])
    with socket.create_connection((HOST, port)) as silent, socket.create_connection((HOST, port)) as slow:
        silent.sendall(b"POST /")
        slow.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
        assert sent(url, json.dumps({"alerts": [FIRING]}).encode()) == 200
        # Both are still waited for.
        for stalled in (silent, slow):
            stalled.settimeout(0)
            with pytest.raises(BlockingIOError):
                stalled.recv(1)
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("length", [str(1 << 40), "9" * 5_000, "-1", "1_0"])
def test_a_long_body_is_not_read(url: str, length: str) -> None:
    """It is refused by its length, as is a length that is no number."""
    request = urllib.request.Request(url, b"x", {"Content-Length": length})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=WAIT_S)
    assert refused.value.code == 413
    refused.value.close()
