"""Records as sources read them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from consumer.model.errors import BadRecord

NO_TIME_MS: Final = -1
"""The time of a record that has none, as Kafka's brokers write it."""

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""

Header = tuple[str, bytes | None]
"""A header of a record: its name, which may repeat, and its value."""
Headers = list[Header]
"""Headers of a message that is being built, in order."""

_PARTITION_NAME: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<number>[0-9]+)")

End = object
"""Where the next batch begins. Each source has its own type, which only the journal of that source reads."""


def headers_bytes(headers: Iterable[Header]) -> int:
    """Return the size of names and values, the part of headers whose size the sender chooses."""
    return sum(len(name) + len(value or b"") for name, value in headers)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """What the rows of a file of CSV or TSV have in common.

    ``columns`` are the names in its header, in order, "" for a column without a name. ``encoding`` is Python's name.
    """

    columns: tuple[str, ...]
    separator: str
    encoding: str


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it was read, without its line end.

    ``line`` counts from 1, ``start`` is the offset of the record's first byte. ``data`` is the whole record, and then
    ``sha256`` is None; or it is only the first bytes, and ``sha256`` is the digest of the whole. ``size_bytes`` is
    always the size of the whole. A record with a ``fault``, found while reading, is rejected and not decoded. ``end``
    is where a later run resumes once this record is answered, if its source resumes at single records. ``line_end`` is
    what followed the record in its file. A row of a file of CSV or TSV has its ``table``.

    A source fills what it knows of the rest. A record of a ``partition`` has 0 as its ``line``, and ``start`` is its
    offset there. ``time_ms`` is any number that the sender chose, ``NO_TIME_MS`` for none. ``is_null`` tells a
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
        """Return the bytes to decode. Raises the fault that was found while reading, a ``BadRecord``."""
        if self.fault is not None:
            raise self.fault
        return self.data

    def known_partition(self) -> Partition:
        """Return the partition, where the source has partitions."""
        if self.partition is None:
            raise TypeError("this record does not come from a partition")
        return self.partition


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Records in the order of the source; none where only blank lines were read.

    ``end`` is where the next batch begins. ``last`` says that the source ends here; it is never set for a source that
    cannot know.
    """

    records: tuple[RawRecord, ...]
    end: End = None
    last: bool = False


def partition_name(partition: Partition) -> str:
    """Return the name of a partition, as messages show it and commands take it."""
    topic, number = partition
    return f"{topic}:{number}"


def partition_named(name: str) -> Partition | None:
    """Return the partition of this name, None if it does not name one."""
    found = _PARTITION_NAME.fullmatch(name)
    return None if found is None else (found["topic"], int(found["number"]))
