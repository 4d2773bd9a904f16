"""Builds a run over a file or a stream, which may resume an earlier one.

A run that would repeat or lose output is refused before anything is created.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from consumer.config.config import Config
from consumer.feeds.kinds import sink_of
from consumer.files.checkpoint import (
    Checkpoint,
    FileJournal,
    check_emit,
    check_settings,
    check_source,
    checkpoint_path,
    load,
    temporary_path,
)
from consumer.files.clean_feed import CleanFeed
from consumer.files.distinct_files import check_distinct, check_stream_unwritten, check_streams_distinct
from consumer.files.kind import FILE
from consumer.files.letters import dead_letters_path
from consumer.files.line_file import check_line_file, check_suffix
from consumer.files.lines import Position
from consumer.files.opening import Continuation, FileOptions, open_source
from consumer.files.sinks import NO_CHECKPOINT, FileSink
from consumer.files.source import FileSource
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.lifecycle.interruption import Drain
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import ConfigError, Fatal
from consumer.model.hooks import Hooks
from consumer.model.ports import ReleasingSink
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy, PoisonLimit
from consumer.pipeline.feed_kind import Outputs, SinkArguments, SourceArguments, Streams
from consumer.pipeline.loop import Pipeline
from consumer.wiring import feeds
from consumer.wiring.banks import followed_banks
from consumer.wiring.components import (
    engine_choice,
    field_map,
    file_decoder,
    file_form,
    fingerprinting,
    judge_settings,
    lexicon_of,
    write_options,
)
from consumer.wiring.pipeline_factory import (
    Control,
    JudgingParts,
    PipelinePorts,
    build_pipeline,
    interruptible_detector,
    warming,
)
from consumer.wiring.stores import bind, completed_config, is_missing, opened_store, outlives_run
from consumer.workers.engines import ChosenEngine
from storage.interface import Store
from storage.kind import DiskLocation
from storage.kinds import store_identity


def sink_file(config: Config) -> Path | None:
    """Return the file of verdicts; None for any other kind of sink."""
    return Path(config.sink.url) if FILE.matches(config.sink.url) else None


def checkpoint_path_of(config: Config) -> Path | None:
    """Return the path of a run's checkpoint; None if the run cannot be resumed.

    Only a run from a file into a file, with a lasting store, can be resumed.
    """
    path = sink_file(config)
    if not FILE.matches(config.source.url) or path is None or not outlives_run(config):
        return None
    return checkpoint_path(path)


def earlier_checkpoint(config: Config) -> Checkpoint | None:
    """Return the checkpoint of the run that this one resumes, if any."""
    path = checkpoint_path_of(config)
    return None if path is None else load(path)


def continuation(config: Config, path: Path, before: Checkpoint | None, source: FileSource) -> Continuation:
    """Return the sizes of earlier output that the sink keeps, or why the run needs a new file."""
    if source.is_stream:
        why = f"a run that reads {source.name} always needs a new sink, since it cannot be resumed"
    elif not outlives_run(config):
        why = f"a run with a {config.store.url} store always needs a new sink, since it cannot be resumed"
    elif before is None:
        why = f"there is no checkpoint {checkpoint_path(path)} that records which run wrote it"
    else:
        return Continuation(before.marks, NO_CHECKPOINT)
    return Continuation(None, why)


def check_file(source: FileSource, path: Path, found: Continuation, store: DiskLocation | None) -> None:
    """Raise ``ConfigError`` for a file that the run must not write to. Creates and changes nothing."""
    check_suffix(path, "verdicts")
    check_distinct(source, written_files(path), store)
    check_line_file(path, found.verdicts_bytes, found.why_not_append)
    check_line_file(dead_letters_path(path), found.dead_letters_bytes, found.why_not_append)


def written_files(path: Path) -> dict[Path, str]:
    """Return the files that a run with verdicts in ``path`` writes, each with a description of its content."""
    checkpoint = checkpoint_path(path)
    return {
        path: "the verdicts",
        dead_letters_path(path): "the dead letters",
        checkpoint: "the checkpoint",
        temporary_path(checkpoint): "the checkpoint",
    }


def check_resumable(before: Checkpoint, source: FileSource, settings: JudgeSettings, config: Config) -> None:
    """Raise ``ConfigError`` if the run would resume with another source or another ``sink.emit``.

    If the store is missing, also raise it if the settings differ, or if the earlier run has kept articles. Does not
    open the store, because that would create it.
    """
    check_source(before, source.name, source.beginning)
    check_emit(before, config.sink.emit, config.sink.url)
    if is_missing(config):
        check_settings(before, settings.digest())
        _check_not_emptied(before, is_empty=True)


def check_store(before: Checkpoint, store: Store, settings: JudgeSettings) -> None:
    """Raise ``ConfigError`` for other settings, or for an empty store although the earlier run has kept articles.

    Call ``bind`` first, because its error names the settings that differ.
    """
    check_settings(before, settings.digest())
    _check_not_emptied(before, is_empty=next(store.scan(), None) is None)


def _check_not_emptied(before: Checkpoint, *, is_empty: bool) -> None:
    if is_empty and before.counts.unique:
        raise ConfigError(
            "the store is empty, but this run has judged articles before: name the store that it used, "
            "or start again with another --sink (a backfill: with another --state)"
        )


@dataclass(frozen=True, slots=True)
class FileRun:
    """A run that is ready to start, and the parts that can be inspected during it."""

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
    stopping: StopSignal,
    *,
    archive: bool = False,
    filters: bool = False,
) -> Iterator[FileRun]:
    """Build a run over a file or a stream from its configuration, and release its resources afterwards.

    The articles of an ``archive`` arrive at their times of publication. ``RecordTimeReplaced`` is reported for each
    article whose time is missing, before 1970, or later than the start of the run. A run with ``filters`` writes the
    unique articles to ``streams.out``.
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
        # The checks that need no store are made before a store or a sink is created.
        sink_opening = _checked_sink(config, streams, hooks, before, source)
        if filters:
            _check_clean_feed(config, streams, source)
        if before is not None:
            check_resumable(before, source, settings, config)
        store = resources.enter_context(opened_store(config))
        bound = bind(store, settings, config)
        if before is not None:
            check_store(before, store, settings)
        drain = Drain(stopping, config.kafka.drain_s)
        known = resources.enter_context(followed_banks(config, bound, lexicon, hooks))
        fingerprints = fingerprinting(config, bound, lexicon, drain, known=known)
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
        resumed_at = Position() if before is None else before.position
        if filters:
            outputs = outputs._replace(verdicts=_clean_feed(outputs.verdicts, streams, source, resumed_at))
        detector = interruptible_detector(store, settings, drain, config, known=known)
        resources.enter_context(warming(store, detector.common))
        pipeline = build_pipeline(
            config,
            JudgingParts(bound, fingerprints, detector),
            PipelinePorts(
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
        yield FileRun(pipeline, source, store, detector.tally, resumed_at, isinstance(journal, FileJournal), chosen)


def _check_clean_feed(config: Config, streams: Streams, source: FileSource) -> None:
    """Raise ``ConfigError`` if the unique articles would be written into the source or among the verdicts."""
    check_streams_distinct(source, [streams.out])
    path = sink_file(config)
    check_stream_unwritten(streams.out, {} if path is None else written_files(path))


def _clean_feed(verdicts: ReleasingSink, streams: Streams, source: FileSource, resumed_at: Position) -> CleanFeed:
    """Build the writer of unique articles.

    A resumed run appends to the output of earlier runs. They have already written the header up to ``resumed_at``, and
    the last line, but not its line end if the source lacked the line end at that time.
    """
    return CleanFeed(verdicts, streams.out, lambda: source.header[resumed_at.offset :] + source.missing_line_end)


def _opening(
    config: Config, hooks: Hooks, settings: JudgeSettings, before: Checkpoint | None, *, archive: bool
) -> SourceArguments:
    options = FileOptions(
        checkpoint=checkpoint_path_of(config),
        before=before,
        settings=settings.digest(),
        emit=config.sink.emit,
        store=store_identity(config.store.url),
        writing=write_options(config),
        limit=PoisonLimit(config.source.poison_share_max, config.source.poison_records_min),
        fields=field_map(config),
        form=file_form(config),
        archive=archive,
    )
    opening = feeds.source_opening(config, hooks)
    return replace(opening, own=(*opening.own, options))


def _checked_sink(
    config: Config, streams: Streams, hooks: Hooks, before: Checkpoint | None, source: FileSource
) -> SinkArguments:
    """Return the arguments of the sink. Raises ``ConfigError`` if the run must not write to it. Changes nothing."""
    opening = replace(feeds.sink_opening(config, hooks, source.name), streams=streams)
    path = sink_file(config)
    if path is None:
        check_streams_distinct(source, streams)
        return opening
    found = continuation(config, path, before, source)
    check_file(source, path, found, opening.store)
    return replace(opening, own=(*opening.own, found))
