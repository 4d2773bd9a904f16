"""Records as sources read them, and positions in a source."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from consumer.model.errors import BadRecord

NO_TIME_MS: Final = -1
"""The timestamp of a message that has none, as the brokers write it."""


Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""

Header = tuple[str, bytes | None]
"""A header of a message: its name, which may repeat, and its value."""
Headers = list[Header]
"""Headers of a message that is being built, in order."""


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a file was read: ``line`` lines, which are ``offset`` bytes of decompressed input."""

    line: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """The parts of a message other than its value, as they were received.

    ``timestamp_ms`` is ``NO_TIME_MS`` where the message has none; otherwise it is any number that the producer chose.
    ``null_value`` tells a tombstone from an empty value. ``leader_epoch`` is committed with the offset, so that a
    broker can detect that a log was truncated. ``headers_lost`` counts headers that the client could not return
    unchanged (``kafka.source.client_headers``).
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int
    null_value: bool = False
    leader_epoch: int | None = None
    headers_lost: int = 0


def headers_bytes(headers: Iterable[Header]) -> int:
    """Return the size of names and values, the part of headers whose size the sender chooses."""
    return sum(len(name) + len(value or b"") for name, value in headers)


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it was read, without its line end.

    ``line`` counts from 1, ``start`` is the offset of the record's first byte. ``data`` is the whole record, and then
    ``sha256`` is None; or it is only the first bytes, and ``sha256`` is the digest of the whole. ``size_bytes`` is
    always the size of the whole. A record with a ``fault``, found while reading, is rejected and not decoded. ``end``
    is where a later run resumes once this record is answered. A record of a topic has its ``message``; its ``line`` is
    0, and ``start`` is its offset in the partition.
    """

    line: int
    start: int
    data: bytes
    size_bytes: int
    sha256: bytes | None
    fault: BadRecord | None
    end: Position
    message: Message | None = None

    def whole(self) -> bytes:
        """Return the bytes to decode. Raises the fault that was found while reading, a ``BadRecord``."""
        if self.fault is not None:
            raise self.fault
        return self.data


class Offsets(NamedTuple):
    """Where the next batch begins in each partition of a topic, and the assignment of partitions that this is for."""

    next: Mapping[Partition, int]
    assignment: int


End = Position | Offsets


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Records in the order of the source; none where only blank lines were read.

    ``end`` is where the next batch begins. ``last`` says that the source ends here; it is never set for a stream or a
    topic, which cannot know.
    """

    records: tuple[RawRecord, ...]
    end: End
    last: bool = False


def partition_name(partition: Partition) -> str:
    """Return the name of a partition, as messages show it and commands take it."""
    topic, number = partition
    return f"{topic}:{number}"
