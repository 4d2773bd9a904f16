"""The file to which the console writes what it releases, beside the sink of a run."""

import json
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from consumer.model.errors import SinkError
from consumer.model.flood import FloodEvent, encode_flood
from consumer.model.ports import JudgedRecord
from consumer.model.verdict import VerdictEvent, encode
from consumer.reviews.outbox.sink_events import StoredEvent
from consumer.wiring.console_releases import ConsoleFile
from consumer.wiring.release_run import NO_RECORD
from tests.unit.console.events_made import AT, release
from tests.unit.reviews.made import at_once

FLOOD = StoredEvent(
    1,
    "flood",
    encode_flood(FloodEvent(flood=1, story=1, original="a0", source=None, copies=100, began_at=AT, noted_at=AT)),
)


def write_release(file: ConsoleFile, number: int) -> None:
    """Write the event of a release."""
    event = release(number)
    with file.opened() as sink:
        sink.release(JudgedRecord(NO_RECORD, VerdictEvent(encode(event), event)))
        sink.flush()


def test_events_are_on_disk_when_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision counts as carried out afterwards, which the database does not forget either."""
    path = tmp_path / "v.jsonl.console.jsonl"
    synced: list[int] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            synced.append(path.stat().st_size)

    monkeypatch.setattr(os, "fsync", noted)
    file = ConsoleFile(path, 0o640)
    for number in (1, 2):
        write_release(file, number)
        assert synced[-1] == path.stat().st_size > 0
    file.send([FLOOD])
    assert synced[-1] == path.stat().st_size
    file.close()
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [event["schema"] for event in events] == [*["dupwatch.verdict/1"] * 2, "dupwatch.flood/1"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_half_an_event_is_cut_off_and_nothing_else(tmp_path: Path) -> None:
    """What a killed process left; a file of something else is not touched."""
    path = tmp_path / "v.jsonl.console.jsonl"
    file = ConsoleFile(path, 0o600)
    file.send([FLOOD])
    whole = path.read_bytes()
    path.write_bytes(whole + encode(release(1))[:50])
    write_release(file, 2)
    assert path.read_bytes() == whole + encode(release(2)) + b"\n"
    path.write_bytes(b"Dear reader, this is no event")
    with pytest.raises(SinkError, match="is not a file of the console's events"):
        write_release(file, 3)
    assert path.read_bytes() == b"Dear reader, this is no event"


def test_one_process_at_a_time_writes(tmp_path: Path) -> None:
    """The other one tries again; what the first has begun stays whole."""
    path = tmp_path / "v.jsonl.console.jsonl"
    one, other = ConsoleFile(path, 0o600), ConsoleFile(path, 0o600)
    with closing(one), one.opened(), pytest.raises(SinkError, match="is being written by another process"):
        write_release(other, 1)
    write_release(other, 1)
    assert path.read_bytes() == encode(release(1)) + b"\n"


def test_threads_of_one_process_write_in_turns(tmp_path: Path) -> None:
    """One that releases and one that sends events: neither finds the file taken, and no line is lost."""
    path = tmp_path / "v.jsonl.console.jsonl"
    file = ConsoleFile(path, 0o600)

    def send() -> None:
        for _ in range(20):
            file.send([FLOOD, FLOOD])

    def release_some() -> None:
        for number in range(20):
            write_release(file, number)

    at_once([send, release_some])
    lines = path.read_bytes().splitlines()
    assert (lines.count(FLOOD.payload), len(lines)) == (40, 60)
