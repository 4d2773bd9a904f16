"""A run over a file or a stream, built and wired."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from consumer.config.config import Config
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.kafka.client_settings import is_kafka
from consumer.lifecycle.retry import Drain
from consumer.lifecycle.stopping import Stopping
from consumer.model.dead_letter import DeadLetter, LetterPosition, dead_letter
from consumer.model.errors import BadRecord, ConfigError, Fatal
from consumer.model.hooks import Hooks
from consumer.model.ports import Marks, Sink
from consumer.model.record import Position, RawRecord
from consumer.pipeline import checkpoint as checkpoints
from consumer.pipeline.arrivals import ArchiveFeed, Feed, FileFeed, StreamFeed
from consumer.pipeline.bad_record_limit import PoisonLimit
from consumer.pipeline.feed_limit import FeedGate
from consumer.pipeline.interruptible_store import InterruptibleStore
from consumer.pipeline.journal import FileJournal, Journal, NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.sinks.file import UNEXPLAINED, FileSink, StreamSink, check_file_sink
from consumer.sinks.line_file import check_suffix
from consumer.sources.file import FileSource
from consumer.wiring.distinct_files import check_apart, check_streams_apart
from consumer.wiring.parts import (
    STREAM,
    Streams,
    field_map,
    file_writing,
    fingerprinting,
    judge_settings,
    lexicon_of,
    read_limits,
    record_decoder,
    version_builder,
)
from consumer.wiring.stores import bind, is_missing, opened_store, outlives_run
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store
from storage.kinds import kind_of, store_identity

_FIRST_LINE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is ready to go, and what can be told of it while it does."""

    pipeline: Pipeline
    source: FileSource
    store: Store
    tally: Tally
    resumed_at: Position
    resumable: bool


@contextmanager
def prepared_run(
    config: Config,
    streams: Streams,
    hooks: Hooks,
    stopping: Stopping,
    *,
    archive: bool = False,
) -> Iterator[Run]:
    """Build a run over a file or a stream from its configuration; what it holds is let go of afterwards.

    The articles of an ``archive`` came when they were published; of each that does not say when, ``RecordTimeReplaced``
    is reported.
    """
    if is_kafka(config.sink.url):
        raise ConfigError("a kafka:// sink needs a kafka:// source; a file is judged into a file, or to -")
    with ExitStack() as held:
        lexicon = lexicon_of(config)
        settings = judge_settings(config, lexicon)
        before = _checkpoint(config)
        start = Position() if before is None else before.position
        source = FileSource(_path(config.source.url), read_limits(config), start)
        held.callback(source.close)
        # Whatever can be refused is refused before a store or a sink is made.
        _check_places(config, before, source, streams)
        if before is not None:
            _check_resumable(before, source, settings, config)
        store = held.enter_context(opened_store(config))
        bind(store, settings)
        if before is not None:
            # The store says which settings differ, so it is asked first.
            checkpoints.check_settings(before, settings.digest())
            _check_remembered(before, is_empty=next(store.scan(), None) is None)
        check = Drain(stopping, config.kafka.drain_s).check
        making = fingerprinting(config, settings, lexicon, check)
        held.callback(making.close)
        sink = _sink(config, before, source, streams)
        held.callback(sink.close)
        try:
            feed, journal = _feed_and_journal(config, settings, before, source, sink)
        except Fatal:
            if isinstance(sink, FileSink):
                sink.discard()
            raise
        if archive:
            feed = _archive(feed, hooks)
        detector = Detector(InterruptibleStore(store, check), settings, now_ms)
        pipeline = Pipeline(
            source=source,
            decode=record_decoder(config),
            bury=_burier(config.source.url),
            fingerprinting=making,
            builder=version_builder(settings),
            feed=feed,
            detector=detector,
            sink=sink,
            journal=journal,
            hooks=hooks,
            stopping=stopping,
            keep_ms=config.lifetime_s * MS_PER_S,
            postings_watch=config.judge.postings_watch,
            turn=check,
            check=check,
            poison=_gate(config, source, before),
        )
        yield Run(pipeline, source, store, detector.tally, start, isinstance(journal, FileJournal))


def _gate(config: Config, source: FileSource, before: checkpoints.Checkpoint | None) -> FeedGate:
    """What ends the run where too many records cannot be judged."""
    limit = PoisonLimit(config.source.poison_share_max, config.source.poison_records_min)
    good_before = 0 if before is None else before.counts.articles
    return FeedGate(limit, field_map(config), source.name, streams=source.streams, good_before=good_before)


def _path(url: str) -> Path | None:
    """The file that is named; None for a standard stream."""
    return None if url == STREAM else Path(url)


