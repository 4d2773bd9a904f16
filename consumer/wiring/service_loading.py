"""Loads the parts of the HTTP service: lexicon, engine, store, sink, and the run that judges articles in its inbox.

Loading waits for a store that is out of reach.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeVar

from consumer.banks.known_texts import KnownTexts
from consumer.config.config import Config
from consumer.feeds.kinds import sink_of
from consumer.fingerprint import Engine, Lexicon
from consumer.judge.binding import Binding
from consumer.judge.detector import Detector
from consumer.judge.search import LOOK_UP_BYTES_MAX
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.lifecycle.background import StartUpCalls
from consumer.lifecycle.heap import settle_heap
from consumer.lifecycle.interruption import Drain, Interruption
from consumer.lifecycle.retry import StoreRetry
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.article import Article, Reason
from consumer.model.errors import BadRecord, ConfigError
from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord
from consumer.model.submission import submitted
from consumer.model.verdict import VerdictEvent
from consumer.pipeline.arrivals import SubmittedArrivals
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.feed_kind import Streams
from consumer.pipeline.group_interruption import ReportedDrain
from consumer.pipeline.journal import NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.service import context
from consumer.service.answering import AnsweringSink, RefusingSink
from consumer.service.inbox import Inbox
from consumer.store_tools.releases import Attribution
from consumer.telemetry.metrics import Build
from consumer.telemetry.store_probe import ANSWER_S_MAX, StoreProbe
from consumer.telemetry.trace_context import TracedFeed
from consumer.telemetry.tracing import traced
from consumer.wiring import components, stores
from consumer.wiring.banks import busy_items, followed_banks, matcher_of
from consumer.wiring.feeds import is_exactly_once, sink_opening
from consumer.wiring.page_server import build_of
from consumer.wiring.pipeline_factory import (
    Control,
    JudgingParts,
    PipelinePorts,
    build_pipeline,
    interruptible_detector,
    warming,
)
from consumer.wiring.release_run import FlagReleaser, SingleReleaser
from consumer.wiring.source_records import SourceRecords, VersionParts
from consumer.workers.engines import COMPILED, SerializedEngine
from consumer.workers.pool import Fingerprinting, InlineFingerprinting
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store

FEED: Final = "/v1/articles"
"""The name of the feed in events and dead letters."""
_Result = TypeVar("_Result")
_Release = Callable[[str, str | None, Attribution], VerdictEvent]


def build_sink(config: Config, streams: Streams, hooks: Hooks, proceed: Callable[[], None]) -> AnsweringSink:
    """Build the sink, which the caller closes. ``proceed`` is called during waits for brokers, and may raise.

    Raises ``ConfigError``, and ``SinkError`` if the sink cannot be written.
    """
    kind = sink_of(config.sink.url)
    if kind.has_transactions and is_exactly_once(config):
        raise ConfigError('dupwatch serve delivers verdicts at least once: set kafka.delivery = "at-least-once" for it')
    opening = replace(
        sink_opening(config, hooks, FEED), streams=streams, output_name="verdicts on requests", proceed=proceed
    )
    kind.check_remote(config.sink.url, opening)
    return AnsweringSink(kind.open(config.sink.url, opening).sink)


def build_requests_pipeline(
    config: Config, judging: JudgingParts, inbox: Inbox, sink: AnsweringSink, interruption: Interruption, hooks: Hooks
) -> Pipeline:
    """Build the pipeline that judges the articles in the inbox until the inbox is closed and empty.

    The pipeline waits for its store as long as ``interruption`` allows.
    """
    return build_pipeline(
        config,
        judging,
        PipelinePorts(
            source=inbox,
            decode=partial(_decode, decode=components.file_decoder(config)),
            arrivals=SubmittedArrivals(now_ms),
            sink=sink,
            dead_letters=DeadLetterPolicy(FEED, RefusingSink(sink.replies)),
            journal=NoJournal(),
            reply=sink.replies.send,
        ),
        # Signals close the inbox, so that its articles are finished.
        Control(StopSignal(interrupts=False), interruption, StoreRetry(interruption.while_judging, hooks)),
        hooks,
    )


def _decode(record: RawRecord, decode: Callable[[RawRecord], Article]) -> Article:
    """Decode a record. Raises ``BadRecord``; only a retraction may have no body."""
    retraction = submitted(record).retraction
    if retraction is not None:
        return Article(retraction.article_id, None)
    try:
        article = decode(record)
    except BadRecord as error:
        if error.reason != Reason.MISSING_BODY:
            raise
        raise _missing_body() from error
    if article.body is None:
        raise _missing_body()
    return article


def _missing_body() -> BadRecord:
    return BadRecord(Reason.MISSING_BODY, "the article has no body; DELETE /v1/articles/{id} retracts one")


class ServiceParts(NamedTuple):
    """The loaded service, the pipeline of its articles, and their build information and tallies for metrics."""

    judging: context.LoadedService
    pipeline: Pipeline
    build: Build
    tallies: tuple[Tally, ...]


class ServiceLoader:
    """A loader of the service, to be used once. ``resources`` releases the parts; ``stopping`` ends work early."""

    def __init__(
        self,
        config: Config,
        streams: Streams,
        inbox: Inbox,
        hooks: Hooks,
        stopping: StopSignal,
        resources: ExitStack,
    ) -> None:
        self._config = config
        self._streams = streams
        self._inbox = inbox
        self._hooks = hooks
        self._progress = ThreadProgress(hooks)
        self._starting = StartUpCalls(stopping, self._progress)
        self._interruption = ReportedDrain(self._progress, Drain(stopping, config.service.drain_s))
        self._resources = resources

    def load(self) -> ServiceParts:
        """Load the service, and report progress.

        Raises ``StoppedBeforeStart`` if the service is stopped in the meantime, and ``Fatal`` and the store's errors.
        """
        with self._progress.at_work():
            return self._load()

    def _load(self) -> ServiceParts:
        lexicon = components.lexicon_of(self._config)
        # Faults of the configuration itself are reported before any wait for the store.
        components.judge_settings(self._config, lexicon)
        sink = self._starting.call(self._open_sink)
        config = self._when_reachable(partial(stores.completed_config, self._config))
        settings = components.judge_settings(config, lexicon)
        store, bound = self._when_reachable(partial(self._open_store, config, settings))
        chosen = components.engine_choice(config, settings, lexicon)
        known = self._resources.enter_context(followed_banks(config, bound, lexicon, self._hooks, self._starting))
        engine = components.engine(config, bound, lexicon, known=known)
        if chosen.name != COMPILED:
            engine = SerializedEngine(engine)
        # The first text takes longer, because words are loaded.
        engine.fingerprint([""], [""])
        self._resources.enter_context(traced(config.tracing, TracedFeed("http"), self._hooks))
        common = components.common_hashes(config)
        self._resources.enter_context(warming(store, common))
        self._resources.enter_context(StoreProbe(_probe_opener(config, store), self._hooks))
        query_detector = Detector(
            store,
            settings,
            now_ms,
            look_up_bytes_max=LOOK_UP_BYTES_MAX // config.service.threads,
            seen_ms=config.seen_s * MS_PER_S,
            common=common,
            with_bank_matches=matcher_of(known),
        )
        fingerprinting = self._fingerprinting(config, bound, lexicon, engine, known)
        judging_store = self._judging_store(config, settings, store)
        judge = interruptible_detector(judging_store, settings, self._interruption, config, common=common, known=known)
        builder = components.version_builder(bound)
        records = SourceRecords(config, build=lambda: VersionParts(components.message_decoder(config), engine, builder))
        self._resources.callback(records.close)
        judging = context.LoadedService(
            store=store,
            settings=settings,
            lexicon=lexicon,
            fields=components.field_map(config),
            limits=components.decode_limits(config),
            body_form=components.body_form(config),
            engine=engine,
            builder=builder,
            query=query_detector.query,
            release=self._with_rest(SingleReleaser(FlagReleaser(store, sink, now_ms), records).release),
            clock=now_ms,
            is_remote=stores.is_remote(config),
        )
        pipeline = build_requests_pipeline(
            config,
            JudgingParts(bound, fingerprinting, judge, busy_items=busy_items(config, known, self._hooks)),
            self._inbox,
            sink,
            self._interruption,
            self._hooks,
        )
        # This reports a wrong clock now, not when the first article comes.
        pipeline.expiry.begin()
        settle_heap()
        return ServiceParts(judging, pipeline, build_of(settings, chosen.name), (query_detector.tally, judge.tally))

    def _with_rest(self, release: _Release) -> _Release:
        """Wrap ``release`` to report its thread as idle afterwards, because a wait for brokers reports progress."""

        def release_and_rest(article_id: str, version: str | None, attribution: Attribution) -> VerdictEvent:
            try:
                return release(article_id, version, attribution)
            finally:
                self._progress.report_idle()

        return release_and_rest

    def _open_sink(self) -> AnsweringSink:
        sink = build_sink(self._config, self._streams, self._hooks, self._interruption.while_judging)
        self._resources.callback(sink.close)
        return sink

    def _fingerprinting(
        self, config: Config, bound: Binding, lexicon: Lexicon, engine: Engine, known: KnownTexts | None
    ) -> Fingerprinting:
        """Build the fingerprinting of submitted articles: with the engine of checks, unless there are workers."""
        if not config.workers:
            return InlineFingerprinting(engine, self._interruption.while_preparing)
        fingerprinting = components.fingerprinting(config, bound, lexicon, self._interruption, self._hooks, known)
        self._resources.callback(fingerprinting.close)
        return fingerprinting

    def _judging_store(self, config: Config, settings: JudgeSettings, store: Store) -> Store:
        """Return the store for judging submitted articles.

        A remote store is opened again without the time limit of checks: a check needs a quick answer, but a batch is
        repeated until it is stored.
        """
        return (
            self._when_reachable(partial(self._open_store, config, settings, quick=False))[0]
            if stores.is_remote(config)
            else store
        )

    def _when_reachable(self, work: Callable[[], _Result]) -> _Result:
        """Make a call to the store, repeatedly while it is out of reach, until the service is stopped."""
        return StoreRetry(self._starting.proceed, self._hooks).call(partial(self._starting.call, work))

    def _open_store(self, config: Config, settings: JudgeSettings, *, quick: bool = True) -> tuple[Store, Binding]:
        answer_s = config.service.store_s if quick and stores.is_remote(config) else None
        with ExitStack() as opened:
            store = opened.enter_context(
                stores.opened_store(config, report=self._hooks.report, quiet=True, answer_s=answer_s)
            )
            bound = stores.bind(store, settings, config)
            self._resources.push(opened.pop_all())
        return store, bound


def _probe_opener(config: Config, store: Store) -> Callable[[], AbstractContextManager[Store]]:
    """Return the function that opens the store for a probe: a remote store with a connection of its own."""
    if stores.is_remote(config):
        return partial(stores.opened_store, config, readonly=True, quiet=True, answer_s=ANSWER_S_MAX)
    return lambda: nullcontext(store)
