"""Announces, after two seconds, which brokers a call waits for, and why they do not answer."""

import logging
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from storage.clock import NOTICE_S

log = logging.getLogger("dupwatch")

_PROBE_S: Final = 1.0
_ADDRESS: Final = re.compile(r"(?:[A-Za-z_]+://)?\[?(?P<host>[^\]/]+?)\]?(?::(?P<port>[0-9]{1,5}))?")
_DEFAULT_PORT: Final = 9092
"""The port that the clients use where an address has none."""


@contextmanager
def waiting_for_brokers(brokers: str) -> Iterator[None]:
    """Log which brokers do not answer, and why, if the block takes more than two seconds.

    ``brokers`` is a list in the form that clients take, "host:port,host:port".
    """
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(brokers, over), name="waiting", daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()


def _watch(brokers: str, over: threading.Event) -> None:
    if over.wait(NOTICE_S):
        return
    # The clients do not say why they get no answer; a connection of our own shows it.
    found = "; ".join(_state(address) for address in brokers.split(","))
    if not over.is_set():
        log.warning("Waiting for the brokers: %s", found)


def _state(address: str) -> str:
    """Return an address, with the port that is assumed where it has none, and what a connection to it shows."""
    parts = _ADDRESS.fullmatch(address.strip())
    if parts is None:
        return f"{address}: no answer yet"
    if parts["port"] is None:
        return f"{address} (port {_DEFAULT_PORT}): {_why(parts['host'], _DEFAULT_PORT)}"
    return f"{address}: {_why(parts['host'], int(parts['port']))}"


def _why(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=_PROBE_S).close()
    except TimeoutError:
        return "no connection yet"
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
    return "it accepts connections, but has not answered completely yet"
