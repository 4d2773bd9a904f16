"""The HTTP service, built and wired: it listens at once, and answers once words and store are loaded."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from consumer.config.config import Config
from consumer.config.sections.serve import ServiceSection
from consumer.lifecycle.heap_trim import trimming
from consumer.lifecycle.starting import Starting
from consumer.lifecycle.stopping import Stopping
from consumer.lifecycle.turns import Turns
from consumer.model.errors import NotBegun
from consumer.model.hooks import Hooks
from consumer.pages.access import Access
from consumer.service.app import build_app
from consumer.service.checking import Checks
from consumer.service.connections import Connections
from consumer.service.desk import Desk
from consumer.service.probes import open_routes
from consumer.service.receiving import Receiving
from consumer.service.routes import reading_routes
from consumer.service.server import Server, listening_socket, url_of
from consumer.service.workers import Workers
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import ServiceMetrics
from consumer.wiring.service_access import ServiceAccess
from consumer.wiring.service_loading import Loaded, Loading


class Service:
    """A service that listens, and is loaded while it runs. ``close`` stops listening."""

    def __init__(self, section: ServiceSection, hooks: Hooks, load: Callable[[], Loaded]) -> None:
        self._load = load
        self._error: Exception | None = None
        self._metrics, self._health = ServiceMetrics(), Health(grouped=False)
        for listener in (self._metrics, self._health):
            listener.listen(hooks)
        self._access = ServiceAccess(section, hooks.report)
        self._listening = listening_socket(section.listen, needs_token=self._access.entrance.needs_token)
        self._workers = Workers(section.threads, section.requests_max, section.answer_s)
        receiving = Receiving(section.body_bytes_max, section.received_bytes_max, section.receive_s)
        self._desk = Desk(self._workers, receiving, self._health)
        checks = Checks(section.articles_max, hooks.report)
        routers = open_routes(self._desk, self._metrics), reading_routes(self._desk, checks)
        app = build_app(routers, Access(names=section.names), self._access.entrance, hooks)
        connections = Connections(section.connections_max, section.receive_s, hooks.report)
        self._server = Server(app, connections, section.drain_s, self._access.tls)

    @property
    def url(self) -> str:
        """Where it listens."""
        return url_of(self._listening, is_secure=self._access.tls is not None)

    def run(self) -> None:
        """Answer requests until it is stopped; raise what keeps it from being loaded."""
        loading = threading.Thread(target=self._open, name="loading", daemon=True)
        loading.start()
        try:
            with self._access.followed():
                self._server.run([self._listening])
        finally:
            # Before the store is closed, nobody may use it any more.
            self._workers.close()
            loading.join()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Answer what is in hand, and end; called when a signal asks to stop, by another thread."""
        self._health.note_stopping()
        self._server.stop()

    def close(self) -> None:
        """Stop listening. Closing again does nothing."""
        self._listening.close()

    def _open(self) -> None:
        try:
            loaded = self._load()
        except NotBegun:
            # It was asked to stop: nothing failed.
            return
        except Exception as error:  # noqa: BLE001  # raised again by run()
            self._error = error
            self._server.stop()
            return
        self._metrics.show_build(loaded.build)
        self._metrics.watch(loaded.tally)
        self._desk.open(loaded.judging)


@contextmanager
def prepared_service(config: Config, hooks: Hooks, stopping: Stopping) -> Iterator[Service]:
    """Listen where the configuration says, and release everything afterwards. Raises ``ConfigError``."""
    with ExitStack() as resources:
        resources.enter_context(trimming())
        loading = Loading(config, hooks, Starting(stopping, Turns(Hooks())), resources)
        service = Service(config.service, hooks, loading.loaded)
        resources.callback(service.close)
        yield service
