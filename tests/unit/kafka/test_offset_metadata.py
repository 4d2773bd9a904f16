"""Notes beside offsets: what is written is read again, and whatever else stands there is never fatal."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.kafka.offset_metadata import (
    EMPTY_NOTE,
    NOTE_BYTES_MAX,
    REASON_CHARS_MAX,
    HoldReason,
    Note,
    UnreadableNote,
    decode_note,
    encode_note,
)
from consumer.pipeline.dead_letter_policy import WINDOW_COUNTS_MAX

COUNTS = st.integers(0, 10**13)
REASONS = st.text("abcdefghijklmnopqrstuvwxyz_0123456789", max_size=REASON_CHARS_MAX)
OFFSETS = st.just(msgspec.UNSET) | st.integers(0, 2**63 - 1)
NOTES = st.builds(
    Note,
    highest_ms=st.none() | COUNTS,
    window=st.lists(st.tuples(COUNTS, COUNTS), max_size=WINDOW_COUNTS_MAX).map(tuple),
    held=st.none() | st.builds(HoldReason, bad=COUNTS, records=COUNTS, reason=REASONS, batch_offset=OFFSETS),
    free_until=st.integers(0, 2**63 - 1),
    migrate=st.sampled_from([None, "filling", "switched"]),
)


@given(NOTES)
def test_what_is_written_is_read_again_and_fits(note: Note) -> None:
    """Whatever a note says, brokers with their default limit take it."""
    written = encode_note(note)
    assert decode_note(written) == note
    assert len(written.encode()) <= NOTE_BYTES_MAX


@given(st.none() | st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_whatever_stands_there_is_a_note_or_unreadable(metadata: str | None) -> None:
    """Other tools write there too."""
    try:
        decode_note(metadata)
    except UnreadableNote:
        assert metadata


@given(NOTES, st.dictionaries(st.text(min_size=12), st.none() | st.integers() | st.lists(st.text())))
def test_members_of_later_versions_are_skipped(note: Note, more: dict[str, object]) -> None:
    """A version that adds some can be put back."""
    if note not in {EMPTY_NOTE, Note(migrate=note.migrate)}:
        assert decode_note(json.dumps(more | json.loads(encode_note(note)))) == note


@pytest.mark.parametrize("metadata", ["", None])
def test_no_metadata_is_no_note(metadata: str | None) -> None:
    """Where nothing was said nothing is written."""
    assert decode_note(metadata) == EMPTY_NOTE
    assert encode_note(EMPTY_NOTE) == ""


@pytest.mark.parametrize("state", ["filling", "switched"])
def test_the_words_of_older_migrations_are_read_and_written(state: str) -> None:
    """Consumers of an older version look for them before they start."""
    written = f"dupwatch migrate: {state}"
    assert encode_note(decode_note(written)) == written
    note = Note(migrate="switched", held=HoldReason(bad=3, records=4))
    assert decode_note(encode_note(note)) == note


@pytest.mark.parametrize(
    "metadata",
    [
        "{}",
        '{"dupwatch":2,"highest_ms":5}',
        '{"dupwatch":1,"highest_ms":"5"}',
        '{"dupwatch":1,"highest_ms":-5}',
        '{"dupwatch":1,"window":[[1]]}',
        '{"dupwatch":1,"held":{"bad":1}}',
        '{"dupwatch":1,"held":{"bad":1,"records":2,"reason":"\\u001b[31m"}}',
        '{"dupwatch":1',
        "dupwatch migrate: something",
        "consumer-42 @ 2026",
        "\ud800",
        "[" * 100_000,
    ],
)
def test_what_is_damaged_or_of_another_format_is_unreadable(metadata: str) -> None:
    """The error says what stands there, and not all of it where that is long."""
    with pytest.raises(UnreadableNote) as raised:
        decode_note(metadata)
    assert len(str(raised.value)) < 600


def test_a_hold_says_what_has_happened() -> None:
    """With the reason that was most frequent, where there is one."""
    assert HoldReason(bad=600, records=1_000).sentence() == "600 of the last 1,000 records cannot be judged"
    assert HoldReason(bad=6, records=10, reason="invalid_json").sentence().endswith("most often for invalid_json")
