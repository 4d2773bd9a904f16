"""Builds a replay, which judges a range of topics again into a separate store."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from consumer.config.config import Config
from consumer.feeds.kinds import sink_of
from consumer.files.kind import NOWHERE_URL
from consumer.judge.tally import Tally
from consumer.kafka.client_settings import consumer_settings, parse_kafka
from consumer.kafka.offset_range import OffsetRange
from consumer.kafka.opening import topic_arrivals
from consumer.kafka.source.range_source import RangeSource
from consumer.lifecycle.interruption import Drain
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import ConfigError, SinkError
from consumer.model.hooks import Hooks
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.feed_kind import Outputs
from consumer.pipeline.journal import NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.wiring import components, feeds, stores
from consumer.wiring.banks import busy_items, followed_banks
from consumer.wiring.pipeline_factory import (
    Control,
    JudgingParts,
    PipelinePorts,
    build_pipeline,
    interruptible_detector,
    warming,
)
from consumer.workers.engines import ChosenEngine
from storage.interface import Store


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A replay that is ready to start, and the parts that can be inspected during it."""

    pipeline: Pipeline
    source: RangeSource
    store: Store
    tally: Tally
    engine: ChosenEngine


@contextmanager
def prepared_replay(
    config: Config, offsets: OffsetRange, hooks: Hooks, stopping: StopSignal, against: str | None = None
) -> Iterator[ReplayRun]:
    """Build a replay from its configuration, and release its resources afterwards.

    Verdicts go to the topics of the sink's prefix, or nowhere. A replay joins no group. It uses the secret of the store
    ``against``, whose verdicts it is compared with, so that similarities are estimated in the same way.
    """
    if not feeds.source_side(config).has_ranges:
        raise ConfigError("a replay reads topics: name them with --source kafka://HOST:PORT/TOPIC")
    with ExitStack() as resources:
        lexicon = components.lexicon_of(config)
        config = stores.completed_config(config)
        settings = components.judge_settings(config, lexicon)
        source = _source(config, offsets, stopping)
        resources.callback(source.close)
        # Opened after the source, so that no store is created if the source cannot be read.
        store = resources.enter_context(stores.opened_store(config))
        compared_secret = None if against is None else stores.secret_of_store(config, against)
        bound = stores.bind(store, settings, config, compared_secret)
        known = resources.enter_context(followed_banks(config, bound, lexicon, hooks))
        fingerprinting = components.fingerprinting(config, bound, lexicon, known=known)
        resources.callback(fingerprinting.close)
        drain = Drain(stopping, config.kafka.drain_s)
        outputs = _outputs(config, source.name, drain, hooks)
        resources.callback(outputs.verdicts.close)
        detector = interruptible_detector(store, settings, drain, config, known=known)
        resources.enter_context(warming(store, detector.common))
        pipeline = build_pipeline(
            config,
            JudgingParts(bound, fingerprinting, detector, busy_items=busy_items(config, known, hooks)),
            PipelinePorts(
                source=source,
                decode=components.record_decoder(config),
                arrivals=topic_arrivals(feeds.topics_options(config), hooks),
                sink=outputs.verdicts,
                dead_letters=DeadLetterPolicy(config.source.url, outputs.dead_letters),
                journal=NoJournal(),
            ),
            Control(stopping, drain),
            hooks,
        )
        chosen = components.engine_choice(config, settings, lexicon)
        yield ReplayRun(pipeline, source, store, detector.tally, chosen)


def _source(config: Config, offsets: OffsetRange, stopping: StopSignal) -> RangeSource:
    address = parse_kafka(config.source.url)
    settings = consumer_settings(address.brokers, components.kafka_options(config))
    return RangeSource(settings, address.names, components.read_limits(config), offsets, stopping.requested)


def _outputs(config: Config, feed: str, drain: Drain, hooks: Hooks) -> Outputs:
    """Open the topics of the sink; without topics, verdicts and dead letters are discarded."""

    def proceed() -> None:
        # A run that could not send all stored verdicts must not seem to have stopped cleanly.
        if drain.is_over():
            raise SinkError("the verdicts of the last batch could not be sent before the run had to end")

    url = config.sink.url if feeds.is_followed(config) else NOWHERE_URL
    opened = sink_of(url).open(url, replace(feeds.sink_opening(config, hooks, feed), proceed=proceed))
    return Outputs(opened.sink, opened.dead_letters())
