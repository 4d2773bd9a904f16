"""Builds a run over a source without an end, such as topics, which judges until it is stopped."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from consumer.config.config import Config
from consumer.decode.schemas.registry import waiting_for_registry
from consumer.feeds.kinds import sink_of, source_kind
from consumer.judge.binding import Binding
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.lifecycle.background import StartUpCalls
from consumer.lifecycle.heap import periodic_trim, settle_heap
from consumer.lifecycle.interruption import Drain
from consumer.lifecycle.retry import StoreRetry
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.hooks import Hooks
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.feed_kind import Outputs, Streams
from consumer.pipeline.group_interruption import GroupInterruption, ReportedDrain
from consumer.pipeline.loop import Pipeline
from consumer.pipeline.side_by_side import SideBySide
from consumer.pipeline.warm_up import ROUND_ARTICLES, RandomLookUps, warm_up
from consumer.telemetry.batch_log import BatchLog
from consumer.telemetry.flags_json import flag_pages
from consumer.telemetry.health import Health
from consumer.telemetry.health_pages import health_pages
from consumer.telemetry.latest_flags import LatestFlags
from consumer.telemetry.metrics import Metrics
from consumer.telemetry.store_probe import ANSWER_S_MAX, StoreProbe
from consumer.telemetry.trace_context import TracedFeed
from consumer.telemetry.tracing import traced
from consumer.web.requests import RequestFailed
from consumer.wiring import components, feeds, stores
from consumer.wiring.banks import busy_items, followed_banks
from consumer.wiring.page_server import build_of, consumer_metrics, serve_pages
from consumer.wiring.pipeline_factory import (
    Control,
    JudgingParts,
    PipelinePorts,
    build_pipeline,
    interruptible_detector,
    warming,
)
from consumer.workers.engines import ChosenEngine
from storage.clock import now_ms
from storage.interface import Store

log = logging.getLogger("dupwatch")


@dataclass(frozen=True, slots=True)
class LastingRun:
    """A run without an end that is ready to start, and the parts that can be inspected during it."""

    pipeline: Pipeline
    store: Store
    tally: Tally
    health: Health
    address: str | None
    engine: ChosenEngine


@contextmanager
def prepared_lasting_run(config: Config, streams: Streams, hooks: Hooks, stopping: StopSignal) -> Iterator[LastingRun]:
    """Build a run without an end from its configuration, and release its resources afterwards.

    The health pages are served first, so that they show waits for servers. ``hooks`` has the caller's listeners. Raises
    ``StoppedBeforeStart`` if the run is asked to stop while it still waits for its store or its brokers.
    """
    feeds.check_pair(config)
    feeds.check_settings(config, create=False)
    with ExitStack() as resources:
        resources.enter_context(periodic_trim())
        lexicon = components.lexicon_of(config)
        # Faults of the configuration itself are reported before any wait for the store.
        components.judge_settings(config, lexicon)
        components.record_decoder(config)
        progress, drain = ThreadProgress(hooks), Drain(stopping, config.kafka.drain_s)
        pages = _serve_pages(config, hooks, resources)
        starting = StartUpCalls(stopping, progress)
        retry = StoreRetry(starting.proceed, hooks)
        config = retry.call(partial(starting.call, partial(stores.completed_config, config)))
        settings = components.judge_settings(config, lexicon)
        decode = components.record_decoder(config, waiting_for_registry(hooks, stopping))
        chosen = components.engine_choice(config, settings, lexicon)
        pages.metrics.show_build(build_of(settings, chosen.name))

        source_opening = feeds.source_opening(config, hooks, stopping.requested)
        kind = feeds.source_side(config)
        starting.call(partial(kind.check_remote, config.source.url, source_opening))
        store, bound = resources.enter_context(_awaited_store(config, settings, starting, hooks))
        known = resources.enter_context(followed_banks(config, bound, lexicon, hooks, starting))
        # Workers are started before clients of Kafka, whose threads and sockets must not be inherited.
        fingerprinting = components.fingerprinting(config, bound, lexicon, ReportedDrain(progress, drain), hooks, known)
        resources.callback(fingerprinting.close)
        fingerprinting.submit([""], [""]).result()
        resources.enter_context(traced(config.tracing, traced_feed(config), hooks))
        opened = kind.open(config.source.url, source_opening)
        interruption = GroupInterruption(progress, drain, opened.check)
        pages.latest.read_from(store)
        resources.callback(pages.latest.close)
        # Closed in reverse order: the source after the sinks, when nothing is left to be committed.
        resources.callback(opened.source.close)
        outputs = _outputs(config, streams, opened.name, hooks, interruption, starting)
        resources.callback(outputs.dead_letters.close)
        resources.callback(outputs.verdicts.close)
        judges = stores.judges_max(config)
        side_by_side = SideBySide(judges, progress) if judges > 1 else None
        if side_by_side is not None:
            resources.callback(side_by_side.close)
        detector = interruptible_detector(store, settings, interruption, config, judges=judges, known=known)
        resources.enter_context(warming(store, detector.common))
        pages.metrics.watch(detector.tally)
        pipeline = build_pipeline(
            config,
            JudgingParts(bound, fingerprinting, detector, side_by_side, busy_items(config, known, hooks)),
            PipelinePorts(
                source=opened.source,
                decode=decode,
                arrivals=opened.arrivals,
                sink=outputs.verdicts,
                dead_letters=DeadLetterPolicy(config.source.url, outputs.dead_letters, opened.gate),
                journal=opened.journal(outputs),
            ),
            Control(stopping, interruption, StoreRetry(interruption.while_judging, hooks)),
            hooks,
        )
        _make_ready(config, store, settings, starting, hooks)
        # From here on the run only waits for records.
        progress.report_idle()
        yield LastingRun(pipeline, store, detector.tally, pages.health, pages.address, chosen)


def _outputs(
    config: Config, streams: Streams, feed: str, hooks: Hooks, interruption: GroupInterruption, starting: StartUpCalls
) -> Outputs:
    """Open the sinks, which the caller closes."""
    kind = sink_of(config.sink.url)
    opening = replace(
        feeds.sink_opening(config, hooks, feed),
        streams=streams,
        proceed=interruption.while_judging,
        transactional=feeds.is_exactly_once(config),
    )
    starting.call(partial(kind.check_remote, config.sink.url, opening))
    opened = kind.open(config.sink.url, opening)
    return Outputs(opened.sink, opened.dead_letters(), opened.transactions)


def _make_ready(config: Config, store: Store, settings: JudgeSettings, starting: StartUpCalls, hooks: Hooks) -> None:
    """Settle the heap, and warm up the store, waiting for it while it is out of reach."""
    settle_heap()
    articles, retry = RandomLookUps(store, settings), StoreRetry(starting.proceed, hooks)
    result = warm_up(lambda: retry.call(partial(starting.call, articles.look_up)), stores.warm_up_s(config))
    if result.rounds > 1:
        log.info(
            "Warmed up the store in %d rounds: looking up %d articles took %.2f s at first, and %.2f s at best",
            result.rounds,
            ROUND_ARTICLES,
            result.first_s,
            result.fastest_s,
        )


class _RunPages(NamedTuple):
    """The contents of a run's pages. ``address`` is their URL, or None if no pages are served."""

    metrics: Metrics
    health: Health
    latest: LatestFlags
    address: str | None


