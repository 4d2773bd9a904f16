"""What dupwatch keeps beside the committed offset of a partition, in the offset's metadata.

A note says how things stand once everything before its offset was answered, so it is committed together with it. It is
a JSON object: ``{"dupwatch":1,"highest_ms":1767225600000,"window":[[50,3],[12,0]]}``. Notes are never a reason to fail:
what cannot be read counts as no note, and whoever reads it says so. docs/resuming.md, docs/decisions/0030.
"""

from typing import Annotated, Final, Literal, NamedTuple

import msgspec

FORMAT: Final = 1
"""Raised when a member changes its meaning. Members may be added without that: readers skip those they do not know."""
NOTE_BYTES_MAX: Final = 1_000
"""Brokers take 4,096 bytes (``offset.metadata.max.bytes``) unless they are told otherwise."""
WINDOW_COUNTS_MAX: Final = 22
"""How many counts the window of a note has at most; see ``consumer.pipeline.bad_record_limit``."""
REASON_CHARS_MAX: Final = 40
_COUNT_MAX: Final = 10**13

Migrating = Literal["filling", "switched"]
Count = Annotated[int, msgspec.Meta(ge=0, le=_COUNT_MAX)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_MIGRATION: Final = "dupwatch migrate: "
"""How notes of a migration began before there were others. Older consumers look for these words."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Why a partition is not read on: so many of the last records could not be judged, for this reason most often.

    Where ``batch_offset`` is set, the client cannot unpack the batch that begins there; ``reason`` is its error. Then
    ``bad`` and ``records`` are 0: versions that do not know ``batch_offset`` need them to hold the partition as well.
    """

    bad: Count
    records: Count
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX, pattern="^[a-z0-9_]*$")] = ""
    batch_offset: Offset | msgspec.UnsetType = msgspec.UNSET

    def sentence(self) -> str:
        """What has happened, for a person."""
        if self.batch_offset is not msgspec.UNSET:
            return f"the client cannot unpack the batch at offset {self.batch_offset}: {self.reason}"
        why = f", most often for {self.reason}" if self.reason else ""
        return f"{self.bad:,} of the last {self.records:,} records cannot be judged{why}"

    def remedy(self) -> str:
        """What to do, for a person."""
        if self.batch_offset is not msgspec.UNSET:
            return (
                "Find the offset behind the batch, stop the consumers of the group, and go past it:"
                " dupwatch poison resume TOPIC:PARTITION --skip-to OFFSET"
            )
        return (
            "Correct the producer or the field mapping, stop the consumers of the group, and let the partition go on:"
            " dupwatch poison resume"
        )


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The note of one partition.

    ``highest_ms`` is the highest arrival so far. ``window`` are counts of records and of bad ones among them, the
    oldest first. Before the offset ``free_until`` the limit on poison does not count. ``migrate`` is set by
    ``dupwatch migrate`` alone.
    """

    highest_ms: Count | None = None
    window: Annotated[tuple[tuple[Count, Count], ...], msgspec.Meta(max_length=WINDOW_COUNTS_MAX)] = ()
    held: Held | None = None
    free_until: Offset = 0
    migrate: Migrating | None = None


NOTHING: Final = Note()


class _Marked(Note, frozen=True, kw_only=True, omit_defaults=True):
    """A note as it is written: nothing else that stands beside an offset begins like this."""

    dupwatch: Literal[1]


class UnreadableNote(ValueError):  # noqa: N818  # named for the note; it is nobody's error
    """These characters are no note that this version can read."""


_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_DECODER: Final = msgspec.json.Decoder(_Marked)


def encode_note(note: Note) -> str:
    """The metadata of an offset: empty where there is nothing to say."""
    if note == NOTHING:
        return ""
    if note == Note(migrate=note.migrate):
        return f"{_MIGRATION}{note.migrate}"
    return _ENCODER.encode({"dupwatch": FORMAT} | _members(note)).decode()


def decode_note(metadata: str | None) -> Note:
    """The note in an offset's metadata. Raises ``UnreadableNote`` for what is none, or of a later format."""
    if not metadata:
        return NOTHING
    if metadata.startswith(_MIGRATION):
        return _migration(metadata.removeprefix(_MIGRATION))
    try:
        found = _DECODER.decode(metadata.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UnreadableNote(f"{metadata[:100]!r}: {error}") from error
    return Note(**{name: getattr(found, name) for name in Note.__struct_fields__})


def note_of(metadata: str | None) -> Note:
    """The note in an offset's metadata, nothing where that is none: for those who only look."""
    try:
        return decode_note(metadata)
    except UnreadableNote:
        return NOTHING


def _members(note: Note) -> dict[str, object]:
    members: dict[str, object] = msgspec.to_builtins(note)
    return members


def _migration(state: str) -> Note:
    try:
        return Note(migrate=msgspec.convert(state, Migrating))
    except msgspec.ValidationError as error:
        raise UnreadableNote(f"{_MIGRATION}{state[:100]!r}: {error}") from error


class Holding(NamedTuple):
    """A partition that is to be held: where its part of the batch begins, and why."""

    offset: int
    held: Held
