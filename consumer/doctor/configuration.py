"""Settings that are valid one by one, but contradict each other or what is on this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path

from consumer.config.config import Config
from consumer.doctor.finding import Finding, ok, warning, wrong
from consumer.doctor.machine import check_written
from consumer.doctor.service import is_alone
from consumer.doctor.stores import finding_of
from consumer.judge.settings import JudgeSettings
from consumer.kafka.client_settings import is_kafka, parse_kafka
from consumer.model.errors import ConfigError, SourceError
from consumer.wiring import components, stores
from consumer.wiring.topics_checks import check_topic_ends, try_clients
from storage.kinds import kind_of, lasting_examples


def check_settings(config: Config, settings: Callable[[], JudgeSettings]) -> Iterator[Finding]:
    """Check that a run could be built from this configuration; ``settings`` raises ``ConfigError`` if not."""
    judged = settings()
    yield ok(f"The scheme is {judged.scheme.name}, the plan {judged.plan.name}, the digest {judged.short_digest()}.")
    chosen = components.engine_choice(config, judged, components.lexicon_of(config))
    yield ok(f"Fingerprints are computed by the engine {chosen.described}.")
    if is_kafka(config.source.url):
        yield from _stream(config)
    else:
        yield from _file(config)
    yield from map(finding_of, kind_of(config.store.url).needs(stores.configured_opening(config)).advice)


def _file(config: Config) -> Iterator[Finding]:
    if is_kafka(config.sink.url) and not is_alone(config):
        yield wrong(
            ConfigError,
            "The source is a file, but the sink is a topic.",
            "Send the file to a topic with dupwatch produce, or name a file as the sink.",
        )
    if config.source.url != components.STREAM and not Path(config.source.url).is_file():
        yield wrong(SourceError, f"No file {config.source.url}.", "Correct source.url or --source.")
    if config.sink.url == components.NOWHERE:
        if not is_alone(config):
            yield wrong(
                ConfigError,
                f"The sink {components.NOWHERE} is for dupwatch serve.",
                "Name a file in sink.url, or - for standard output.",
            )
    elif config.sink.url != components.STREAM and not is_kafka(config.sink.url):
        yield from check_written(Path(config.sink.url), "sink", "sink.url")


def _stream(config: Config) -> Iterator[Finding]:
    # Each of these raises ConfigError with a message that says what to do.
    parse_kafka(config.source.url)
    check_topic_ends(config)
    for name, path in config.kafka.secret_files.items():
        if not Path(path).read_text(encoding="utf-8").strip():
            yield wrong(
                ConfigError, f"kafka.secret_files: the file for {name} is empty.", f"Put the value into {path}."
            )
    try_clients(config)
    if not stores.outlives_run(config):
        yield warning(
            "The store is in memory: it is lost at every restart, and consumers do not share it.",
            f"Name a persistent store: {lasting_examples()}.",
        )
