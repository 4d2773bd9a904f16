"""The configured source and sink: their arguments, their settings, and the check that they fit together."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from consumer.config.config import Config
from consumer.feeds.kinds import pair_fault, sink_of, source_of
from consumer.kafka.client_settings import SourceOptions, TopicsOptions
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.model.letter import LetterReader
from consumer.pipeline.dead_letter_policy import PoisonLimit
from consumer.pipeline.feed_kind import SinkArguments, SourceAdapter, SourceArguments
from consumer.wiring import components
from storage.clock import MS_PER_S
from storage.kinds import kind_of


def source_side(config: Config) -> SourceAdapter:
    """Return the adapter of the configured source."""
    return source_of(config.source.url)


def is_followed(config: Config) -> bool:
    """Return whether readers of the configured sink get releases and near misses from it."""
    return sink_of(config.sink.url).is_followed


def source_opening(config: Config, hooks: Hooks | None = None, stopped: Callable[[], bool] = bool) -> SourceArguments:
    """Return the configured arguments for a source of any kind, without those that only a run knows."""
    return SourceArguments(
        hooks=hooks or Hooks(),
        own=(topics_options(config),),
        limits=components.read_limits(config),
        stopped=stopped,
    )


def sink_opening(config: Config, hooks: Hooks | None = None, feed: str = "") -> SinkArguments:
    """Return the configured arguments for a sink of any kind, without those that only a run knows."""
    return SinkArguments(
        hooks=hooks or Hooks(),
        own=(topics_options(config),),
        feed=feed,
        emit=config.sink.emit,
        writing=components.write_options(config),
        store=kind_of(config.store.url).on_disk(config.store.url),
    )


def topics_options(config: Config) -> TopicsOptions:
    """Return the options that only topics have."""
    section = config.kafka
    return TopicsOptions(
        clients=components.kafka_options(config),
        reading=SourceOptions(
            start=section.start,
            on_gap=section.on_gap,
            linger_s=section.linger_s,
            revoke_s=section.revoke_s,
            transactional=is_exactly_once(config),
        ),
        drain_s=section.drain_s,
        grace_s=section.grace_s,
        ahead_ms_max=int(section.ahead_s_max * MS_PER_S),
        behind_ms_max=int(section.behind_s_max * MS_PER_S),
        limit=PoisonLimit(section.poison_share_max, section.poison_records_min),
        unique=section.unique,
        near_misses=section.near_miss_share > 0,
        bank_matches=config.banks.url is not None,
        cloud_events=section.events == "cloudevents",
    )


def is_exactly_once(config: Config) -> bool:
    """Return whether the positions of the source are committed together with the sink's output."""
    return config.kafka.delivery == "exactly-once"


def check_pair(config: Config) -> None:
    """Raise ``ConfigError`` for a source and a sink that cannot be used together."""
    fault = pair_fault(config.source.url, config.sink.url, exactly_once=is_exactly_once(config))
    if fault is not None:
        raise ConfigError(fault)


def check_settings(config: Config, *, create: bool = True) -> None:
    """Raise ``ConfigError`` for settings that the source or the sink, or with ``create`` their clients, would refuse.

    Clients are created and closed without contacting a server. Without ``create`` only settings that dupwatch itself
    refuses are found, and the files that settings name are not read.
    """
    source_side(config).check(config.source.url, source_opening(config), create=create)
    sink_of(config.sink.url).check(config.sink.url, sink_opening(config), create=create)


def open_letters(config: Config) -> AbstractContextManager[LetterReader]:
    """Open the dead letters of the configured sink, or the file of letters that ``sink.url`` names.

    Raises ``ConfigError`` if the letters of this kind of sink cannot be read back.
    """
    return sink_of(config.sink.url).letters(config.sink.url, sink_opening(config))
