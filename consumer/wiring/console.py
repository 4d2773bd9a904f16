"""Builds the moderators' console: pages, the intake of flags, and the sender of releases."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from consumer.banks.bank_log import BankLog
from consumer.config.config import Config
from consumer.config.sections.console import ConsoleSection
from consumer.console.app import build_console
from consumer.console.bank_access import BankAccess
from consumer.console.context import ConsoleContext
from consumer.console.intake.background import BackgroundWork, WorkSchedule
from consumer.console.intake.event_sending import (
    EVENTS_THREAD,
    EventSender,
    EventSenderParts,
    OutboxRoom,
    enforce_limits,
)
from consumer.console.intake.indexing import IndexerDependencies, index_background
from consumer.console.intake.intake import ConsoleStopped, Intake, IntakeParts, count_queue
from consumer.console.intake.rank_updates import RankUpdates
from consumer.console.intake.sending import ReleaseSender, ReleaseSenderParts
from consumer.console.intake.setup_checks import CHECK_S, SetupChecks
from consumer.console.intake.store_reading import fill_in_sources
from consumer.console.intake.webhook_sender import WebhookParts, count_webhooks, webhook_background
from consumer.console.pages.review_evaluation import cached_evaluation
from consumer.console.probes import Probes
from consumer.console.rendering import Rendering
from consumer.console.stored_matches import MatchSearch
from consumer.judge.settings import JudgeSettings
from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.lifecycle.background import StartUpCalls
from consumer.lifecycle.heap import periodic_trim
from consumer.lifecycle.retry import RetrySubject, RetryUntilReachable
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.hooks import Hooks, Outage
from consumer.reviews import people
from consumer.reviews.database import Database, DatabaseUnavailable
from consumer.reviews.word_index.words import WordCutter
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import ConsoleMetrics
from consumer.web.access import is_loopback, parse_address
from consumer.webhooks.courier import Courier
from consumer.wiring import components
from consumer.wiring.banks import opened_banks
from consumer.wiring.console_database import opened_reviews
from consumer.wiring.console_feed import FlagIntakeWork, Rebuild, check_sink, console_file, flag_feed, flag_sink
from consumer.wiring.console_releases import SinkReleases, event_sinks, unwritable_file
from consumer.wiring.console_side_topics import LOOK_S as TOPICS_S
from consumer.wiring.console_side_topics import SIDE_TOPICS, SideTopicAssigned, SideTopicWork
from consumer.wiring.console_store import (
    ComparableStores,
    SettingsCheck,
    StoreAccess,
    StoredArticleReader,
    completed_config,
    opened_stores,
    unwritable_path,
)
from consumer.wiring.feeds import is_followed
from consumer.wiring.listening_server import ListeningServer
from storage.clock import now_ms
from storage.errors import StoreUnavailable
from storage.interface import Store

log = logging.getLogger("dupwatch")

_HEARTBEAT_MAX_S: Final = 300.0
"""A thread without progress for this long counts as hanging. Finding the record of a release may take minutes."""
_SEND_S: Final = 1.0
_LOOK_S: Final = 1.0
"""The pause before a file is checked again for new verdicts."""
_COUNT_S: Final = 5.0
_FILL_S: Final = 5.0
_PROBE_S: Final = 3.0
_RANKS_S: Final = 1.0
_UNREADY_PREFIXES: Final = ("database: ", "run: ")
"""Reasons with these prefixes make pages useless. Pages need no brokers or store: the queue is in the database."""


class ConsoleResources(NamedTuple):
    """The open resources of a console.

    Pages use the store ``reads``. Releases and rebuilds use ``writes``, which may take longer. ``check_settings``
    raises ``StoreMismatch`` for a store with other settings. ``unwritable`` returns a path that this process may not
    write although releases need it, or None. ``banks`` is None if none are configured, and ``cutter`` is None if words
    are not indexed. ``is_demo`` means that the brokers are a mock cluster, which cannot find offsets by time.
    """

    config: Config
    judging: JudgeSettings
    database: Database
    reads: StoreAccess
    writes: StoreAccess
    check_settings: Callable[[Store], None]
    unwritable: Callable[[], Path | None]
    hooks: Hooks
    banks: BankLog | None
    cutter: WordCutter | None
    is_demo: bool = False


class Demo(NamedTuple):
    """The demo behind a console: its store, and the name of the person that every visitor acts as."""

    store: Store
    person: str


class ConsoleServer(ListeningServer):
    """A listening console. With ``fixed_person``, nobody signs in, and every visitor acts as that person."""

    def __init__(self, opened: ConsoleResources, fixed_person: str | None, rebuild: Rebuild | None) -> None:
        section, hooks = opened.config.console, opened.hooks
        self._opened = opened
        self._rebuild = rebuild
        metrics = ConsoleMetrics(reads_topics=is_followed(opened.config))
        health = Health(_HEARTBEAT_MAX_S, grouped=False)
        for listener in (metrics, health):
            listener.listen(hooks)
        super().__init__("console", section, hooks, health, needs_token=True)
        self._articles = StoredArticleReader(opened.reads)
        self._evaluation = cached_evaluation(opened.database, opened.judging, now_ms)
        self._banks = None if opened.banks is None else BankAccess(opened.banks, section)
        self._checks = SetupChecks(
            opened.database,
            self._articles,
            flag_sink(opened.config),
            opened.config.store.url,
            unwritable=opened.unwritable,
        )
        hooks.on(Outage, self._checks.note_outage)
        self._courier = Courier(section.webhooks.networks, allows_http=section.webhooks.http)
        context = ConsoleContext(
            opened.database,
            section,
            self._articles,
            opened.reads,
            MatchSearch(ComparableStores(opened.config, opened.reads), now_ms),
            Rendering(),
            now_ms,
            hooks,
            opened.judging,
            self._evaluation,
            self._banks,
            self._checks.warnings,
            opened.cutter,
            has_topics=is_followed(opened.config),
            courier=self._courier,
        )
        probes = Probes(self._unready_reasons, metrics.registry, health.hanging_threads, self._limitations)
        is_tls = self._tls is not None
        self._prepare(build_console(context, self._workers, probes, is_tls=is_tls, fixed_person=fixed_person))

    def run(self) -> None:
        """Answer requests, take in flags and send releases until the console is stopped."""
        try:
            with ExitStack() as running:
                for work in self._background_work(running):
                    running.enter_context(work)
                self._serve()
        finally:
            self._workers.close()
            if self._banks is not None:
                self._banks.close()
            if self._evaluation is not None:
                self._evaluation.close()

    def _background_work(self, running: ExitStack) -> list[BackgroundWork]:
        """Return the console's background work."""
        config, database, hooks = self._opened.config, self._opened.database, self._opened.hooks
        progress, stopping = ThreadProgress(hooks), threading.Event()

        def proceed() -> None:
            progress.report()
            if stopping.is_set():
                raise ConsoleStopped

        release_sink, event_sink = event_sinks(config, hooks, proceed)
        releases = SinkReleases(
            config, self._opened.writes, now_ms, release_sink, proceed, has_times=not self._opened.is_demo
        )
        # Registered before the sending thread starts, so that releases are closed after that thread has ended.
        running.callback(releases.close)
        sender = ReleaseSender(ReleaseSenderParts(database, releases, now_ms, hooks, self._opened.unwritable))
        sending = BackgroundWork("sending", sender.work, WorkSchedule(_SEND_S, "sink"), hooks, stopping)
        room = OutboxRoom(config.console.outbox_events_max)
        parts = EventSenderParts(database, event_sink, room, now_ms, hooks, partial(unwritable_file, config))
        events_sender = EventSender(parts)
        # Registered before the events thread starts, so that both are closed when no message is being sent.
        running.callback(events_sender.close)
        running.callback(event_sink.close)
        events = BackgroundWork(EVENTS_THREAD, events_sender.work, WorkSchedule(_SEND_S, "sink"), hooks, stopping)
        intake_parts = IntakeParts(database, config.console, now_ms, hooks, events.wake, room.has_room)
        feed = flag_feed(config, database, hooks, stopping.is_set)
        # A file has no separate topics, so its verdicts are the source of all kinds of entries.
        flags = Intake(intake_parts, stopping, takes_all=not is_followed(config))
        flag_work = FlagIntakeWork(feed, flags, self._opened.writes, hooks, self._rebuild)

        @progress.at_work()
        def fill() -> bool:
            return fill_in_sources(intake_parts, self._articles)

        @progress.at_work()
        def count() -> bool:
            enforce_limits(database, room, now_ms(), hooks.report)
            count_webhooks(database, now_ms(), hooks.report)
            return count_queue(database, now_ms(), hooks.report)

        @progress.at_work()
        def probe() -> bool:
            self._opened.check_settings(self._opened.reads())
            self._checks.check_store()
            return False

        webhooks = WebhookParts(database, self._courier, now_ms, hooks)
        indexing = IndexerDependencies(database, self._articles, self._opened.cutter, now_ms, proceed)
        ranking = progress.at_work()(RankUpdates(database, config.console.authority, now_ms, room.has_room).work)
        intake = BackgroundWork("intake", flag_work.work, WorkSchedule(_LOOK_S, "source"), hooks, stopping)
        # Reading a topic does not return while it succeeds, so an assignment of partitions marks the end of an outage.
        hooks.on(PartitionsRebalanced, lambda _: intake.report_recovery())
        return [
            sending,
            events,
            webhook_background(webhooks, stopping, running),
            intake,
            *self._side_topic_work(stopping),
            BackgroundWork("sources", fill, WorkSchedule(_FILL_S, "store"), hooks, stopping),
            BackgroundWork("ranks", ranking, WorkSchedule(_RANKS_S, "database"), hooks, stopping),
            BackgroundWork("counting", count, WorkSchedule(_COUNT_S, "database"), hooks, stopping),
            BackgroundWork("store", probe, WorkSchedule(_PROBE_S, "store"), hooks, stopping),
            *self._bank_work(progress, stopping),
            *self._topic_check(stopping),
            index_background(indexing, progress, hooks, stopping),
        ]

    def _side_topic_work(self, stopping: threading.Event) -> Iterator[BackgroundWork]:
        """Yield the intake of entries other than flags, if the sink is topics."""
        config, database, hooks = self._opened.config, self._opened.database, self._opened.hooks
        backgrounds: dict[str, BackgroundWork] = {}
        for side in SIDE_TOPICS if is_followed(config) else ():
            topic_work = SideTopicWork(side, config, database, hooks, stopping, again=self._rebuild == "sink")
            schedule = WorkSchedule(TOPICS_S, "source")
            backgrounds[side.thread] = BackgroundWork(side.thread, topic_work.work, schedule, hooks, stopping)
        hooks.on(SideTopicAssigned, lambda assigned: backgrounds[assigned.thread].report_recovery())
        yield from backgrounds.values()

    def _bank_work(self, progress: ThreadProgress, stopping: threading.Event) -> Iterator[BackgroundWork]:
        """Yield the work that keeps the shown banks up to date, if any are configured."""
        banks = self._banks
        if banks is None:
            return

        def follow() -> bool:
            with progress.at_work():
                banks.follow()
            return False

        yield BackgroundWork("banks", follow, WorkSchedule(_PROBE_S, "banks"), self._opened.hooks, stopping)

    def _topic_check(self, stopping: threading.Event) -> Iterator[BackgroundWork]:
        """Yield the check that warns if the database lacks flags of the topic, but not in a demo or a rebuild."""
        if self._rebuild is None and not self._opened.is_demo:
            check, hooks = self._checks.check_topic, self._opened.hooks
            yield BackgroundWork("topic-check", check, WorkSchedule(CHECK_S, "source"), hooks, stopping)

    def _unready_reasons(self) -> list[str]:
        return [reason for reason in self._health.unready_reasons() if reason.startswith(_UNREADY_PREFIXES)]

    def _limitations(self) -> list[str]:
        path = self._opened.unwritable()
        waiting = [] if path is None else [f"releases: they wait, since this user may not write {path}"]
        return waiting + [
            reason for reason in self._health.unready_reasons() if not reason.startswith(_UNREADY_PREFIXES)
        ]


