"""What orchestrators are told of the console."""

import logging
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry
from starlette.routing import Router
from starlette.testclient import TestClient

from consumer.console.probes import Probes, probe_routes
from consumer.telemetry.health import HangingThread


def asked(
    path: str,
    unready_reasons: Sequence[str] = (),
    hanging: Sequence[HangingThread] = (),
    limits: Sequence[str] = (),
) -> tuple[int, str]:
    """What a probe gets: status and text."""
    probes = Probes(lambda: unready_reasons, CollectorRegistry(), lambda: hanging, lambda: limits)
    answer = TestClient(Router(probe_routes(probes))).get(path)
    return answer.status_code, answer.text


def test_a_thread_that_hangs_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """By name, so that the console is started again; its stack is in the log, and not on the page."""
    assert asked("/healthz") == (200, "ok\n")
    with caplog.at_level(logging.ERROR, "dupwatch"):
        assert asked("/healthz", hanging=[HangingThread("sending", 400, "File x, line 1")]) == (503, "stuck: sending\n")
    (line,) = caplog.messages
    assert "The sending thread has made no progress for 400 s" in line
    assert "File x, line 1" in line


def test_a_thread_that_hangs_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Probes come every few seconds, and its stack says the same each time; it is logged again after it recovered."""
    hanging: list[HangingThread] = []
    client = TestClient(Router(probe_routes(Probes(tuple, CollectorRegistry(), lambda: list(hanging)))))
    with caplog.at_level(logging.ERROR, "dupwatch"):
        hanging.append(HangingThread("sending", 400, "File x, line 1"))
        assert [client.get("/healthz").status_code for _ in range(3)] == [503, 503, 503]
        assert len(caplog.messages) == 1
        hanging.append(HangingThread("intake", 301, "File y, line 2"))
        assert client.get("/healthz").text == "stuck: sending, intake\n"
        assert ["intake" in line for line in caplog.messages] == [False, True]
        del hanging[0]
        client.get("/healthz")
        hanging.append(HangingThread("sending", 302, "File x, line 3"))
        client.get("/healthz")
    assert ["File x, line 3" in line for line in caplog.messages] == [False, False, True]


def test_only_what_pages_cannot_be_without_makes_it_unready() -> None:
    """The other reasons are named as well."""
    assert asked("/readyz") == (200, '{"ready":true,"reasons":[]}')
    assert asked("/readyz", limits=["store: away"]) == (200, '{"ready":true,"reasons":["store: away"]}')
    both = asked("/readyz", ["database: away"], limits=["store: away"])
    assert both == (503, '{"ready":false,"reasons":["database: away","store: away"]}')
