"""How a file of verdicts is read while others append to it, cut it back and replace it."""

import logging
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from typing_extensions import override

from consumer.config.sections.console import ConsoleSection
from consumer.console.intake import event_file
from consumer.console.intake.event_file import MARKS_APART_BYTES, MARKS_MAX, TAIL_BYTES, EventFile, marks_to_keep
from consumer.console.intake.intake import ConsoleStopped, Intake, IntakeParts
from consumer.model.errors import SourceError
from consumer.model.flood import FloodEvent, encode_flood
from consumer.model.hooks import Hooks, Outage
from consumer.model.limits import ReadLimits
from consumer.model.verdict import Verdict, encode
from consumer.reviews import queue
from consumer.reviews.database import Connection, Database
from consumer.reviews.queue import Filters
from consumer.reviews.read_files import FileMark
from consumer.telemetry.metrics.console import EventSkipped, EventsTaken
from tests.cli.command import wait_for
from tests.unit.console.events_made import AT, flag, release, version

LIMITS = ReadLimits(record_bytes_max=100_000, batch_records_max=3)


class MeddledIntake(Intake):
    """An intake of which something happens to the file each time before a batch is stored."""

    meddle: Callable[[], None] = staticmethod(lambda: None)

    @override
    def take_in(self, events: Sequence[Verdict], *proceed_and_note: Callable[..., None]) -> None:
        self.meddle()
        super().take_in(events, *proceed_and_note)


