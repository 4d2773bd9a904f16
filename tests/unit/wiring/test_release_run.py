"""One release: what it reads and decodes, and what it does where a newer version arrives in the meantime."""

import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import pytest
from typing_extensions import override

from consumer.config.config import Config
from consumer.judge.detector import Detector
from consumer.model.ports import JudgedRecord
from consumer.model.record import RawRecord
from consumer.model.verdict import Verdict, decode_verdict
from consumer.service.answering import AnsweringSink
from consumer.store_tools import releases
from consumer.store_tools.released_record import RecordOrigins, ReturnObstacle
from consumer.store_tools.releases import Attribution, FlaggedVersion, FlagReversal, read_flagged
from consumer.wiring import release_run
from consumer.wiring.release_run import FlagReleaser, ReleasePlan, SingleReleaser
from consumer.wiring.source_records import SourceRecords
from storage.memory import MemoryStore
from storage.records import Record, Release, StoredVersion, Version
from tests.builders import TIME_MS, make_tombstone, raw_message
from tests.chaos.near_articles import SETTINGS, near_group
from tests.unit.service.kept_sink import KeptSink

Answered = TypeVar("Answered")
LATER_MS = TIME_MS + 10


class Clean(KeptSink):
    """A sink that keeps answers, too, and does something before it takes one."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.answers: list[JudgedRecord] = []
        self.flushes = 0
        self._before = before

    @override
    def release(self, answer: JudgedRecord) -> None:
        self._before()
        self.answers.append(answer)
        super().release(answer)

    @override
    def flush(self) -> None:
        self.flushes += 1
        super().flush()


class Records(SourceRecords):
    """Finds a record for every version, and does something in the meantime."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__(Config())
        self._meanwhile = meanwhile

    @override
    def record_of(
        self, flagged: FlaggedVersion, known: RecordOrigins | None = None
    ) -> RawRecord | ReturnObstacle | None:
        self._meanwhile()
        return raw_message(b"{}", flagged.stored.record.id.encode())


class Counting(MemoryStore):
    """A store that notes its calls, each with how many items it has."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, int]] = []

    @override
    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        self.calls.append(("read", len(references)))
        return super().read(references)

    @override
    def add(self, records: Sequence[Record]) -> None:
        self.calls.append(("add", len(records)))
        super().add(records)

    @override
    def release(self, some: Sequence[Release]) -> list[bytes | None]:
        self.calls.append(("release", len(some)))
        return super().release(some)

    @override
    def together(self, work: Callable[[], Answered]) -> Answered:
        before = len(self.calls)
        answer = super().together(work)
        self.calls[before:] = [("together", len(self.calls) - before), *self.calls[before:]]
        return answer


def versions(feed: str | None, copies: int = 1) -> list[Version]:
    """An original and its copies, from this feed."""
    group = near_group(random.Random("releases"), "article", copies + 1, 0)
    return [each._replace(record=msgspec.structs.replace(each.record, feed=feed)) for each in group]


def judged(*group: Version) -> Counting:
    """A store that has judged these."""
    store = Counting()
    Detector(store, SETTINGS, lambda: TIME_MS).judge(group)
    store.calls.clear()
    return store


def named(version: Version) -> tuple[str, str]:
    """The id and the version, as a request names it."""
    return version.record.id, version.reference[16:].hex()


def single(store: MemoryStore, sink: Clean, records: Records) -> SingleReleaser:
    """What releases."""
    return SingleReleaser(FlagReleaser(store, AnsweringSink(sink), lambda: LATER_MS), records)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The events that are decoded from now on."""
    events: list[bytes] = []

    def noted(event: bytes) -> Verdict:
        events.append(event)
        return decode_verdict(event)

    monkeypatch.setattr(releases, "decode_verdict", noted)
    monkeypatch.setattr("consumer.model.verdict.decode_verdict", noted)
    return events