@contextmanager
def prepared_console(
    config: Config,
    hooks: Hooks,
    stopping: StopSignal,
    *,
    demo: Demo | None = None,
    rebuild: Rebuild | None = None,
) -> Iterator[ConsoleServer]:
    """Yield a console that listens at the configured address, and release its resources afterwards.

    Waits for the database. Raises ``ConfigError``, ``StoreError``, ``StoreMismatch`` if the store was made with other
    settings, and ``StoppedBeforeStart`` if it is stopped during the wait.
    """
    store, fixed_person = (None, None) if demo is None else demo
    check_sink(config)
    with ExitStack() as resources:
        resources.enter_context(periodic_trim())
        if store is None:
            config = completed_config(config)
        lexicon = components.lexicon_of(config)
        judging = components.judge_settings(config, lexicon)
        database = _wait_for_database(config.console, StartUpCalls(stopping, ThreadProgress(Hooks())))
        resources.callback(database.close)
        reads, writes, store_part = opened_stores(config, hooks, store, resources)
        check = SettingsCheck(config, lexicon)
        # A store that is not available yet is checked later.
        with suppress(StoreUnavailable):
            check(reads())
        unwritable = partial(unwritable_path, store_part, console_file(config))
        banks = None if config.banks.url is None else resources.enter_context(opened_banks(config))
        cutter = components.word_cutter(lexicon) if config.console.search else None
        opened = ConsoleResources(
            config, judging, database, reads, writes, check, unwritable, hooks, banks, cutter, is_demo=demo is not None
        )
        server = ConsoleServer(opened, fixed_person, rebuild)
        resources.callback(server.close)
        if fixed_person is None:
            _warn_about_access(config.console, database)
        if (path := unwritable()) is not None:
            log.warning("This user may not write %s, so releases wait: allow it, and restart the console", path)
        yield server


def _wait_for_database(section: ConsoleSection, starting: StartUpCalls) -> Database:
    database = RetrySubject("database", "start", DatabaseUnavailable, "The console's database")
    # Without hooks, because no pages or metrics show outages yet.
    return RetryUntilReachable(starting.proceed, Hooks(), database).call(
        partial(starting.call, partial(opened_reviews, section))
    )


def _warn_about_access(section: ConsoleSection, database: Database) -> None:
    """Warn if nobody can sign in, or passwords may be sent unencrypted."""
    if not section.proxy_header:
        with database.read_connection() as connection:
            if not people.people(connection):
                log.warning("Nobody can sign in yet: add a person with dupwatch people add NAME --role admin")
    if not (section.tls_certificate or section.proxy_addresses or is_loopback(parse_address(section.listen))):
        log.warning(
            "Passwords may cross the network unencrypted: set console.tls_certificate, or put a proxy that ends TLS "
            "in front"
        )
