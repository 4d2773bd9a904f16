"""A command that waits for a store or for brokers says so after two seconds, and goes on waiting."""

import logging
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

log = logging.getLogger("dupwatch")

NOTICE_S: Final = 2.0
_PROBE_S: Final = 1.0
_ADDRESS: Final = re.compile(r"(?:[A-Za-z_]+://)?\[?(?P<host>[^\]/]+?)\]?:(?P<port>[0-9]{1,5})")


def tell_store_wait(what: str | None) -> None:
    """Say what is waited for, or with None that the wait is over."""
    if what is None:
        log.warning("The store answers again.")
    else:
        log.warning("Waiting for %s", what)


@contextmanager
def waiting_for_brokers(brokers: str) -> Iterator[None]:
    """Brokers are asked inside: where that takes more than two seconds, say which, and why as far as it shows.

    ``brokers`` is a list as clients take it, "host:port,host:port".
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
    # The clients keep it to themselves why they get no answer, and a connection of our own shows it.
    found = "; ".join(f"{address}: {_why(address)}" for address in brokers.split(","))
    if not over.is_set():
        log.warning("Waiting for the brokers: %s", found)


def _why(address: str) -> str:
    parts = _ADDRESS.fullmatch(address.strip())
    if parts is None:
        return "no answer yet"
    try:
        socket.create_connection((parts["host"], int(parts["port"])), timeout=_PROBE_S).close()
    except TimeoutError:
        return "no connection yet"
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
    return "it accepts connections, but the answer is not complete yet"