class Reading:
    """A console that reads a file into a database; ``taken`` counts what it took in."""

    def __init__(self, database: Database, path: Path) -> None:
        self.database = database
        self.taken: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.outages: list[Outage] = []
        self.stopping = threading.Event()
        hooks = Hooks()
        hooks.on(EventsTaken, lambda taken: self.taken.update({taken.kind: taken.events}))
        hooks.on(EventSkipped, lambda skipped: self.skipped.update([skipped.reason]))
        hooks.on(Outage, self.outages.append)
        parts = IntakeParts(database, ConsoleSection(), lambda: 0, hooks, lambda: None)
        self.intake = MeddledIntake(parts, self.stopping)
        self.file = EventFile(path, database, LIMITS, self.stopping.is_set)

    def take(self) -> Counter[str]:
        """Read what the file has, and return what was taken in of it."""
        self.taken.clear()
        self.intake.take_all(self.file)
        return +self.taken

    def ids(self) -> set[str]:
        """The articles of all flags."""
        with self.database.read_connection() as connection:
            return {row.article_id for row in queue.page(connection, Filters(state=None), "oldest", 5_000).rows}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file will be."""
    return tmp_path / "v.jsonl"


@pytest.fixture
def reading(database: Database, path: Path) -> Reading:
    """A console that has read nothing yet."""
    return Reading(database, path)


def lines(*numbers: int) -> bytes:
    """Flags of the articles of these numbers, as a run writes them."""
    return b"".join(encode(flag(number)) + b"\n" for number in numbers)


def append(path: Path, data: bytes) -> None:
    """Write at the end of a file."""
    with path.open("ab") as file:
        file.write(data)


def test_what_is_added_is_taken_in_once(reading: Reading, database: Database, path: Path) -> None:
    """Whole lines alone; a console that begins later goes on there."""
    half = len(lines(2)) // 2
    append(path, lines(1) + lines(2)[:half])
    assert reading.take() == {"flag": 1}
    append(path, lines(2)[half:] + lines(3, 4, 5, 6))
    assert reading.take() == {"flag": 5}
    assert reading.take() == {}
    later = Reading(database, path)
    append(path, lines(7))
    assert later.take() == {"flag": 1}
    assert reading.take() == {}
    assert reading.ids() == {f"a{number}" for number in range(1, 8)}


def test_half_a_line_is_read_again_only_once_the_file_has_changed(
    reading: Reading, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong file of gigabytes without line ends would otherwise be read as a whole each second."""
    monkeypatch.setattr(event_file, "CHUNK_BYTES", 64)
    offsets: list[int] = []
    pread = os.pread

    def counted(descriptor: int, count: int, offset: int) -> bytes:
        offsets.append(offset)
        return pread(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", counted)
    half = len(lines(2)) // 2
    append(path, lines(1) + lines(2)[:half])
    assert reading.take() == {"flag": 1}
    assert reading.take() == {}
    offsets.clear()
    assert reading.take() == {}
    assert [offset for offset in offsets if offset >= len(lines(1))] == []
    append(path, lines(2)[half:])
    assert reading.take() == {"flag": 1}


def test_a_file_that_was_cut_back_is_read_from_a_place_before(
    reading: Reading, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not from its beginning, if a place is known that lies before the cut."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(event_file, "MARKS_APART_BYTES", 1)
    for number in range(1, 9):
        append(path, lines(number))
        reading.take()
    os.truncate(path, len(lines(*range(1, 7))) + 5)
    os.truncate(path, len(lines(*range(1, 7))))
    append(path, lines(17, 18, 19, 20))
    assert reading.take() == {"flag": 4}
    assert f"{path} no longer has the lines that were read from it" in caplog.text
    assert "Reading from line 7." in caplog.text
    caplog.clear()
    assert reading.take() == {}
    assert reading.ids() == {f"a{number}" for number in (*range(1, 9), *range(17, 21))}
    # Before all places that are known.
    os.truncate(path, len(lines(1, 2)))
    assert reading.take() == {"known": 2}
    assert "Reading from line 1." in caplog.text


@pytest.mark.parametrize("more", [0, 5])
def test_another_file_in_its_place_is_read_from_its_beginning(reading: Reading, path: Path, more: int) -> None:
    """Whether it is longer or as long: what counts is what it says."""
    append(path, lines(1, 2, 3))
    reading.take()
    other = path.with_name("other")
    append(other, lines(4, 5, 6, *range(11, 11 + more)))
    other.replace(path)
    assert reading.take() == {"flag": 3 + more}
    # The same, after a time without a file.
    path.unlink()
    with pytest.raises(FileNotFoundError):
        reading.take()
    append(path, lines(7, 8, 9))
    assert reading.take() == {"flag": 3}
    # A copy of what was read is no other file.
    other.write_bytes(path.read_bytes() + lines(10))
    other.replace(path)
    assert reading.take() == {"flag": 1}


def test_what_is_cut_off_while_it_is_stored_costs_nothing(reading: Reading, path: Path) -> None:
    """A run resumes between the reading of a batch and the end of its transaction, and writes as much again."""
    append(path, lines(1, 2, 3, 4, 5, 6))
    kept = len(lines(1))

    def resume() -> None:
        reading.intake.meddle = lambda: None
        os.truncate(path, kept)
        append(path, lines(12, 13, 14, 15, 16, 17))

    reading.intake.meddle = resume
    reading.take()
    reading.take()
    assert {f"a{number}" for number in (1, *range(12, 18))} <= reading.ids()


class Changes:
    """Changes a file of flags at random, and knows which flags it has."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self._path = path
        self._chance = chance
        self._last = 0
        self._lines: list[tuple[int, bytes]] = []

    def make(self) -> None:
        """Make one: append, also half a line; cut off what is behind any line; or begin another file."""
        what = self._chance.choice(["append"] * 4 + ["half", "cut", "replace"])
        if what == "cut":
            del self._lines[self._chance.randrange(len(self._lines) + 1) :]
        if what == "replace":
            self._lines.clear()
            self._path.unlink(missing_ok=True)
        if what != "cut":
            self.append(self._chance.randrange(8))
        self._write(lines(self._last + 1)[: self._chance.randrange(1, 100)] if what == "half" else b"")

    def append(self, count: int) -> None:
        """Append flags; some are followed by a blank line, which is no record."""
        for _ in range(count):
            self._last += 1
            self._lines.append((self._last, lines(self._last) + self._chance.choice([b"", b"", b"\n"])))
        self._write()

    def ids(self) -> set[str]:
        """The articles whose flags are in the file."""
        return {f"a{number}" for number, _ in self._lines}

    def _write(self, half: bytes = b"") -> None:
        data = b"".join(line for _, line in self._lines) + half
        with self._path.open("r+b" if self._path.exists() else "wb") as file:
            file.truncate(min(len(data), os.fstat(file.fileno()).st_size))
            file.write(data)


def test_whatever_happens_to_it_every_flag_of_it_is_there(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what the file has in the end, drawn at random: whatever was done to it, between any two steps."""
    monkeypatch.setattr(event_file, "CHUNK_BYTES", 1_000)
    monkeypatch.setattr(event_file, "MARKS_APART_BYTES", 700)
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    changes, reading = Changes(path, chance), Reading(database, path)
    for _ in range(40):
        if chance.random() < 0.2:
            reading = Reading(database, path)
        reading.intake.meddle = lambda: changes.make() if chance.random() < 0.3 else None
        changes.make()
        reading.take()
    changes.append(20)
    reading.intake.meddle = lambda: None
    reading.take()
    assert changes.ids() <= reading.ids(), f"seed {seed}"
    assert reading.take() == {}, f"seed {seed}"


def test_of_two_consoles_each_event_is_taken_in_by_one(reading: Reading, database: Database, path: Path) -> None:
    """The one that comes later with the same batch gives it up, and goes on behind it."""
    other = Reading(database, path)
    append(path, lines(*range(1, 10)))

    def overtake() -> None:
        reading.intake.meddle = lambda: pytest.fail("it goes on with what the other one has")
        assert other.take() == {"flag": 9}

    reading.intake.meddle = overtake
    assert reading.take() == {}
    reading.intake.meddle = lambda: None
    append(path, lines(10))
    assert reading.take() == {"flag": 1}


def test_a_place_is_stored_with_its_events_or_not_at_all(
    reading: Reading, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that fails leaves both to the next."""

    def failed(_connection: Connection, _events: object) -> None:
        raise RuntimeError("gone")

    append(path, lines(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr("consumer.console.intake.intake.add_events", failed)
        with pytest.raises(RuntimeError):
            reading.take()
    assert reading.take() == {"flag": 2}


def test_what_is_no_flag_is_passed_over(reading: Reading, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Verdicts on unique articles are counted, what is no event is logged with its line, and floods are for others."""
    unique = Verdict(id="u", version=version(9), outcome="unique", arrived_at=AT, decided_at=AT)
    flood = FloodEvent(flood=1, story=1, original="a0", source=None, copies=100, began_at=AT, noted_at=AT)
    append(path, b"\n".join([encode(unique), b"", b"no event", encode_flood(flood), b"x" * 200_000, b""]))
    append(path, lines(1) + encode(release(2)) + b"\r\n")
    assert reading.take() == {"other": 1, "flag": 1, "release": 1}
    assert reading.skipped == {"not_an_event": 1, "too_large": 1}
    assert f"{path} line 3 is skipped: it can never be read as a flag: not_an_event: JSON is malformed" in caplog.text
    assert "the store" not in caplog.text
    assert f"{path} line 5 is skipped" in caplog.text


@pytest.mark.parametrize("end", ["cut off", "replaced"])
def test_an_event_of_a_newer_version_is_waited_for(reading: Reading, path: Path, end: str) -> None:
    """It is not skipped. Once it is no longer in the file, the reading goes on."""
    append(path, lines(1))
    reading.take()
    append(path, encode(flag(2)).replace(b"dupwatch.verdict/1", b"dupwatch.verdict/2") + b"\n")
    thread = threading.Thread(target=lambda: suppressed(reading.take))
    thread.start()
    wait_for(lambda: any(outage.reason is not None for outage in reading.outages))
    told = next(outage.reason for outage in reading.outages if outage.reason is not None)
    assert told is not None
    assert f"{path} line 2 is a dupwatch.verdict/2 event" in told
    if end == "cut off":
        os.truncate(path, len(lines(1)))
    else:
        other = path.with_name("other")
        append(other, path.read_bytes().replace(b"dupwatch.verdict/2", b"dupwatch.verdict/1"))
        other.replace(path)
    thread.join(60)
    assert not thread.is_alive()
    append(path, lines(3))
    reading.take()
    assert reading.ids() == {"a1", "a3"} | ({"a2"} if end == "replaced" else set())


def suppressed(take: Callable[[], object]) -> None:
    """Read, unless the console ends."""
    with suppress(ConsoleStopped):
        take()


def test_a_console_that_ends_stops_between_batches(reading: Reading, path: Path) -> None:
    """What is left is for the next one."""
    append(path, lines(*range(1, 10)))
    reading.intake.meddle = reading.stopping.set
    assert reading.take() == {"flag": 3}
    reading.stopping.clear()
    reading.intake.meddle = lambda: None
    assert reading.take() == {"flag": 6}


def test_it_can_be_read_again_from_its_beginning(reading: Reading, path: Path) -> None:
    """What is known stays as it is."""
    append(path, lines(1, 2))
    reading.take()
    reading.file.begin_again()
    assert reading.take() == {"known": 2}


def test_what_is_no_file_is_said(reading: Reading, path: Path) -> None:
    """A folder, and a pipe, for which nobody waits."""
    path.mkdir()
    with pytest.raises(SourceError, match=r"v\.jsonl cannot be read: Is a directory"):
        reading.take()
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(SourceError, match="not a regular file"):
        reading.take()


def test_a_name_of_any_bytes_will_do(database: Database, tmp_path: Path) -> None:
    """Also one that no database holds."""
    path = tmp_path / os.fsdecode(b"v\xff.jsonl")
    append(path, lines(1))
    assert Reading(database, path).take() == {"flag": 1}
    assert Reading(database, path).take() == {}


def test_places_that_are_remembered_lie_apart() -> None:
    """The latest, one that is close to it or not, and earlier ones; not more than a few."""
    marks: tuple[FileMark, ...] = ()
    for number in range(1, 1_000):
        marks = marks_to_keep(marks, FileMark(number, number * 40_000, ""))
        apart = [one.offset - other.offset for one, other in pairwise(marks[1:])]
        assert all(each >= MARKS_APART_BYTES for each in apart)
        assert marks[0].line == number
    assert len(marks) == MARKS_MAX
    assert marks[-1].offset > marks[0].offset - 6 * MARKS_APART_BYTES
    assert TAIL_BYTES < MARKS_APART_BYTES
