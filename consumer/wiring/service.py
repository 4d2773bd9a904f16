"""Builds the HTTP service. It listens from the start, and judges once the lexicon and the store are loaded."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple

from consumer.banks.bank_log import BankLog
from consumer.config.config import Config
from consumer.config.sections.service import ServiceSection
from consumer.lifecycle.background import PeriodicCheck
from consumer.lifecycle.heap import periodic_trim
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import Abandoned, StoppedBeforeStart
from consumer.model.hooks import Hooks
from consumer.pipeline.feed_kind import Streams
from consumer.service.access import TokenAuthentication
from consumer.service.bank_routes import bank_changing_routes, bank_reading_routes, item_routes
from consumer.service.bank_writing import BankWrites
from consumer.service.checking import CheckHandler
from consumer.service.context import ServiceContext
from consumer.service.inbox import Inbox, InboxLimits
from consumer.service.pages import describing_routes
from consumer.service.probes import open_routes
from consumer.service.receiving import BodyReceiver
from consumer.service.routes import build_app, reading_routes, writing_routes
from consumer.service.service_banks import ServiceBanks
from consumer.service.writing import Writes
from consumer.telemetry.health import HangLog, Health
from consumer.telemetry.metrics import Bounds, ServiceMetrics
from consumer.web.access import Access
from consumer.web.audit_log import AuditLog
from consumer.web.known_tokens import KnownTokens
from consumer.wiring import components
from consumer.wiring.audit import opened_audit_log
from consumer.wiring.banks import opened_banks
from consumer.wiring.listening_server import ListeningServer
from consumer.wiring.service_loading import ServiceLoader, ServiceParts

JUDGE: Final = "judging"
"""The name of the thread that loads the service, and then judges and stores articles."""


class Observers(NamedTuple):
    """The listeners of the service: its metrics and its health."""

    metrics: ServiceMetrics
    health: Health


class Logs(NamedTuple):
    """The logs that requests write to, in addition to the store; None for one that is not configured."""

    audit: AuditLog | None
    banks: BankLog | None


class Service(ListeningServer):
    """A listening service, which is loaded while it runs.

    One thread answers requests, several check articles, and one judges and stores articles.
    """

    def __init__(
        self,
        section: ServiceSection,
        inbox: Inbox,
        logs: Logs,
        observers: Observers,
        hooks: Hooks,
        load: Callable[[], ServiceParts],
    ) -> None:
        self._load = load
        self._inbox = inbox
        self._error: BaseException | None = None
        self._metrics, health = observers
        for listener in observers:
            listener.listen(hooks)
        self._tokens = None if section.tokens is None else KnownTokens(Path(section.tokens), hooks.report)
        authentication = TokenAuthentication(None if self._tokens is None else self._tokens.caller)
        super().__init__("service", section, hooks, health, needs_token=authentication.needs_token)
        receiving = BodyReceiver(section.body_bytes_max, section.received_bytes_max, section.receive_s)
        self._context = ServiceContext(self._workers, receiving, health)
        checks = CheckHandler(section.articles_max, hooks.report)
        writes = Writes(self._context, inbox, section, logs.audit, hooks.report)
        self._banks = ServiceBanks(logs.banks, section)
        bank_writes = BankWrites(self._context, self._banks, logs.audit)
        routers = (
            open_routes(self._context, HangLog(health.hanging_threads), self._metrics),
            describing_routes(),
            reading_routes(self._context, checks),
            writing_routes(self._context, writes),
            bank_reading_routes(self._banks, self._context),
            bank_changing_routes(receiving, bank_writes),
            item_routes(receiving, bank_writes),
        )
        self._prepare(build_app(routers, Access(names=section.names), authentication, hooks))

    def run(self) -> None:
        """Answer requests until the service is stopped. Raises the error that ended loading or judging."""
        judging = threading.Thread(target=self._load_and_judge, name=JUDGE, daemon=True)
        judging.start()
        try:
            with nullcontext() if self._tokens is None else PeriodicCheck("tokens", self._tokens.look):
                self._serve()
        finally:
            # Stop everything that uses the store and the sink, because they are closed next.
            self._workers.close()
            self._banks.close()
            self._inbox.close()
            judging.join()
        if self._error is not None:
            raise self._error

    def _load_and_judge(self) -> None:
        try:
            loaded = self._load()
            self._metrics.show_build(loaded.build)
            self._metrics.watch(*loaded.tallies)
            self._context.open(loaded.judging)
            loaded.pipeline.run()
        except (StoppedBeforeStart, Abandoned):
            # The service was asked to stop, or had no time left. Neither is a failure.
            pass
        except BaseException as error:  # noqa: BLE001  # raised again by run(); a panic of Rust is not an Exception
            self._error = error
            self._server.stop()
        finally:
            self._inbox.end()


@contextmanager
def prepared_service(config: Config, streams: Streams, hooks: Hooks, stopping: StopSignal) -> Iterator[Service]:
    """Open the service at the configured address, and release its resources afterwards.

    Raises ``ConfigError``, and ``SinkError`` if the audit log cannot be written.
    """
    with ExitStack() as resources:
        resources.enter_context(periodic_trim())
        section, read_limits = config.service, components.read_limits(config)
        limits = InboxLimits(section.inbox_records_max, section.inbox_bytes_max)
        inbox = Inbox(section.gather_s, limits, read_limits, hooks.report)
        observers = Observers(
            ServiceMetrics(bounds=Bounds(read_limits, config.http.sources_max, tuple(config.rules))),
            Health(config.http.stuck_s, grouped=False, judge=JUDGE),
        )
        loading = ServiceLoader(config, streams, inbox, hooks, stopping, resources)
        audit_log = resources.enter_context(opened_audit_log(config, hooks.report))
        banks = None if config.banks.url is None else resources.enter_context(opened_banks(config))
        service = Service(section, inbox, Logs(audit_log, banks), observers, hooks, loading.load)
        resources.callback(service.close)
        yield service
