"""What every kind of source and sink does, whatever it reads or writes."""

import io
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from consumer.feeds.kinds import KINDS
from consumer.files.checkpoint import checkpoint_path, load
from consumer.files.kind import FILE, NOWHERE, NOWHERE_URL, STREAM
from consumer.files.opening import Continuation, FileOptions
from consumer.files.tables import FileForm
from consumer.kafka.client_settings import KafkaOptions, TopicsOptions
from consumer.kafka.kind import KAFKA
from consumer.kafka.mock_cluster import mock_cluster
from consumer.model.article import Article
from consumer.model.errors import BadRecord, ConfigError
from consumer.model.limits import ReadLimits
from consumer.model.ports import JudgedRecord, Rejection, Source
from consumer.model.record import RawBatch, RawRecord
from consumer.model.verdict import Verdict, VerdictEvent
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.feed_kind import (
    FeedKind,
    OpenedSink,
    OpenedSource,
    Outputs,
    SinkAdapter,
    SinkArguments,
    SourceAdapter,
    SourceArguments,
    Streams,
)
from tests.builders import raw_line
from tests.kafka.topics import ordered_producer
from tests.toy_queue.kind import QUEUE

WAIT_S = 120
PARTITIONS = 4
"""Of each topic of a mock cluster."""
BATCH = 2
ALL = (*KINDS, QUEUE)
SOURCES = [kind for kind in ALL if kind.source is not None]
SINKS = [kind for kind in ALL if kind.sink is not None]
VALUES = [b'{"id": "%d", "body": "text"}' % number for number in range(5)]
ROWS = [b'%d,"text\nof two lines, or ""so"""' % number for number in range(5)]
TOPICS = TopicsOptions(clients=KafkaOptions(consumer={"session.timeout.ms": 6_000}))


@dataclass
class Fed:
    """A source with these values, of which a later run may open another one."""

    side: SourceAdapter
    url: str
    folder: Path
    values: list[bytes]
    resumes: bool = True
    form: FileForm = field(default_factory=FileForm)
    opened: list[Source] = field(default_factory=list)

    def open(self) -> tuple[OpenedSource[Source], Outputs]:
        """Open it as a run does that resumes, with a file for its verdicts."""
        verdicts = self.folder / "verdicts.jsonl"
        checkpoint = checkpoint_path(verdicts)
        before = load(checkpoint)
        own = FileOptions(checkpoint=checkpoint, before=before, form=self.form)
        opening = SourceArguments(own=(own, TOPICS), limits=ReadLimits(batch_records_max=BATCH))
        opened = self.side.open(self.url, opening)
        self.opened.append(opened.source)
        assert FILE.sink is not None
        marks = None if before is None else before.marks
        sink = FILE.sink.open(str(verdicts), SinkArguments(own=(Continuation(marks, "it is new"),)))
        return opened, Outputs(sink.sink, sink.dead_letters())

    def close(self) -> None:
        """Close the sources again: a second call does nothing."""
        for source in self.opened:
            source.close()


def source_name(param: tuple[FeedKind, bool]) -> str:
    """The name of a kind, and whether it has a table."""
    kind, is_table = param
    return f"{kind.name}-csv" if is_table else kind.name


def fed_file(folder: Path) -> str:
    """A file with a line for each value."""
    path = folder / "feed.jsonl"
    path.write_bytes(b"".join(value + b"\n" for value in VALUES))
    return str(path)


def fed_table(folder: Path) -> str:
    """A table with a row for each value."""
    path = folder / "feed.csv"
    path.write_bytes(b"id,body\r\n" + b"".join(row + b"\r\n" for row in ROWS))
    return str(path)


def fed_queue(folder: Path) -> str:
    """A queue with a message for each value."""
    for number, value in enumerate(VALUES, 1):
        (folder / f"{number}.json").write_bytes(value)
    return f"queue://{folder}"


def fed_topic(address: str, topic: str) -> str:
    """A topic with a message for each value."""
    producer = ordered_producer(address)
    for value in VALUES:
        producer.produce(topic, value, b"key", partition=0)
    assert producer.flush(WAIT_S) == 0
    return f"kafka://{address}/{topic}"


