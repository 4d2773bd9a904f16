"""Records as sources read them, and where a source is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from consumer.model.errors import BadRecord

NO_TIME_MS: Final = -1
"""The timestamp of a message that has none, as the brokers write it."""


Partition = tuple[str, int]
"""The topic and the number."""

Header = tuple[str, bytes | None]
"""A header of a message: its name, which may repeat, and its value."""
Headers = list[Header]
"""Headers of a message that is being built, in order."""


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a source was read: ``line`` lines are done, which were ``offset`` bytes of decompressed input."""

    line: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """What a record that came from a topic has beside its value, untouched.

    ``timestamp_ms`` is ``NO_TIME_MS`` where the message has none, and else any number that its producer chose.
    ``null_value`` tells a tombstone from an empty value. ``leader_epoch`` goes into the commit, so that a broker can
    tell that a log was cut back. ``headers_lost`` counts the headers that the client could not hand out as they came
    (``sources.client_headers``).
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
    """What headers hold in bytes that their sender chose the number of."""
    return sum(len(name) + len(value or b"") for name, value in headers)


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it was read, without its line end.

    ``line`` counts from 1, ``start`` is the offset of the record's first byte. ``data`` is the whole record, or only
    its first bytes; then ``sha256`` is the digest of all of it, and None otherwise. ``size_bytes`` is always the size
    of the whole. ``fault`` is what was found wrong while reading; such a record is not decoded but rejected.
    ``end`` is the position at which a later run goes on once this record is answered. A record of a topic has its
    ``message``; then ``line`` is 0 and ``start`` the offset in its partition.
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
        """The bytes to be decoded; raises the fault where one was found while reading."""
        if self.fault is not None:
            raise self.fault
        return self.data


class Offsets(NamedTuple):
    """Where in each partition of a topic the next batch begins, and which assignment of partitions that belongs to."""

    next: Mapping[Partition, int]
    assignment: int


End = Position | Offsets


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Records in the order of the source, none when only blank lines came; ``end`` is where the next batch begins.

    ``last``: the source has nothing behind it. A stream and a topic do not know.
    """

    records: tuple[RawRecord, ...]
    end: End
    last: bool = False


def partition_name(partition: Partition) -> str:
    """A partition as messages name it, and commands take it."""
    topic, number = partition
    return f"{topic}:{number}"