def test_a_version_is_read_twice_and_decoded_once(decoded: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its release, and after the sink has it. The record goes to the clean feed."""
    monkeypatch.setattr(release_run, "FRESH_S", 60.0)
    original, copy = versions("articles:0")
    store, sink = judged(original, copy), Clean()
    flag = read_flagged(store, copy.reference).stored.verdict
    store.calls.clear()
    decoded.clear()
    event = single(store, sink, Records()).release(*named(copy), Attribution("Kim"))
    assert store.calls == [("read", 1), ("together", 3), ("add", 1), ("release", 1), ("add", 1), ("read", 1)]
    assert decoded == [flag]
    (answer,) = sink.answers
    assert (answer.event, answer.record.partition) == (event, raw_message(b"").partition)
    assert read_flagged(store, copy.reference).verdict == event.verdict


def test_several_are_released_in_as_many_calls_as_one(decoded: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them again, which gets the stored event."""
    monkeypatch.setattr(release_run, "FRESH_S", 60.0)
    _, *copies = group = versions("articles:0", 3)
    store, sink = judged(*group), Clean()
    flagged = [read_flagged(store, copy.reference) for copy in copies]
    first = releases.release(store, flagged[0], Attribution("Lee"), lambda: LATER_MS)
    flagged[0] = read_flagged(store, copies[0].reference)
    store.calls.clear()
    decoded.clear()
    undone = [ReleasePlan(FlagReversal(each, Attribution("Kim")), raw_message(b"{}")) for each in flagged]
    events = FlagReleaser(store, AnsweringSink(sink), lambda: LATER_MS + 1).release(undone, time.monotonic())
    assert store.calls == [("together", 3), ("add", 3), ("release", 2), ("add", 3), ("read", 3)]
    assert decoded == []
    assert (events[0], [event.verdict.id for event in events]) == (first, [copy.record.id for copy in copies])
    assert [event.encoded for event in events] == sink.flushed
    assert sink.flushes == 1
    assert [read_flagged(store, copy.reference).stored.verdict for copy in copies] == sink.flushed


def test_somebody_who_was_faster_is_answered_with() -> None:
    """The stored event counts, also where the flag was read before it."""
    original, copy = versions("articles:0")
    store, sink = judged(original, copy), Clean()
    flagged = read_flagged(store, copy.reference)
    first = releases.release(store, flagged, Attribution("Lee"), lambda: LATER_MS)
    undone = ReleasePlan(FlagReversal(flagged, Attribution("Kim")), None)
    assert FlagReleaser(store, AnsweringSink(sink), lambda: LATER_MS + 1).release([undone], time.monotonic()) == [first]
    assert sink.flushed == [first.encoded]


@pytest.mark.parametrize("fresh_s", [60.0, -1.0])
def test_a_newer_version_that_arrives_during_a_release_is_told(
    fresh_s: float, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the record was sent; it may have come too late."""
    monkeypatch.setattr(release_run, "FRESH_S", fresh_s)
    original, copy = versions("articles:0")
    store = judged(original, copy)
    sink = Clean(lambda: store.retract([make_tombstone(copy.record.id, sequence=99)]))
    single(store, sink, Records()).release(*named(copy), Attribution())
    assert sink.answers[0].record.partition is not None
    assert f"A newer version of {copy.record.id!r} arrived during its release" in caplog.text


def test_a_newer_version_that_arrives_during_a_search_stays_the_last(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find the record may take time: afterwards the version is read again, and the record is not sent."""
    monkeypatch.setattr(release_run, "FRESH_S", -1.0)
    original, copy = versions(None)
    store, sink = judged(original, copy), Clean()
    records = Records(lambda: store.retract([make_tombstone(copy.record.id, sequence=99)]))
    single(store, sink, records).release(*named(copy), Attribution())
    assert sink.answers[0].record.partition is None
    assert f"A newer version of {copy.record.id!r} arrived during its release" in caplog.text


def test_a_release_that_nothing_disturbs_says_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the version is read again or not."""
    for fresh_s in (60.0, -1.0):
        monkeypatch.setattr(release_run, "FRESH_S", fresh_s)
        original, copy = versions("articles:0")
        single(judged(original, copy), Clean(), Records()).release(*named(copy), Attribution())
    assert caplog.text == ""
