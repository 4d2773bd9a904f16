"""Record batches written byte by byte and sent over a socket: what no client library lets a producer send.

A header's name is any bytes here, a timestamp any number, and a batch may be a transaction's. The layout is that of
magic 2 (https://kafka.apache.org/documentation/#recordbatch); the request is Produce version 7.
"""

import gzip
import itertools
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import cramjam

WAIT_S: Final = 120.0
NO_TIMESTAMP: Final = -1
Compression = Literal["none", "gzip", "zstd"]
_PRODUCE: Final = 0
_VERSION: Final = 7
"""The first that takes zstd."""
_ATTRIBUTES: Final[dict[Compression, int]] = {"none": 0, "gzip": 1, "zstd": 4}
_POLYNOMIAL: Final = 0x82F63B78
_NO_LEADER: Final = frozenset({3, 5, 6})
_NOBODY: Final = struct.pack(">qhi", -1, -1, -1)
"""The producer's id and epoch, and the first sequence: of a producer that has none."""


@dataclass(frozen=True, slots=True)
class RawMessage:
    """One record, all of it bytes as they are sent."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    timestamp_ms: int = 1_700_000_000_000


def produce(
    address: str, topic: str, partition: int, messages: Sequence[RawMessage], compression: Compression = "none"
) -> int:
    """Write these records as one batch; the offset of the first. One of the brokers has to lead the partition."""
    return produce_batch(address, topic, partition, record_batch(messages, compression))


def produce_batch(address: str, topic: str, partition: int, batch: bytes) -> int:
    """Write a batch that is encoded already; the offset of its first record. A new topic's leader is waited for."""
    until_s = time.monotonic() + WAIT_S
    while True:
        error, offset = _first_leader(address.split(","), topic, partition, batch)
        if error not in _NO_LEADER or time.monotonic() >= until_s:
            assert error == 0, f"the broker refused the batch with error {error}"
            return offset
        time.sleep(0.05)


def _first_leader(addresses: Sequence[str], topic: str, partition: int, batch: bytes) -> tuple[int, int]:
    """The answer of the broker that leads the partition, or of the last one. Raises ``OSError`` if none answers."""
    answered, failure = None, None
    for address in addresses:
        try:
            answered = _asked(address, topic, partition, batch)
        except OSError as error:
            failure = error
        else:
            if answered[0] not in _NO_LEADER:
                return answered
    if answered is None:
        assert failure is not None
        raise failure
    return answered


def _asked(address: str, topic: str, partition: int, batch: bytes) -> tuple[int, int]:
    """One request; the broker's error code, and the offset."""
    header = struct.pack(">hhi", _PRODUCE, _VERSION, 1) + _text("raw")
    asked = struct.pack(">hhi", -1, -1, int(WAIT_S * 1000))  # no transactional id, all replicas
    written = struct.pack(">i", 1) + _text(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    request = header + asked + written
    host, port = address.rsplit(":", 1)
    with (
        socket.create_connection((host, int(port)), WAIT_S) as connection,
        connection.makefile("rb") as answer,
    ):
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", answer.read(4))
        received = answer.read(size)
    # Correlation, one topic with its name, one partition with its number.
    at = 4 + 4 + len(_text(topic)) + 4 + 4
    error, offset = struct.unpack_from(">hq", received, at)
    return error, offset


def record_batch(messages: Sequence[RawMessage], compression: Compression = "none") -> bytes:
    """A batch of these records, which begins at offset 0 and belongs to no transaction."""
    first_ms = messages[0].timestamp_ms
    records = b"".join(_record(message, at, first_ms) for at, message in enumerate(messages))
    if compression == "gzip":
        records = gzip.compress(records)
    elif compression == "zstd":
        records = bytes(cramjam.zstd.compress(records))
    newest_ms = max(message.timestamp_ms for message in messages)
    covered = (
        struct.pack(">hiqq", _ATTRIBUTES[compression], len(messages) - 1, first_ms, newest_ms)
        + _NOBODY
        + struct.pack(">i", len(messages))
        + records
    )
    behind = struct.pack(">ibI", -1, 2, crc32c(covered)) + covered
    return struct.pack(">qi", 0, len(behind)) + behind


def crc32c(data: bytes) -> int:
    """The checksum of Castagnoli's, which the standard library lacks."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE: Final = _table()


def _record(message: RawMessage, at: int, first_ms: int) -> bytes:
    headers = itertools.chain.from_iterable((varint(len(name)), name, _bytes(value)) for name, value in message.headers)
    body = (
        b"\0"
        + varint(message.timestamp_ms - first_ms)
        + varint(at)
        + _bytes(message.key)
        + _bytes(message.value)
        + varint(len(message.headers))
        + b"".join(headers)
    )
    return varint(len(body)) + body


def _bytes(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def varint(number: int) -> bytes:
    """Zigzag, seven bits a byte."""
    left = (number << 1) ^ (number >> 63)
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
