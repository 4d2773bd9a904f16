"""Finds free ports of this machine, and checks whether a gateway answers on one."""

import random
import socket
import ssl
import struct
from contextlib import suppress
from typing import Final

HOST: Final = "127.0.0.1"
PORTS = range(20_000, 32_000)
"""Below the ports of outgoing connections, which could otherwise take a port before its server does."""
_PROBE_WAIT_S: Final = 5.0
_VERSION_CALL: Final = 0x80010001
_STOP: Final = b"\0"
_HEAD: Final = struct.Struct(">IIi")


_undrawn: list[int] = []


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens.

    They are drawn at random, so that other processes hardly ever get the same ones. This process gets none of them
    again before it has tried all others, because a server may need a while to listen on its port. Returns fewer if not
    enough are free.
    """
    found: list[int] = []
    for _ in PORTS:
        if len(found) == count:
            break
        if not _undrawn:
            _undrawn.extend(random.sample(PORTS, len(PORTS)))
        port = _undrawn.pop()
        if is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def gateway_answers(port: int, *, tls: bool = False) -> bool:
    """Return whether a Thrift gateway answers and reaches HBase, by asking it for the names of all tables.

    The call is written in Thrift's binary protocol: version and kind, name, number, no arguments.
    """
    name = b"getTableNames"
    call = struct.pack(">II", _VERSION_CALL, len(name)) + name + struct.pack(">i", 1) + _STOP
    with suppress(OSError), socket.create_connection((HOST, port), timeout=_PROBE_WAIT_S) as plain:
        connection = _unverified().wrap_socket(plain) if tls else plain
        connection.sendall(call)
        reply = connection.makefile("rb").read(_HEAD.size + len(name) + 3)
        # The result is field 0; errors, of the gateway or of HBase, are another field.
        return len(reply) == _HEAD.size + len(name) + 3 and reply[-2:] == b"\0\0"
    return False


def _unverified() -> ssl.SSLContext:
    """Return a TLS context that checks nothing, since only a request for the names of tables is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