@pytest.fixture(params=[*((kind, False) for kind in SOURCES), (FILE, True), (STREAM, True)], ids=source_name)
def fed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fed]:
    """Each kind of source, and tables in files and streams. The topic is one of this test alone."""
    kind, is_table = request.param
    assert kind.source is not None
    with ExitStack() as stack:
        if kind is KAFKA:
            address = stack.enter_context(mock_cluster(["articles"]))
            url = fed_topic(address, "articles")
        elif kind is QUEUE:
            url = fed_queue(tmp_path)
        else:
            url = fed_table(tmp_path) if is_table else fed_file(tmp_path)
        if kind is STREAM:
            kept, file = os.dup(0), os.open(url, os.O_RDONLY)
            os.dup2(file, 0)
            os.close(file)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 0)
            url = "-"
        form = FileForm("csv" if is_table else None)
        values = ROWS if is_table else VALUES
        given = Fed(kind.source, url, tmp_path, values, resumes=kind is not STREAM, form=form)
        stack.callback(given.close)
        yield given


def taken(batches: Iterator[RawBatch], records: int) -> list[RawBatch]:
    """Batches with so many records."""
    found: list[RawBatch] = []
    while sum(len(batch.records) for batch in found) < records:
        found.append(next(batches))
    return found


def records_of(batches: Sequence[RawBatch]) -> list[RawRecord]:
    """The records of all batches."""
    return list(itertools.chain.from_iterable(batch.records for batch in batches))


def test_records_come_once_in_order_and_in_bounded_batches(fed: Fed) -> None:
    """Whole, and without a fault; and closing twice is closing."""
    opened, _ = fed.open()
    batches = taken(opened.source.batches(), len(fed.values))
    assert [record.data for record in records_of(batches)] == fed.values
    assert [record.fault for record in records_of(batches)] == [None] * len(fed.values)
    assert all(1 <= len(batch.records) <= BATCH for batch in batches)
    opened.source.close()


def test_a_source_without_an_end_ends_when_it_is_closed(fed: Fed) -> None:
    """And one with an end by itself."""
    opened, _ = fed.open()
    batches = opened.source.batches()
    taken(batches, len(fed.values))
    if fed.side.is_lasting:
        opened.source.close()
    assert next(batches, None) is None


def test_each_record_has_an_arrival_and_a_name(fed: Fed) -> None:
    """Arrivals are in the order of the records, and no two records have one name."""
    opened, _ = fed.open()
    records = records_of(taken(opened.source.batches(), len(fed.values)))
    arrivals = [opened.arrivals.arrived_at(record, Article("a", "text")) for record in records]
    assert [(arrival.time_ms, arrival.sequence) for arrival in arrivals] == sorted(
        {(arrival.time_ms, arrival.sequence) for arrival in arrivals}
    )
    assert len({opened.arrivals.record_name(record) for record in records}) == len(records)


def test_a_later_run_begins_behind_what_was_committed(fed: Fed) -> None:
    """Unless the source can be read only once."""
    opened, outputs = fed.open()
    journal, batches = opened.journal(outputs), opened.source.batches()
    (first,) = taken(batches, 1)
    journal.begin(first.end)
    journal.commit(first.end, [], [])
    (_,) = taken(batches, 1)
    opened.source.close()
    outputs.verdicts.close()
    if not fed.resumes:
        return
    later, _ = fed.open()
    left = len(fed.values) - len(first.records)
    found = records_of(taken(later.source.batches(), left))
    assert [record.data for record in found] == fed.values[len(first.records) :]


def test_a_batch_that_was_given_up_comes_again(fed: Fed) -> None:
    """From a source that lasts at once, from another in a later run; a stream has gone by."""
    opened, outputs = fed.open()
    journal, batches = opened.journal(outputs), opened.source.batches()
    (first,) = taken(batches, 1)
    journal.begin(first.end)
    journal.abandon()
    if not fed.side.is_lasting:
        opened.source.close()
        outputs.verdicts.close()
        if not fed.resumes:
            return
        later, _ = fed.open()
        batches = later.source.batches()
    assert [record.data for record in records_of(taken(batches, len(fed.values)))][: len(fed.values)] == fed.values


def test_wrong_settings_are_found_without_asking_anybody(fed: Fed) -> None:
    """And right ones are accepted, with the clients that are made of them."""
    fed.side.check(fed.url, SourceArguments(), create=True)


@dataclass
class Written:
    """A sink, and what can be found of what was written to it."""

    kind: FeedKind
    url: str
    streams: Streams
    found: Callable[[], list[bytes]]

    @property
    def side(self) -> SinkAdapter:
        """How it is written."""
        assert self.kind.sink is not None
        return self.kind.sink

    def open(self, **fields: object) -> OpenedSink:
        """Open it."""
        return self.side.open(self.url, replace(SinkArguments(streams=self.streams), **fields))  # type: ignore[arg-type]


