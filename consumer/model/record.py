"""Records as sources read them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from consumer.model.errors import BadRecord

NO_TIME_MS: Final = -1
"""The time of a record without a time, as in Kafka."""

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""

Header = tuple[str, bytes | None]
"""A header of a record: its name, which may repeat, and its value."""
Headers = list[Header]
"""Headers of a message that is being built, in order."""

_PARTITION_NAME: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<number>[0-9]+)")

End = object
"""The position where the next batch begins. Each source has its own type, which only its journal reads."""


def headers_bytes(headers: Iterable[Header]) -> int:
    """Return the size of names and values, the part of the headers that the sender controls."""
    return sum(len(name) + len(value or b"") for name, value in headers)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The layout of a CSV or TSV file.

    ``columns`` are the names in its header, in order, or "" for a column without a name. ``encoding`` is Python's name
    for the encoding.
    """

    columns: tuple[str, ...]
    separator: str
    encoding: str


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it was read, without its line end.

    ``line`` counts from 1; ``start`` is the offset of the record's first byte. If ``sha256`` is None, ``data`` is the
    whole record. If not, ``data`` is only the beginning, and ``sha256`` is the digest of the whole. ``size_bytes`` is
    always the size of the whole. A record with a ``fault``, found while reading, is rejected and not decoded. ``end``
    is where a later run resumes after this record, if the source can resume at single records. ``line_end`` is the line
    end that followed the record. Rows of CSV and TSV files have a ``table``.

    Sources set the other fields if they know them. In a ``partition``, ``line`` is 0 and ``start`` is the
    record's offset. ``time_ms`` is any number that the sender chose, or ``NO_TIME_MS``. ``is_null`` distinguishes a
    tombstone from an empty value. ``headers_lost`` counts headers that could not be read unchanged.
    """

    line: int
    start: int
    data: bytes
    size_bytes: int
    sha256: bytes | None
    fault: BadRecord | None
    end: End = None
    partition: Partition | None = None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    time_ms: int = NO_TIME_MS
    is_null: bool = False
    headers_lost: int = 0
    line_end: bytes = b""
    table: TableLayout | None = None

    def whole(self) -> bytes:
        """Return the bytes to decode. Raises the ``BadRecord`` that was found while reading, if any."""
        if self.fault is not None:
            raise self.fault
        return self.data

    def known_partition(self) -> Partition:
        """Return the partition. Raises ``TypeError`` if the source has no partitions."""
        if self.partition is None:
            raise TypeError("this record does not come from a partition")
        return self.partition


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Records in the order of the source. There are none if only blank lines were read, or only offsets have changed.

    ``end`` is where the next batch begins. ``last`` is true if the source ends here; sources that cannot know this
    leave it false.
    """

    records: tuple[RawRecord, ...]
    end: End = None
    last: bool = False


def partition_name(partition: Partition) -> str:
    """Return the name of a partition, as used in messages and commands."""
    topic, number = partition
    return f"{topic}:{number}"


def partition_named(name: str) -> Partition | None:
    """Return the partition with this name, or None for an invalid name."""
    match = _PARTITION_NAME.fullmatch(name)
    return None if match is None else (match["topic"], int(match["number"]))
