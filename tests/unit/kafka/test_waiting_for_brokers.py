"""A long wait for brokers is announced with its reason; a short one is not."""

import logging
import socket
import threading

import pytest

from consumer.kafka import clients
from consumer.kafka.clients import waiting_for_brokers
from tests.cli.command import wait_for


@pytest.fixture(autouse=True)
def short_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Announce a wait after 50 ms."""
    monkeypatch.setattr(clients, "NOTICE_S", 0.05)


def until_logged(caplog: pytest.LogCaptureFixture) -> str:
    """Wait for a message in the log, and return it."""
    wait_for(lambda: bool(caplog.messages))
    return caplog.messages[0]


def test_a_long_wait_names_the_brokers_and_why(caplog: pytest.LogCaptureFixture) -> None:
    """The clients do not say why they wait; a connection of our own shows it."""
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed, caplog.at_level(logging.WARNING):
        # Bound, but not listening: connections are refused.
        closed.bind(("127.0.0.1", 0))
        accepting, refusing = (f"127.0.0.1:{each.getsockname()[1]}" for each in (silent, closed))
        with waiting_for_brokers(f"{accepting},{refusing}"):
            message = until_logged(caplog)
    assert f"{accepting}: it accepts connections, but has not answered completely yet" in message
    assert f"{refusing}: Connection refused" in message


def test_an_address_without_a_port_is_tried_at_the_port_that_clients_assume(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names that port, because the address does not."""
    with socket.socket() as closed, caplog.at_level(logging.WARNING):
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        monkeypatch.setattr(clients, "_DEFAULT_PORT", port)
        with waiting_for_brokers("127.0.0.1"):
            message = until_logged(caplog)
    assert f"127.0.0.1 (port {port}): Connection refused" in message


def test_a_short_wait_is_not_announced(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its watch ends at once."""
    monkeypatch.setattr(clients, "NOTICE_S", 3_600.0)
    with caplog.at_level(logging.WARNING):
        with waiting_for_brokers("127.0.0.1:1"):
            assert watches()
        wait_for(lambda: not watches())
    assert caplog.messages == []


def test_a_wait_that_ends_while_connections_are_tried_is_not_announced(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brokers have answered by then."""
    tried, over = threading.Event(), threading.Event()

    def try_one(address: str) -> str:
        tried.set()
        over.wait(60)
        return address

    monkeypatch.setattr(clients, "_state", try_one)
    with caplog.at_level(logging.WARNING):
        with waiting_for_brokers("127.0.0.1:1"):
            assert tried.wait(60)
        over.set()
        wait_for(lambda: not watches())
    assert caplog.messages == []


def watches() -> list[threading.Thread]:
    """Return the threads that watch a wait."""
    return [thread for thread in threading.enumerate() if thread.name == "waiting"]