def _serve_pages(config: Config, hooks: Hooks, resources: ExitStack) -> _RunPages:
    """Build the listeners for the run's pages, and serve the pages."""
    metrics = consumer_metrics(config)
    health = Health(config.http.stuck_s, grouped=feeds.source_side(config).is_shared)
    request_failed = partial(hooks.report, RequestFailed())
    latest = LatestFlags(config.http.flags, now_ms(), request_failed)
    for listener in (metrics, health, latest, BatchLog()):
        listener.listen(hooks)
    served_pages = health_pages(health, metrics) | flag_pages(latest, config.http.console_url)
    return _RunPages(metrics, health, latest, serve_pages(config, resources, served_pages, hooks.report))


def traced_feed(config: Config) -> TracedFeed:
    """Return the configured source as spans name it, with its consumer group if it has one."""
    group = config.kafka.group if feeds.source_side(config).is_shared else None
    return TracedFeed(source_kind(config.source.url).name, group)


@contextmanager
def _awaited_store(
    config: Config, settings: JudgeSettings, starting: StartUpCalls, hooks: Hooks
) -> Iterator[tuple[Store, Binding]]:
    """Open the store and bind it, waiting while it is out of reach; probe a remote store during the run."""
    with ExitStack() as opened:
        if stores.is_remote(config):
            probed = partial(stores.opened_store, config, readonly=True, quiet=True, answer_s=ANSWER_S_MAX)
            opened.enter_context(StoreProbe(probed, hooks))

        def open_and_bind() -> tuple[Store, Binding]:
            store = opened.enter_context(stores.opened_store(config, report=hooks.report))
            return store, stores.bind(store, settings, config)

        yield StoreRetry(starting.proceed, hooks).call(partial(starting.call, open_and_bind))
