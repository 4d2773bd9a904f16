"""Settings that are each right, and contradict each other or what is on this machine."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from consumer.config.config import Config
from consumer.doctor.finding import Finding, ok, warning, wrong
from consumer.judge.settings import JudgeSettings
from consumer.kafka.client_settings import is_kafka, parse_kafka
from consumer.model.errors import ConfigError, SinkError, SourceError
from consumer.wiring import parts, stores
from consumer.wiring.client_trial import try_clients
from consumer.wiring.topics_checks import check_places
from storage.hbase.kind import HBASE
from storage.kinds import kind_of, lasting_examples

_IDLE_S: Final = 60
"""After how long a gateway drops a connection that nobody uses, unless it is told otherwise."""


def check_settings(config: Config, settings: Callable[[], JudgeSettings]) -> Iterator[Finding]:
    """Whether a run could be built from this configuration; ``settings`` raises ConfigError where it could not."""
    judged = settings()
    yield ok(f"The scheme is {judged.scheme.name}, the plan {judged.plan.name}, the digest {judged.short_digest()}.")
    if is_kafka(config.source.url):
        yield from _stream(config)
    else:
        yield from _file(config)
    if kind_of(config.store.url) is HBASE and config.store.hbase.retire_s >= _IDLE_S:
        yield warning(
            f"store.hbase.retire_s is {config.store.hbase.retire_s:g}, and a gateway drops idle connections after "
            f"{_IDLE_S} s unless it is told otherwise.",
            f"Set it below the gateway's limit, to {_IDLE_S - 15} for example.",
        )


def _file(config: Config) -> Iterator[Finding]:
    if is_kafka(config.sink.url):
        yield wrong(
            ConfigError,
            "The source is a file, and the sink is a topic.",
            "Send the file to a topic, or judge into one.",
        )
    if config.source.url != parts.STREAM and not Path(config.source.url).is_file():
        yield wrong(SourceError, f"There is no file {config.source.url}.", "Correct source.url, or give --source.")
    if config.sink.url != parts.STREAM and not is_kafka(config.sink.url):
        yield from _written(Path(config.sink.url))


def _written(sink: Path) -> Iterator[Finding]:
    """Whether verdicts can be written there, and dead letters and the checkpoint beside them."""
    folder = sink.parent
    if not folder.is_dir():
        yield wrong(SinkError, f"There is no folder {folder} for the sink {sink}.", "Make it, or correct sink.url.")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield wrong(
            SinkError,
            f"This user cannot write in {folder}, where the sink is.",
            "Give it to the user, or name another.",
        )
    elif sink.exists() and not sink.is_file():
        yield wrong(SinkError, f"The sink {sink} is no regular file.", "Name a file in sink.url, or - for a stream.")
    elif sink.exists() and not os.access(sink, os.W_OK):
        yield wrong(SinkError, f"This user cannot write to the sink {sink}.", "Give it to the user, or name another.")


def _stream(config: Config) -> Iterator[Finding]:
    # All of these raise ConfigError with a sentence that says what to do.
    parse_kafka(config.source.url)
    check_places(config)
    for name, path in config.kafka.secret_files.items():
        if not Path(path).read_text(encoding="utf-8").strip():
            yield wrong(
                ConfigError, f"kafka.secret_files: the file for {name} is empty.", f"Put the value into {path}."
            )
    try_clients(config)
    if not stores.outlives_run(config):
        yield warning(
            "The store is in memory: every start forgets what was judged, and consumers share nothing.",
            f"Name a store that stays: {lasting_examples()}.",
        )
