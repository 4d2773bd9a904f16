"""Finds the record of a released article, so that the article can return to the clean feed.

A flag leaves a tombstone in ``PREFIX.unique``. Undoing the flag needs the record itself, and the store has no copy of
it. The stored version has the origin of the record, so reading one offset finds it. If the record at that offset is
not the released version, nothing is sent.

Versions stored by earlier releases of dupwatch have no origin. For them the topic of flags is searched: the headers of
the flag's event in ``PREFIX.duplicates`` say where the record is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from consumer.judge.events import version_name
from consumer.kafka.sink.event_headers import ORIGIN_OFFSET, ORIGIN_PARTITION, ORIGIN_TOPIC
from consumer.model.errors import SourceError
from consumer.model.record import RawRecord, partition_named
from consumer.model.verdict import Released, UnreadableEvent, Verdict, decode_verdict
from consumer.store_tools.releases import FlaggedVersion
from storage.clock import MS_PER_S
from storage.records import Origin, StoredVersion

_CLOCK_LAG_MS_MAX: Final = 600_000
"""How far the clock that dates the topic of flags may be behind the time of a decision."""


class ReturnObstacle(NamedTuple):
    """The reason why an article cannot return to the clean feed, as a clause.

    ``is_temporary`` says that the article may be able to return later.
    """

    reason: str
    is_temporary: bool = False


class RecordPosition(NamedTuple):
    """The position of a record in Kafka."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class RecordOrigins:
    """The positions of records that the flags of some versions name, by the version's reference.

    ``is_complete`` says that all flags were read, so there are no further positions.
    """

    positions: Mapping[bytes, Sequence[RecordPosition]]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class RecordSearch:
    """A search for the record of a version, at its origin or at the positions that its flags name.

    ``flags_since`` yields the records of ``flags_topic`` from a time in ms on. ``record_at`` returns a record, or None
    if it no longer exists. Both raise ``SourceError``. ``is_version`` says whether a record has the id, title and text
    of a version.
    """

    flags_topic: str
    flags_since: Callable[[int], Iterator[RawRecord]]
    record_at: Callable[[RecordPosition], RawRecord | None]
    is_version: Callable[[RawRecord, StoredVersion], bool]

    def origins_of(self, versions: Sequence[StoredVersion]) -> RecordOrigins:
        """Return positions that the flags of each version name, reading the topic once for all versions.

        Reading stops once each version has a position. Versions that are pending, have ended or have an origin are left
        out. Raises ``SourceError``.
        """
        without_origin = [
            stored
            for stored in versions
            if stored.verdict is not None and stored.ends_at is None and stored.record.origin is None
        ]
        if not without_origin:
            return RecordOrigins({}, is_complete=True)
        since_ms = min(_sent_from_ms(decode_verdict(stored.verdict or b"")) for stored in without_origin)
        references = {_flag_name(stored): stored.record.reference for stored in without_origin}
        keys = {key for key, _ in references}
        positions: dict[bytes, list[RecordPosition]] = {reference: [] for reference in references.values()}
        missing = set(positions)
        for flag in self.flags_since(since_ms):
            if flag.key not in keys:
                continue
            reference, position = references.get(_name_of(flag)), _position_in(flag)
            if reference is None or position is None:
                continue
            if position not in positions[reference]:
                positions[reference].append(position)
            missing.discard(reference)
            if not missing:
                return RecordOrigins(positions, is_complete=False)
        return RecordOrigins(positions, is_complete=True)

    def record_of(self, flagged: FlaggedVersion, known: RecordOrigins | None = None) -> RawRecord | ReturnObstacle:
        """Return the record of this version, to be sent again, or the obstacle to sending it.

        ``known`` are positions found before.
        """
        stored = flagged.stored
        if stored.ends_at is not None:
            return ReturnObstacle("a later version or a retraction has arrived since, and the topic keeps the last one")
        if stored.record.origin is not None:
            position = _position_of(stored.record.origin)
            return (
                ReturnObstacle("it did not come from a topic") if position is None else self._record(position, stored)
            )
        found: RawRecord | ReturnObstacle | None = None
        try:
            for position in self._positions(flagged, known):
                if isinstance(found := self._record(position, stored), RawRecord):
                    return found
        except SourceError as error:
            return ReturnObstacle(str(error), is_temporary=True)
        return found or ReturnObstacle(f"none of its flags in {self.flags_topic} says where its record is")

    def _positions(self, flagged: FlaggedVersion, known: RecordOrigins | None) -> Iterator[RecordPosition]:
        """Yield the positions that the flags of this version name, known positions first. Raises ``SourceError``."""
        stored = flagged.stored
        key, name = stored.record.id.encode(), _flag_name(stored)
        positions = None if known is None else known.positions.get(stored.record.reference)
        seen = set(positions or ())
        yield from positions or ()
        if positions is not None and known is not None and known.is_complete:
            return
        for flag in self.flags_since(_sent_from_ms(flagged.verdict)):
            if flag.key != key or _name_of(flag) != name:
                continue
            position = _position_in(flag)
            if position is not None and position not in seen:
                seen.add(position)
                yield position

    def _record(self, position: RecordPosition, stored: StoredVersion) -> RawRecord | ReturnObstacle:
        """Return the record at this position, or an obstacle if it no longer exists or is not this version."""
        where = f"{position.topic} [{position.partition}] offset {position.offset}"
        try:
            record = self.record_at(position)
        except SourceError as error:
            return ReturnObstacle(f"its record at {where} cannot be read: {error}", is_temporary=True)
        if record is None:
            return ReturnObstacle(f"its record at {where} no longer exists")
        if not self.is_version(record, stored):
            return ReturnObstacle(f"the record at {where} is not this version, as decoded with these settings")
        return record


def _flag_name(stored: StoredVersion) -> tuple[bytes | None, str]:
    """Return the key and the version in flags of this version."""
    return stored.record.id.encode(), version_name(stored.record.reference)


def _name_of(flag: RawRecord) -> tuple[bytes | None, str]:
    """Return the key and the version in a message of the topic; the version is "" if the message is not a flag."""
    try:
        verdict = decode_verdict(flag.data)
    except UnreadableEvent:
        # Anybody may write to a topic.
        return flag.key, ""
    return flag.key, (verdict.version or "") if verdict.outcome == "duplicate" else ""


def _position_in(flag: RawRecord) -> RecordPosition | None:
    headers: Mapping[str, bytes | None] = dict(flag.headers)
    topic, partition, offset = (headers.get(name) or b"" for name in (ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET))
    if not topic or not partition.isdigit() or not offset.isdigit():
        return None
    return RecordPosition(topic.decode(errors="replace"), int(partition), int(offset))


def _position_of(origin: Origin) -> RecordPosition | None:
    """Return the position of an origin's record, or None if it did not come from a topic."""
    partition = partition_named(origin.feed)
    return None if partition is None or origin.sequence is None else RecordPosition(*partition, origin.sequence)


def _sent_from_ms(verdict: Verdict) -> int:
    """Return the earliest time at which the topic of flags may have the flag of a version with this verdict."""
    flagged_at = verdict.released.flagged_at if isinstance(verdict.released, Released) else verdict.decided_at
    return int(datetime.fromisoformat(flagged_at).timestamp() * MS_PER_S) - _CLOCK_LAG_MS_MAX
