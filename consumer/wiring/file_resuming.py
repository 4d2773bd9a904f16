"""Whether a run over a file resumes an earlier one, and what is refused so that nothing is repeated or lost."""

from pathlib import Path

from consumer.config.config import Config
from consumer.files.checkpoint import (
    Checkpoint,
    check_emit,
    check_settings,
    check_source,
    checkpoint_path,
    load,
    passing_path,
)
from consumer.files.distinct_files import check_apart, check_streams_apart
from consumer.files.line_file import check_line_file, check_suffix
from consumer.files.sinks import NO_CHECKPOINT
from consumer.files.source import FileSource
from consumer.judge.settings import JudgeSettings
from consumer.model.errors import ConfigError
from consumer.wiring.components import STREAM, Streams
from consumer.wiring.dead_letters import check_dead_letter_sink, dead_letters_file
from consumer.wiring.outputs import FileOutput, StreamOutput
from consumer.wiring.stores import is_missing, outlives_run
from storage.interface import Store
from storage.kinds import kind_of


def path_of(url: str) -> Path | None:
    """Return the named file; None for a standard stream."""
    return None if url == STREAM else Path(url)


def checkpoint_path_of(config: Config) -> Path | None:
    """Return where a run keeps its progress; None where it cannot be resumed: that takes files, and a lasting store."""
    source, sink = path_of(config.source.url), path_of(config.sink.url)
    if source is None or sink is None or not outlives_run(config):
        return None
    return checkpoint_path(sink)


def earlier_checkpoint(config: Config) -> Checkpoint | None:
    """Return the checkpoint of the run that this one resumes, if any."""
    path = checkpoint_path_of(config)
    return None if path is None else load(path)


def file_or_stream(
    config: Config, before: Checkpoint | None, source: FileSource, streams: Streams
) -> FileOutput | StreamOutput:
    """Return where the verdicts go, and how much of earlier runs the sink keeps."""
    path = path_of(config.sink.url)
    if path is None:
        return StreamOutput(streams)
    if source.streams:
        why = f"a run that reads {source.name} always needs a new sink, since it cannot be resumed"
    elif not outlives_run(config):
        why = f"a run with a {config.store.url} store always needs a new sink, since it cannot be resumed"
    elif before is None:
        why = f"there is no checkpoint {checkpoint_path(path)} that records which run wrote it"
    else:
        return FileOutput(path, before.marks, NO_CHECKPOINT)
    return FileOutput(path, None, why)


def check_output(config: Config, source: FileSource, output: FileOutput | StreamOutput) -> None:
    """Refuse a sink that the run must not write to. Creates and changes nothing."""
    if isinstance(output, StreamOutput):
        check_streams_apart(source, output.streams)
        return
    path, checkpoint = output.path, checkpoint_path(output.path)
    written = {
        path: "the verdicts",
        dead_letters_file(path): "the dead letters",
        checkpoint: "the checkpoint",
        passing_path(checkpoint): "the checkpoint",
    }
    check_suffix(path, "verdicts")
    check_apart(source, written, kind_of(config.store.url).on_disk(config.store.url))
    check_line_file(path, output.verdicts_bytes, output.why_not_append)
    check_dead_letter_sink(output)


def check_resumable(before: Checkpoint, source: FileSource, settings: JudgeSettings, config: Config) -> None:
    """Refuse to resume with another source, other events, or without the store. Opens no store: that may create it."""
    check_source(before, source.name, source.beginning)
    check_emit(before, config.sink.emit, config.sink.url)
    if is_missing(config):
        check_settings(before, settings.digest())
        _check_remembered(before, is_empty=True)


def check_store(before: Checkpoint, store: Store, settings: JudgeSettings) -> None:
    """Refuse to resume with other settings, or with a store that the earlier run has not judged into.

    Bind the store to the settings first: its refusal says which settings differ.
    """
    check_settings(before, settings.digest())
    _check_remembered(before, is_empty=next(store.scan(), None) is None)


def _check_remembered(before: Checkpoint, *, is_empty: bool) -> None:
    if is_empty and before.counts.unique:
        raise ConfigError(
            "the store is empty, but this run has judged articles before: name the store it used, "
            "or start again with another --sink (a backfill: with another --state)"
        )
