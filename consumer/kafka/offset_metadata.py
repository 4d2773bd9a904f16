"""Notes: the state of a partition that dupwatch stores in the metadata of its committed offset.

A note describes a partition once all records before the offset are answered, so note and offset are committed
together. It is a JSON object: ``{"dupwatch":1,"highest_ms":1767225600000,"window":[[50,3],[12,0]]}``. Only a note with
nothing but ``migrate`` is plain text. An unreadable note never ends a run: the consumer reports it, and treats it as
empty. See docs/use/streaming.md and docs/decisions/0030.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from consumer.model.record import Partition
from consumer.pipeline.dead_letter_policy import WINDOW_COUNTS_MAX

FORMAT: Final = 1
"""Increased when the meaning of a member changes. A new member does not need that: readers skip unknown members."""
NOTE_BYTES_MAX: Final = 1_000
"""Brokers accept 4,096 bytes by default (``offset.metadata.max.bytes``)."""
REASON_CHARS_MAX: Final = 40
_COUNT_MAX: Final = 10**13

MigrationState = Literal["filling", "switched"]
Count = Annotated[int, msgspec.Meta(ge=0, le=_COUNT_MAX)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_MIGRATION: Final = "dupwatch migrate: "
"""The beginning of the notes of a migration. Consumers of older versions look for these words."""


class HoldReason(msgspec.Struct, frozen=True, kw_only=True):
    """The reason for a hold: ``bad`` of the last ``records`` could not be judged, most often because of ``reason``.

    With ``batch_offset``, the client cannot unpack the batch that begins there, and ``reason`` is its error. ``bad``
    and ``records`` are then 0: versions that do not know ``batch_offset`` hold the partition only if both are present.
    """

    bad: Count
    records: Count
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX, pattern="^[a-z0-9_]*$")] = ""
    batch_offset: Offset | msgspec.UnsetType = msgspec.UNSET

    def sentence(self) -> str:
        """Return a description of the fault, as part of a message."""
        if self.batch_offset is not msgspec.UNSET:
            return f"the client cannot unpack the batch at offset {self.batch_offset}: {self.reason}"
        why = f", most often for {self.reason}" if self.reason else ""
        return f"{self.bad:,} of the last {self.records:,} records cannot be judged{why}"

    def remedy(self) -> str:
        """Return the steps that end the hold, as sentences."""
        if self.batch_offset is not msgspec.UNSET:
            return (
                "Find the first offset after the batch, stop the consumers of the group, and skip the batch:"
                " dupwatch poison resume TOPIC:PARTITION --skip-to OFFSET"
            )
        return (
            "Correct the producer or the field mapping, stop the consumers of the group, and resume the partition:"
            " dupwatch poison resume"
        )


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The note of one partition.

    ``highest_ms`` is the highest arrival so far. ``window`` has pairs of counts, oldest first: of records, and of bad
    ones among them. The limit on bad records does not apply before the offset ``free_until``. Only ``dupwatch migrate``
    sets ``migrate``.
    """

    highest_ms: Count | None = None
    window: Annotated[tuple[tuple[Count, Count], ...], msgspec.Meta(max_length=WINDOW_COUNTS_MAX)] = ()
    held: HoldReason | None = None
    free_until: Offset = 0
    migrate: MigrationState | None = None


EMPTY_NOTE: Final = Note()


class _StoredNote(Note, frozen=True, kw_only=True, omit_defaults=True):
    """A note with the member that distinguishes it from other metadata."""

    dupwatch: Literal[1]


class UnreadableNote(ValueError):  # noqa: N818  # named for the note, which is at fault
    """The metadata of an offset is not a note that this version can read."""


_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_DECODER: Final = msgspec.json.Decoder(_StoredNote)


def encode_note(note: Note) -> str:
    """Return the metadata of an offset; empty for an empty note."""
    if note == EMPTY_NOTE:
        return ""
    if note == Note(migrate=note.migrate):
        return f"{_MIGRATION}{note.migrate}"
    return _ENCODER.encode({"dupwatch": FORMAT} | _members(note)).decode()


def decode_note(metadata: str | None) -> Note:
    """Return the note in an offset's metadata. Raises ``UnreadableNote`` for other metadata, or a later format."""
    if not metadata:
        return EMPTY_NOTE
    if metadata.startswith(_MIGRATION):
        return _migration(metadata.removeprefix(_MIGRATION))
    try:
        stored = _DECODER.decode(metadata.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UnreadableNote(f"{metadata[:100]!r}: {error}") from error
    return Note(**{name: getattr(stored, name) for name in Note.__struct_fields__})


def note_of(metadata: str | None) -> Note:
    """Return the note in an offset's metadata, or an empty note if it is unreadable.

    For commands, which leave the report of an unreadable note to the consumers.
    """
    try:
        return decode_note(metadata)
    except UnreadableNote:
        return EMPTY_NOTE


def _members(note: Note) -> dict[str, object]:
    members: dict[str, object] = msgspec.to_builtins(note)
    return members


def _migration(state: str) -> Note:
    try:
        return Note(migrate=msgspec.convert(state, MigrationState))
    except msgspec.ValidationError as error:
        raise UnreadableNote(f"{_MIGRATION}{state[:100]!r}: {error}") from error


class HoldRequest(NamedTuple):
    """A request to hold a partition: the offset of the first record that must not be judged, and the reason."""

    offset: int
    held: HoldReason


class Ledger:
    """The notes of the partitions of the current batch: read when it begins, stored when it is committed.

    The code that judges a batch and the code that commits it share them here. For the main thread only.
    """

    def __init__(self) -> None:
        self._notes: dict[Partition, Note] = {}

    @property
    def notes(self) -> Mapping[Partition, Note]:
        """The notes to be committed with the batch."""
        return self._notes

    def begin(self, notes: Mapping[Partition, Note]) -> None:
        """Begin a batch whose partitions have these notes."""
        self._notes = {**notes}

    def note(self, partition: Partition) -> Note:
        """Return the current note of a partition of the batch."""
        return self._notes.get(partition, EMPTY_NOTE)

    def put(self, partition: Partition, note: Note) -> None:
        """Replace the note of a partition."""
        self._notes[partition] = note
