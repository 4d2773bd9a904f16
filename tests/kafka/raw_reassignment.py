"""A request that the client library lacks: in which order brokers are preferred as leaders of a partition.

AlterPartitionReassignments, version 0 (https://kafka.apache.org/protocol#The_Messages_AlterPartitionReassignments). Any
broker takes it and asks the controller.
"""

import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Final

_REASSIGN: Final = 45
_WAIT_S: Final = 120.0
_NO_TAGS: Final = b"\0"
_CORRELATION: Final = struct.Struct(">i")
_ERROR_AT: Final = 4 + 1 + 4
"""Behind the correlation, no tags, and the throttle."""

Replicas = Mapping[tuple[str, int], Sequence[int]]
"""Brokers by topic and partition, the preferred leader first."""


def reassign(address: str, replicas: Replicas) -> None:
    """Ask the broker at this address for it. Raises ``OSError`` where it does not answer or refuses."""
    host, port = address.rsplit(":", 1)
    request = _request(replicas)
    with socket.create_connection((host, int(port)), _WAIT_S) as connection, connection.makefile("rb") as answer:
        connection.sendall(struct.pack(">i", len(request)) + request)
        length = answer.read(4)
        received = answer.read(int.from_bytes(length))
    if len(length) < _CORRELATION.size or len(received) < _ERROR_AT + 2:
        raise ConnectionError(f"{address} has closed the connection")
    (error,) = struct.unpack_from(">h", received, _ERROR_AT)
    if error:
        raise OSError(f"{address} refused new replicas with error {error}")


def _request(replicas: Replicas) -> bytes:
    header = struct.pack(">hhi", _REASSIGN, 0, 1) + struct.pack(">h", 3) + b"raw" + _NO_TAGS
    topics = _array([_topic(name, replicas) for name in sorted({name for name, _ in replicas})])
    return header + struct.pack(">i", int(_WAIT_S * 1000)) + topics + _NO_TAGS


def _topic(name: str, replicas: Replicas) -> bytes:
    partitions = [
        struct.pack(">i", partition) + _array([struct.pack(">i", broker) for broker in brokers]) + _NO_TAGS
        for (topic, partition), brokers in replicas.items()
        if topic == name
    ]
    return _length(len(name)) + name.encode() + _array(partitions) + _NO_TAGS


def _array(items: Sequence[bytes]) -> bytes:
    return _length(len(items)) + b"".join(items)


def _length(count: int) -> bytes:
    """One more than the count, seven bits a byte."""
    left, written = count + 1, bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])