def read_topics(address: str, *topics: str) -> list[bytes]:
    """The values in these topics."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True})
    places = [TopicPartition(topic, number, 0) for topic in topics for number in range(PARTITIONS)]
    consumer.assign(places)
    found, left = list[bytes](), len(places)
    while left:
        message = consumer.poll(WAIT_S)
        assert message is not None
        if message.error() is None:
            found.append(message.value() or b"")
        else:
            left -= 1
    consumer.close()
    return found


@pytest.fixture(params=SINKS, ids=lambda kind: kind.name)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    """Each kind of sink."""
    kind: FeedKind = request.param
    streams, path = Streams(io.BytesIO(), io.BytesIO()), tmp_path / "verdicts.jsonl"
    with ExitStack() as stack:
        if kind is KAFKA:
            topics = [f"judged.{name}" for name in ("duplicates", "verdicts", "dead-letters")]
            address = stack.enter_context(mock_cluster(topics))
            yield Written(kind, f"kafka://{address}/judged", streams, lambda: read_topics(address, *topics[:2]))
        elif kind is FILE:
            yield Written(kind, str(path), streams, lambda: path.read_bytes().splitlines())
        elif kind is STREAM:
            yield Written(kind, "-", streams, lambda: streams.out.getvalue().splitlines())  # type: ignore[attr-defined]
        else:
            assert kind is NOWHERE, "each kind of sink has an entry here"
            yield Written(kind, NOWHERE_URL, streams, list)


def flag(name: str) -> JudgedRecord:
    """The answer to a line that repeats another."""
    verdict = Verdict(
        id=name, version="ab" * 16, outcome="duplicate", scheme="test/1",
        arrived_at="2026-01-02T03:04:05.678Z", decided_at="2026-01-02T03:04:05.678Z",
    )  # fmt: skip
    return JudgedRecord(raw_line(1), VerdictEvent.of(verdict))


def test_what_was_flushed_is_there(written: Written) -> None:
    """Events byte for byte, that of a release too; closing twice is closing."""
    opened = written.open(emit="duplicates")
    first, second, released = flag("a"), flag("b"), flag("c")
    opened.sink.emit([first, second])
    opened.sink.flush()
    opened.sink.release(released)
    opened.sink.flush()
    opened.sink.close()
    opened.sink.close()
    wanted = [] if written.kind is NOWHERE else [each.event.encoded for each in (first, second, released)]
    assert sorted(written.found()) == sorted(wanted)


def test_dead_letters_can_be_read_back_or_that_is_refused(written: Written) -> None:
    """By the same kind, under the URL of the verdicts."""
    opened = written.open()
    letters = opened.dead_letters()
    fault = BadRecord("invalid_json", "not JSON")
    rejection: Rejection = DeadLetterPolicy("feed", letters).reject(raw_line(7, b"{"), fault)
    letters.reject([])
    letters.reject([rejection])
    letters.flush()
    letters.close()
    opened.sink.close()
    if written.kind not in {FILE, KAFKA}:
        with pytest.raises(ConfigError, match="name the dead letters"):
            written.side.letters(written.url, SinkArguments())
        return
    with written.side.letters(written.url, SinkArguments()) as found:
        (letter,) = found.letters()
    assert (letter.reason, letter.value, letter.place) == ("invalid_json", b"{", "feed:7")


def test_a_later_run_that_resumes_nothing_appends(written: Written) -> None:
    """What is there stays, in front of what comes."""
    first, second = flag("a"), flag("b")
    for answer in (first, second):
        opened = written.open()
        opened.sink.release(answer)
        opened.sink.flush()
        opened.sink.close()
    assert set(written.found()) == (set() if written.kind is NOWHERE else {first.event.encoded, second.event.encoded})


def test_only_a_sink_with_transactions_offers_one(written: Written) -> None:
    """Where it is asked for; the journal of the source takes it, or does without."""
    opened = written.open()
    assert opened.transactions is None
    opened.sink.close()
    if written.side.has_transactions:
        transactional = written.open(transactional=True)
        assert transactional.transactions is not None
        transactional.sink.close()


def test_settings_of_sinks_are_checked_without_asking_anybody(written: Written) -> None:
    """With the clients that are made of them."""
    written.side.check(written.url, SinkArguments(), create=True)
