"""Settings that are valid one by one, but contradict each other or what is on this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path

from consumer.config.config import Config
from consumer.doctor.finding import Finding, ok, warning, wrong
from consumer.doctor.machine import check_written
from consumer.doctor.service import is_alone
from consumer.doctor.stores import finding_of
from consumer.files.kind import FILE, NOWHERE, NOWHERE_URL
from consumer.judge.settings import JudgeSettings
from consumer.model.errors import ConfigError, SourceError
from consumer.wiring import components, feeds, stores
from storage.kinds import kind_of, lasting_examples


def check_settings(config: Config, settings: Callable[[], JudgeSettings]) -> Iterator[Finding]:
    """Check that a run could be built from this configuration; ``settings`` raises ``ConfigError`` if not."""
    judged = settings()
    yield ok(f"The scheme is {judged.scheme.name}, the plan {judged.plan.name}, the digest {judged.short_digest()}.")
    chosen = components.engine_choice(config, judged, components.lexicon_of(config))
    yield ok(f"Fingerprints are computed by the engine {chosen.described}.")
    if feeds.source_side(config).lasting:
        yield from _lasting(config)
    else:
        yield from _file(config)
    yield from map(finding_of, kind_of(config.store.url).needs(stores.configured_opening(config)).advice)


def _file(config: Config) -> Iterator[Finding]:
    if feeds.is_followed(config) and not is_alone(config):
        yield wrong(
            ConfigError,
            "The source is a file, but the sink is a topic.",
            "Send the file to a topic with dupwatch produce, or name a file as the sink.",
        )
    if FILE.names(config.source.url) and not Path(config.source.url).is_file():
        yield wrong(SourceError, f"No file {config.source.url}.", "Correct source.url or --source.")
    if NOWHERE.names(config.sink.url) and not is_alone(config):
        yield wrong(
            ConfigError,
            f"The sink {NOWHERE_URL} is for dupwatch serve.",
            "Name a file in sink.url, or - for standard output.",
        )
    if FILE.names(config.sink.url):
        yield from check_written(Path(config.sink.url), "sink", "sink.url")


def _lasting(config: Config) -> Iterator[Finding]:
    # Each of these raises ConfigError with a message that says what to do.
    feeds.check_pair(config)
    for name, path in config.kafka.secret_files.items():
        if not Path(path).read_text(encoding="utf-8").strip():
            yield wrong(
                ConfigError, f"kafka.secret_files: the file for {name} is empty.", f"Put the value into {path}."
            )
    feeds.check_settings(config)
    if not stores.outlives_run(config):
        yield warning(
            "The store is in memory: it is lost at every restart, and consumers do not share it.",
            f"Name a persistent store: {lasting_examples()}.",
        )
