"""Builds a migration from the configuration of the new consumers."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial

from consumer.config.config import Config
from consumer.files.sinks import NullSink
from consumer.kafka.client_settings import admin_settings, consumer_settings, parse_kafka
from consumer.kafka.groups import ConsumerGroup, GroupTopics
from consumer.kafka.offset_range import Ranges
from consumer.kafka.opening import topic_arrivals
from consumer.kafka.source.range_source import RangeSource
from consumer.lifecycle.stopping import StopSignal
from consumer.migration.adopting import AdoptingJudge, Takeover
from consumer.migration.migration import Migration, MigrationPlan
from consumer.migration.offsets import FillJournal
from consumer.migration.seen_copy import copy_seen
from consumer.model.errors import ConfigError, StoreMismatch
from consumer.model.hooks import Hooks
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.loop import Pipeline
from consumer.wiring import components, feeds, stores
from consumer.wiring.components import kafka_options
from consumer.wiring.pipeline_factory import Control, JudgingParts, PipelinePorts, build_pipeline
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store
from storage.kinds import same_store


@contextmanager
def open_migration(config: Config, plan: MigrationPlan, hooks: Hooks, stopping: StopSignal) -> Iterator[Migration]:
    """Build a migration, and release its resources afterwards. ``config`` names the new group and store."""
    _check(config, plan)
    address = parse_kafka(config.source.url)
    admin_client = admin_settings(address.brokers, kafka_options(config))
    consumer_client = consumer_settings(address.brokers, kafka_options(config))
    with ExitStack() as stack:
        lexicon = components.lexicon_of(config)
        config = stores.completed_config(config)
        settings = components.judge_settings(config, lexicon)
        topics = stack.enter_context(closing(GroupTopics(admin_client, address.names)))
        old = stack.enter_context(closing(ConsumerGroup(admin_client, plan.from_group)))
        new = stack.enter_context(closing(ConsumerGroup(admin_client, config.kafka.group)))
        old_store = None if plan.from_store is None else stack.enter_context(_old_store(config, plan.from_store))
        # Ask the brokers first: if none answers, no store is created.
        topics.watermarks()
        store = stack.enter_context(stores.opened_store(config))
        bound = stores.bind(store, settings, config)
        fingerprinting = components.fingerprinting(config, bound, lexicon)
        stack.callback(fingerprinting.close)
        seen_ms, common = config.seen_s * MS_PER_S, components.common_hashes(config)
        judge = AdoptingJudge(store, settings, now_ms, seen_ms=seen_ms, common=common, old_store=old_store)
        judging = JudgingParts(bound, fingerprinting, judge)
        decode, arrivals = components.message_decoder(config), topic_arrivals(feeds.topics_options(config), hooks)

        def open_source(ranges: Ranges) -> RangeSource:
            return RangeSource(
                consumer_client, address.names, components.read_limits(config), ranges, stopping.requested
            )

        def build(source: RangeSource, journal: FillJournal) -> Pipeline:
            # The consumers of the old store send the verdicts and dead letters of these records.
            dead_letters = DeadLetterPolicy(config.source.url, NullSink())
            ports = PipelinePorts(
                source=source,
                decode=decode,
                arrivals=arrivals,
                sink=NullSink(),
                dead_letters=dead_letters,
                journal=journal,
            )
            return build_pipeline(config, judging, ports, Control(stopping), hooks)

        began_ms = now_ms()
        yield Migration(
            plan=plan,
            into=config.store.url,
            has_articles=lambda: next(store.scan(), None) is not None,
            topics=topics,
            old=old,
            new=new,
            judge=judge,
            hooks=hooks,
            stopping=stopping,
            topic_names=address.names,
            begin_ms=began_ms - config.lifetime_s * MS_PER_S,
            needed_ms=began_ms - settings.window_ms,
            open_source=open_source,
            build_pipeline=build,
            copy_texts=partial(_copy_texts, config, old_store, store, stopping),
            adopt=Takeover(decode, fingerprinting, components.version_builder(bound), arrivals, judge).adopt,
        )


def _copy_texts(config: Config, old_store: Store | None, store: Store, stopping: StopSignal) -> int:
    """Copy the old store's entries of seen texts if the new consumers keep such entries; return their number."""
    return copy_seen(old_store, store, stopping.requested) if old_store is not None and config.seen_s else 0


def _check(config: Config, plan: MigrationPlan) -> None:
    if not feeds.source_side(config).is_shared:
        raise ConfigError("a migration follows topics: name them with --source kafka://HOST:PORT/TOPIC")
    if not stores.outlives_run(config):
        raise ConfigError(f"name the new store: {stores.STORE_EXAMPLES}")
    if config.kafka.group == plan.from_group:
        raise ConfigError(
            f"{plan.from_group} is the group of the old consumers; name another one for the new consumers with --group"
        )
    if plan.from_store is not None and same_store(config.store.url, plan.from_store):
        raise ConfigError(f"{plan.from_store} is the old store; name an empty one for the new consumers with --store")


@contextmanager
def _old_store(config: Config, url: str) -> Iterator[Store]:
    """Open the store of the old consumers for reading only."""
    old_config = config.model_copy(update={"store": config.store.model_copy(update={"url": url})})
    with stores.opened_store(old_config, readonly=True) as store:
        if store.settings() is None:
            raise StoreMismatch(f"{url} is empty, so it cannot be the store of the old consumers")
        yield store
