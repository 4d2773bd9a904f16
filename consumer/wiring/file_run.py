"""A run over a file or a stream, built and wired."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from consumer.config.config import Config
from consumer.files.checkpoint import Checkpoint, FileJournal, Outputs, began_ms
from consumer.files.feed_gate import FeedGate
from consumer.files.lines import Position
from consumer.files.sinks import FileSink, StreamSink
from consumer.files.source import FileSource
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.kafka.client_settings import is_kafka
from consumer.lifecycle.interruption import Drain
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import ConfigError, Fatal
from consumer.model.hooks import Hooks
from consumer.model.ports import Sink
from consumer.pipeline.arrivals import ArchiveArrivals, Arrivals, FileArrivals, StreamArrivals
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.journal import Journal, NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.pipeline.poison_limit import PoisonLimit
from consumer.wiring.common_hashes import warming
from consumer.wiring.components import (
    NOWHERE,
    Streams,
    engine_choice,
    field_map,
    file_decoder,
    file_writing,
    fingerprinting,
    judge_settings,
    lexicon_of,
    read_limits,
)
from consumer.wiring.dead_letters import dead_letter_sink
from consumer.wiring.file_resuming import (
    check_output,
    check_resumable,
    check_store,
    checkpoint_path_of,
    earlier_checkpoint,
    file_or_stream,
    path_of,
)
from consumer.wiring.outputs import FileOutput, StreamOutput
from consumer.wiring.pipeline_factory import Control, Judging, Route, build_pipeline, interruptible_detector
from consumer.wiring.stores import bind, completed_config, opened_store
from consumer.workers.engines import ChosenEngine
from storage.clock import now_ms
from storage.interface import Store
from storage.kinds import store_identity

_FIRST_LINE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is ready to start, and what can be asked about it meanwhile."""

    pipeline: Pipeline
    source: FileSource
    store: Store
    tally: Tally
    resumed_at: Position
    resumable: bool
    engine: ChosenEngine


@contextmanager
def prepared_run(
    config: Config,
    streams: Streams,
    hooks: Hooks,
    stopping: Stopping,
    *,
    archive: bool = False,
) -> Iterator[Run]:
    """Build a run over a file or a stream from its configuration, and release everything it holds afterwards.

    The articles of an ``archive`` arrived when they were published; ``RecordTimeReplaced`` is reported for each article
    that does not say when that was.
    """
    if is_kafka(config.sink.url):
        raise ConfigError("a kafka:// sink needs a kafka:// source; a file is judged into a file, or to -")
    if config.sink.url == NOWHERE:
        raise ConfigError(f"{NOWHERE} is a sink of dupwatch serve; name a file, which is created, or -")
    with ExitStack() as resources:
        lexicon = lexicon_of(config)
        config = completed_config(config)
        settings = judge_settings(config, lexicon)
        before = earlier_checkpoint(config)
        start = Position() if before is None else before.position
        source = FileSource(path_of(config.source.url), read_limits(config), start)
        resources.callback(source.close)
        # All that can be refused is refused before a store or a sink is created.
        output = file_or_stream(config, before, source, streams)
        check_output(config, source, output)
        if before is not None:
            check_resumable(before, source, settings, config)
        store = resources.enter_context(opened_store(config))
        bound = bind(store, settings, config)
        if before is not None:
            check_store(before, store, settings)
        drain = Drain(stopping, config.kafka.drain_s)
        fingerprints = fingerprinting(config, bound, lexicon, drain)
        resources.callback(fingerprints.close)
        sink = _sink(config, output)
        resources.callback(sink.close)
        try:
            dead_letters = dead_letter_sink(config, output)
            resources.callback(dead_letters.close)
            arrivals, journal = _arrivals_and_journal(config, settings, before, source, Outputs(sink, dead_letters))
        except Fatal:
            if isinstance(sink, FileSink):
                sink.discard()
            raise
        if archive:
            arrivals = _archive(arrivals, hooks)
        detector = interruptible_detector(store, settings, drain, config)
        resources.enter_context(warming(store, detector.common))
        pipeline = build_pipeline(
            config,
            Judging(bound, fingerprints, detector),
            Route(
                source=source,
                decode=file_decoder(config),
                arrivals=arrivals,
                sink=sink,
                dead_letters=DeadLetterPolicy(config.source.url, dead_letters, _gate(config, source, before)),
                journal=journal,
            ),
            Control(stopping, drain),
            hooks,
        )
        chosen = engine_choice(config, settings, lexicon)
        yield Run(pipeline, source, store, detector.tally, start, isinstance(journal, FileJournal), chosen)


def _gate(config: Config, source: FileSource, before: Checkpoint | None) -> FeedGate:
    """Build what ends a run with too many bad records."""
    limit = PoisonLimit(config.source.poison_share_max, config.source.poison_records_min)
    good_before = 0 if before is None else before.counts.articles
    return FeedGate(limit, field_map(config), source.name, streams=source.streams, good_before=good_before)


def _sink(config: Config, output: FileOutput | StreamOutput) -> Sink:
    emit = config.sink.emit
    if isinstance(output, StreamOutput):
        return StreamSink(output.streams.out, emit=emit)
    return FileSink(
        output.path, output.verdicts_bytes, file_writing(config), emit=emit, why_not_append=output.why_not_append
    )


def _arrivals_and_journal(
    config: Config,
    settings: JudgeSettings,
    before: Checkpoint | None,
    source: FileSource,
    outputs: Outputs,
) -> tuple[Arrivals, Journal]:
    """Build what gives records their arrivals, and what keeps the run's progress."""
    if source.streams:
        return StreamArrivals(now_ms), NoJournal()
    identity = _feed_identity(config.source.url, source)
    path = checkpoint_path_of(config)
    if path is None:
        return FileArrivals(now_ms(), identity), NoJournal()
    start_ms = began_ms(before, now_ms())
    if before is None:
        before = Checkpoint(source=config.source.url, began_ms=start_ms, settings=settings.digest())
    now = msgspec.structs.replace(
        before,
        source=config.source.url,
        began_ms=start_ms,
        finished=False,
        emit=config.sink.emit,
        store=store_identity(config.store.url),
    )
    return FileArrivals(start_ms, identity), FileJournal(path, now, source.beginning, outputs, file_writing(config))


def _archive(arrivals: Arrivals, hooks: Hooks) -> Arrivals:
    if not isinstance(arrivals, FileArrivals):
        raise ConfigError("an archive is a file that can be read again; name one instead of a stream")
    return ArchiveArrivals(arrivals.began_ms, arrivals.identity, hooks)


def _feed_identity(url: str, source: FileSource) -> bytes:
    """Return what tells one feed from another, even after lines were appended: its path, and its first line."""
    first_line = source.beginning(_FIRST_LINE_BYTES_MAX).partition(b"\n")[0]
    return hashlib.sha256(os.fsencode(Path(url).resolve()) + b"\0" + first_line).digest()
