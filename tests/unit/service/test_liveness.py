"""``/healthz``: a thread that hangs or has died is noticed, and a store that is away is not."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

import dupwatch
from consumer.model.hooks import Hooks, Outage
from tests.cli.command import wait_for
from tests.unit.service.gate import Gate
from tests.unit.service.kept_sink import KeptSink
from tests.unit.service.serving import WAIT_S, Client, article, judging_of, served, stays_alive, wait_until_ready

STUCK_S = 0.5


def test_a_judging_thread_that_hangs_is_noticed(
    window: dupwatch.Window, sink: KeptSink, pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer says which, the log has its stack, once for each time, and all is well when it goes on."""
    with served(judging_of(window), sink, None, None, STUCK_S) as client, caplog.at_level(logging.ERROR, "dupwatch"):
        wait_until_ready(client)
        stays_alive(client, STUCK_S)
        for number in (1, 2):
            sink.hold()
            waiting = pool.submit(client.store, article(number))
            sink.wait_held()
            wait_for(lambda: client.get("/healthz").status == 503, WAIT_S)
            assert client.get("/healthz").data.startswith(b"The judging thread has made no progress for ")
            assert client.check(article(3)).status == 200
            sink.let_go()
            assert waiting.result(WAIT_S).status == 200
            wait_for(lambda: client.get("/healthz").status == 200, WAIT_S)
            assert sum(record.getMessage().count("kept_sink.py") for record in caplog.records) == number


def test_a_store_that_is_away_is_no_reason_to_restart(window: dupwatch.Window, pool: ThreadPoolExecutor) -> None:
    """The judging thread waits for it, however long that takes; /readyz says so."""
    gate, hooks = Gate(), Hooks()
    away: list[str] = []
    hooks.on(Outage, lambda outage: away.append(outage.reason) if outage.reason else None)
    judging = judging_of(window, gate.around(window._store))
    with served(judging, None, hooks, None, STUCK_S) as client:
        wait_until_ready(client)
        gate.is_away = True
        waiting = pool.submit(client.store, article(1))
        wait_for(lambda: bool(away), WAIT_S)
        stays_alive(client, STUCK_S)
        assert client.get("/readyz").status == 503
        gate.is_away = False
        assert waiting.result(WAIT_S).status == 200


def test_a_call_of_the_store_that_never_returns_is_noticed(window: dupwatch.Window, pool: ThreadPoolExecutor) -> None:
    """Unlike one that fails."""
    gate = Gate()
    judging = judging_of(window, gate.around(window._store))
    with served(judging, None, None, None, STUCK_S) as client:
        wait_until_ready(client)
        gate.close()
        waiting = pool.submit(client.store, article(1))
        gate.wait_for(1)
        wait_for(lambda: client.get("/healthz").status == 503, WAIT_S)
        gate.open()
        assert waiting.result(WAIT_S).status == 200


class Panic(BaseException):
    """What a compiled library raises where it has a defect."""


def test_a_judging_thread_that_dies_ends_the_service(window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it dies of: nobody would judge any more, and what starts the service again has to see that it ended."""

    def panic(*_: object) -> None:
        raise Panic("index out of bounds")

    with pytest.raises(Panic), served(judging_of(window)) as client:  # noqa: PT012  # raised as it is left
        wait_until_ready(client)
        monkeypatch.setattr("consumer.judge.detector.Detector.judge", panic)
        assert client.store(article(1)).status == 503
        wait_for(lambda: has_ended(client), WAIT_S)


def has_ended(client: Client) -> bool:
    """Return whether nobody listens any more."""
    try:
        client.get("/healthz")
    except OSError:
        return True
    return False
