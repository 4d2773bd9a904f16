"""The checkpoint: complete or missing, and only valid for its own run."""

import os
from pathlib import Path

import msgspec
import pytest

from consumer.files.checkpoint import (
    HEAD_BYTES_MAX,
    Beginning,
    Checkpoint,
    FileHead,
    OutcomeCounts,
    began_ms,
    check_settings,
    check_source,
    checkpoint_path,
    head_of,
    load,
    save,
)
from consumer.files.lines import Position
from consumer.model.errors import ConfigError, SinkError
from consumer.model.ports import OutputSizes
from storage.files import WriteOptions

CHECKPOINT = Checkpoint(
    source="feed.jsonl",
    position=Position(3, 40),
    began_ms=1_700_000_000_000,
    marks=OutputSizes(10, 20),
    settings="ab12",
    counts=OutcomeCounts(unique=1, dead_letters=2),
)


@pytest.mark.parametrize("durable", [False, True])
def test_what_is_saved_is_loaded(tmp_path: Path, durable: bool) -> None:  # noqa: FBT001
    """A checkpoint comes back as it was, in place of an older one, and nothing is left beside it."""
    path = checkpoint_path(tmp_path / "out.jsonl")
    assert load(path) is None
    for checkpoint in (CHECKPOINT, msgspec.structs.replace(CHECKPOINT, finished=True)):
        save(path, checkpoint, WriteOptions(durable=durable))
        assert load(path) == checkpoint
    assert os.listdir(tmp_path) == ["out.jsonl.checkpoint.json"]  # noqa: PTH208


def test_a_save_that_fails_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    """The new one is written beside the old one, so that a full disk costs nothing."""
    path = tmp_path / "c"
    save(path, CHECKPOINT, WriteOptions(durable=False))
    (tmp_path / "c.tmp").mkdir()
    with pytest.raises(SinkError, match="cannot write the checkpoint"):
        save(path, msgspec.structs.replace(CHECKPOINT, finished=True), WriteOptions(durable=False))
    assert load(path) == CHECKPOINT


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        msgspec.json.encode(CHECKPOINT).replace(b"checkpoint/1", b"checkpoint/2"),
        msgspec.json.encode(CHECKPOINT).replace(b'"finished"', b'"complete"'),
    ],
)
def test_a_damaged_or_foreign_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    """A damaged checkpoint never means a fresh start."""
    path = tmp_path / "c"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="to start over, remove it"):
        load(path)


def test_a_checkpoint_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Something else in its place does not mean a fresh start either."""
    with pytest.raises(ConfigError, match="cannot read the checkpoint"):
        load(tmp_path)


def beginning_of(feed: Path) -> Beginning:
    """Read the first bytes of this file."""
    return lambda size_bytes: feed.read_bytes()[:size_bytes]


@pytest.mark.parametrize("offset", [0, 10, HEAD_BYTES_MAX, 10**9])
def test_a_feed_that_grew_or_moved_is_the_same(tmp_path: Path, offset: int) -> None:
    """A file is identified by the first part of what was read, which growing and moving leave as it is."""
    feed, moved = tmp_path / "feed", tmp_path / "moved"
    feed.write_bytes(b"0123456789" * 7_000)
    head = head_of(beginning_of(feed), Position(1, offset), FileHead())
    assert head.size_bytes == min(offset, HEAD_BYTES_MAX)
    moved.write_bytes(feed.read_bytes() + b"more")
    check_source(msgspec.structs.replace(CHECKPOINT, head=head), "moved", beginning_of(moved))
    assert head_of(beginning_of(moved), Position(1, offset), FileHead()) == head


def test_another_feed_is_refused(tmp_path: Path) -> None:
    """A file that begins differently, or is shorter, is refused."""
    feed = tmp_path / "feed"
    feed.write_bytes(b"0123456789")
    checkpoint = msgspec.structs.replace(CHECKPOINT, head=head_of(beginning_of(feed), Position(1, 10), FileHead()))
    for content in (b"012345678X", b"012345678", b""):
        feed.write_bytes(content)
        with pytest.raises(ConfigError, match="is not the file"):
            check_source(checkpoint, "feed", beginning_of(feed))


def test_other_settings_are_refused() -> None:
    """One sink never gets verdicts of two sets of settings."""
    check_settings(CHECKPOINT, "ab12")
    with pytest.raises(ConfigError, match="other settings"):
        check_settings(CHECKPOINT, "ab13")


def test_when_a_run_began() -> None:
    """A new run begins now, a resumed one when it first did, new lines of a finished source later than the old ones."""
    finished = msgspec.structs.replace(CHECKPOINT, finished=True)
    began = CHECKPOINT.began_ms
    assert began_ms(None, 5) == 5
    assert began_ms(CHECKPOINT, began + 100) == began
    assert began_ms(finished, began + 100) == began + 100
    assert began_ms(finished, began - 100) == began + 1