def _checkpoint_path(config: Config) -> Path | None:
    """Where a run keeps how far it came: only files can be gone on with, and only a store that outlives the run."""
    source, sink = _path(config.source.url), _path(config.sink.url)
    if source is None or sink is None or not outlives_run(config):
        return None
    return checkpoints.checkpoint_path(sink)


def _checkpoint(config: Config) -> checkpoints.Checkpoint | None:
    path = _checkpoint_path(config)
    return None if path is None else checkpoints.load(path)


def _sink(config: Config, before: checkpoints.Checkpoint | None, source: FileSource, streams: Streams) -> Sink:
    path = _path(config.sink.url)
    if path is None:
        return StreamSink(streams.out, streams.err, emit=config.sink.emit)
    marks, unexplained = _start_of_sink(config, before, source, path)
    return FileSink(path, marks, file_writing(config), emit=config.sink.emit, unexplained=unexplained)


def _start_of_sink(
    config: Config, before: checkpoints.Checkpoint | None, source: FileSource, path: Path
) -> tuple[Marks | None, str]:
    """What a sink has of earlier runs, None for nothing, and why a run may not append to it then."""
    if source.streams:
        return None, f"a run that reads {source.name} always needs a new sink, since it cannot be resumed"
    if not outlives_run(config):
        return None, f"a run with a {config.store.url} store always needs a new sink, since it cannot be resumed"
    if before is None:
        return None, f"there is no checkpoint {checkpoints.checkpoint_path(path)} that says what wrote it"
    return before.marks, UNEXPLAINED


def _feed_and_journal(
    config: Config,
    settings: JudgeSettings,
    before: checkpoints.Checkpoint | None,
    source: FileSource,
    sink: Sink,
) -> tuple[Feed, Journal]:
    """When the records of this run came, and where it is kept how far it got."""
    if source.streams:
        return StreamFeed(now_ms), NoJournal()
    identity = _identity(config.source.url, source)
    path = _checkpoint_path(config)
    if path is None:
        return FileFeed(now_ms(), identity), NoJournal()
    began_ms = checkpoints.began_ms(before, now_ms())
    if before is None:
        before = checkpoints.Checkpoint(source=config.source.url, began_ms=began_ms, settings=settings.digest())
    now = msgspec.structs.replace(
        before,
        source=config.source.url,
        began_ms=began_ms,
        finished=False,
        emit=config.sink.emit,
        store=store_identity(config.store.url),
    )
    return FileFeed(began_ms, identity), FileJournal(path, now, source.beginning, sink, file_writing(config))


def _archive(feed: Feed, hooks: Hooks) -> Feed:
    if not isinstance(feed, FileFeed):
        raise ConfigError("an archive is a file that can be read again; name one instead of a stream")
    return ArchiveFeed(feed.began_ms, feed.identity, hooks)


def _check_places(config: Config, before: checkpoints.Checkpoint | None, source: FileSource, streams: Streams) -> None:
    """Refuse a sink that the run must not write to. Makes and changes nothing."""
    path = _path(config.sink.url)
    if path is None:
        check_streams_apart(source, streams)
        return
    check_suffix(path, "verdicts")
    check_apart(source, path, kind_of(config.store.url).on_disk(config.store.url))
    check_file_sink(path, *_start_of_sink(config, before, source, path))


def _check_resumable(
    before: checkpoints.Checkpoint, source: FileSource, settings: JudgeSettings, config: Config
) -> None:
    checkpoints.check_source(before, source.name, source.beginning)
    checkpoints.check_emit(before, config.sink.emit, config.sink.url)
    if is_missing(config):
        # Opening it would create it.
        checkpoints.check_settings(before, settings.digest())
        _check_remembered(before, is_empty=True)


def _check_remembered(before: checkpoints.Checkpoint, *, is_empty: bool) -> None:
    if is_empty and before.counts.unique:
        raise ConfigError(
            "the store is empty, but this run has judged articles before: name the store it used, "
            "or begin anew with another --sink (a backfill: with another --state)"
        )


def _identity(url: str, source: FileSource) -> bytes:
    """What tells one feed from another, also after lines were added: where it is, and its first line."""
    first_line = source.beginning(_FIRST_LINE_BYTES_MAX).partition(b"\n")[0]
    return hashlib.sha256(os.fsencode(Path(url).resolve()) + b"\0" + first_line).digest()


def _burier(source: str) -> Callable[[RawRecord, BadRecord], DeadLetter]:
    def bury(record: RawRecord, fault: BadRecord) -> DeadLetter:
        position = LetterPosition(source=source, line=record.line, offset=record.start)
        return dead_letter(fault, position, record.data, size_bytes=record.size_bytes, sha256=record.sha256)

    return bury
