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
from consumer.files.distinct_files import check_apart
from consumer.files.kind import FILE
from consumer.files.letters import dead_letters_path
from consumer.files.line_file import check_line_file, check_suffix
from consumer.files.opening import Continuation
from consumer.files.sinks import NO_CHECKPOINT
from consumer.files.source import FileSource
from consumer.judge.settings import JudgeSettings
from consumer.model.errors import ConfigError
from consumer.wiring.stores import is_missing, outlives_run
from storage.interface import Store
from storage.kinds import kind_of


def sink_file(config: Config) -> Path | None:
    """Return the file that verdicts go to; None for any other kind of sink."""
    return Path(config.sink.url) if FILE.names(config.sink.url) else None


def checkpoint_path_of(config: Config) -> Path | None:
    """Return where a run keeps its progress; None where it cannot be resumed: that takes files, and a lasting store."""
    path = sink_file(config)
    if not FILE.names(config.source.url) or path is None or not outlives_run(config):
        return None
    return checkpoint_path(path)


def earlier_checkpoint(config: Config) -> Checkpoint | None:
    """Return the checkpoint of the run that this one resumes, if any."""
    path = checkpoint_path_of(config)
    return None if path is None else load(path)


def continuation(config: Config, path: Path, before: Checkpoint | None, source: FileSource) -> Continuation:
    """Return how much of earlier runs the file of verdicts keeps."""
    if source.streams:
        why = f"a run that reads {source.name} always needs a new sink, since it cannot be resumed"
    elif not outlives_run(config):
        why = f"a run with a {config.store.url} store always needs a new sink, since it cannot be resumed"
    elif before is None:
        why = f"there is no checkpoint {checkpoint_path(path)} that records which run wrote it"
    else:
        return Continuation(before.marks, NO_CHECKPOINT)
    return Continuation(None, why)


def check_file(config: Config, source: FileSource, path: Path, found: Continuation) -> None:
    """Refuse a file that the run must not write to. Creates and changes nothing."""
    letters, checkpoint = dead_letters_path(path), checkpoint_path(path)
    written = {
        path: "the verdicts",
        letters: "the dead letters",
        checkpoint: "the checkpoint",
        passing_path(checkpoint): "the checkpoint",
    }
    check_suffix(path, "verdicts")
    check_apart(source, written, kind_of(config.store.url).on_disk(config.store.url))
    check_line_file(path, found.verdicts_bytes, found.why_not_append)
    check_line_file(letters, found.dead_letters_bytes, found.why_not_append)


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
