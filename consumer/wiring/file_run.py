"""A run over a file or a stream, built and wired."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from consumer.config.config import Config
from consumer.feeds.kinds import sink_of
from consumer.files.checkpoint import Checkpoint, FileJournal
from consumer.files.distinct_files import check_streams_apart
from consumer.files.lines import Position
from consumer.files.opening import FileOptions, open_source
from consumer.files.sinks import FileSink
from consumer.files.source import FileSource
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.lifecycle.interruption import Drain
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import Fatal
from consumer.model.hooks import Hooks
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.feed_kind import Outputs, SinkOpening, SourceOpening, Streams
from consumer.pipeline.loop import Pipeline
from consumer.pipeline.poison_limit import PoisonLimit
from consumer.wiring import feeds
from consumer.wiring.common_hashes import warming
from consumer.wiring.components import (
    engine_choice,
    field_map,
    file_decoder,
    file_writing,
    fingerprinting,
    judge_settings,
    lexicon_of,
    read_limits,
)
from consumer.wiring.file_resuming import (
    check_file,
    check_resumable,
    check_store,
    checkpoint_path_of,
    continuation,
    earlier_checkpoint,
    sink_file,
)
from consumer.wiring.pipeline_factory import Control, Judging, Route, build_pipeline, interruptible_detector
from consumer.wiring.stores import bind, completed_config, opened_store
from consumer.workers.engines import ChosenEngine
from storage.interface import Store
from storage.kinds import store_identity


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
    feeds.check_pair(config)
    with ExitStack() as resources:
        lexicon = lexicon_of(config)
        config = completed_config(config)
        settings = judge_settings(config, lexicon)
        before = earlier_checkpoint(config)
        opened = open_source(config.source.url, _opening(config, hooks, settings, before, archive=archive))
        source = opened.source
        resources.callback(source.close)
        # All that can be refused is refused before a store or a sink is created.
        sink_opening = _checked_sink(config, streams, hooks, before, source)
        if before is not None:
            check_resumable(before, source, settings, config)
        store = resources.enter_context(opened_store(config))
        bound = bind(store, settings, config)
        if before is not None:
            check_store(before, store, settings)
        drain = Drain(stopping, config.kafka.drain_s)
        fingerprints = fingerprinting(config, bound, lexicon, drain)
        resources.callback(fingerprints.close)
        written = sink_of(config.sink.url).open(config.sink.url, replace(sink_opening, proceed=drain.while_judging))
        resources.callback(written.sink.close)
        try:
            outputs = Outputs(written.sink, written.dead_letters())
            resources.callback(outputs.dead_letters.close)
            journal = opened.journal(outputs)
        except Fatal:
            if isinstance(written.sink, FileSink):
                written.sink.discard()
            raise
        detector = interruptible_detector(store, settings, drain, config)
        resources.enter_context(warming(store, detector.common))
        pipeline = build_pipeline(
            config,
            Judging(bound, fingerprints, detector),
            Route(
                source=source,
                decode=file_decoder(config),
                arrivals=opened.arrivals,
                sink=outputs.verdicts,
                dead_letters=DeadLetterPolicy(config.source.url, outputs.dead_letters, opened.gate),
                journal=journal,
            ),
            Control(stopping, drain),
            hooks,
        )
        chosen = engine_choice(config, settings, lexicon)
        resumed_at = Position() if before is None else before.position
        yield Run(pipeline, source, store, detector.tally, resumed_at, isinstance(journal, FileJournal), chosen)


def _opening(
    config: Config, hooks: Hooks, settings: JudgeSettings, before: Checkpoint | None, *, archive: bool
) -> SourceOpening:
    options = FileOptions(
        checkpoint=checkpoint_path_of(config),
        before=before,
        settings=settings.digest(),
        emit=config.sink.emit,
        store=store_identity(config.store.url),
        writing=file_writing(config),
        limit=PoisonLimit(config.source.poison_share_max, config.source.poison_records_min),
        fields=field_map(config),
        archive=archive,
    )
    return SourceOpening(hooks=hooks, own=(options,), limits=read_limits(config))


def _checked_sink(
    config: Config, streams: Streams, hooks: Hooks, before: Checkpoint | None, source: FileSource
) -> SinkOpening:
    """Return how the sink is opened. Refuse one that the run must not write to; create and change nothing."""
    opening = replace(feeds.sink_opening(config, hooks, source.name), streams=streams)
    path = sink_file(config)
    if path is None:
        check_streams_apart(source, streams)
        return opening
    found = continuation(config, path, before, source)
    check_file(config, source, path, found)
    return replace(opening, own=(*opening.own, found))
