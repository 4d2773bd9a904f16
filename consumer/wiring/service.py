"""The HTTP service, built and wired: it listens at once, and answers once words and store are loaded."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TypeVar

from consumer.config.config import Config
from consumer.judge.detector import Detector
from consumer.judge.search import LOOK_UP_BYTES_MAX
from consumer.judge.settings import JudgeSettings
from consumer.lifecycle.heap_trim import trimming
from consumer.lifecycle.retry import UntilStoreReachable
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
from consumer.service.judging import Judging
from consumer.service.receiving import Receiving
from consumer.service.server import Server, listening_socket, url_of
from consumer.service.workers import Workers
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import ServiceMetrics
from consumer.telemetry.store_probe import ANSWER_S, StoreProbe
from consumer.telemetry.tracing import traced
from consumer.wiring import parts, stores
from consumer.wiring.common_hashes import common_hashes, warming
from consumer.wiring.page_server import build_of
from consumer.workers.engines import COMPILED, InTurns
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store

_Result = TypeVar("_Result")


class Service:
    """A service that listens, and is loaded while it runs. What it holds is released by ``prepared_service``."""

    def __init__(self, config: Config, hooks: Hooks, stopping: Stopping, resources: ExitStack) -> None:
        section = config.service
        self._config = config
        self._hooks = hooks
        self._starting = Starting(stopping, Turns(Hooks()))
        self._resources = resources
        self._listening = resources.enter_context(listening_socket(section.listen))
        self._error: Exception | None = None
        self._metrics = ServiceMetrics()
        self._health = Health(grouped=False)
        for listener in (self._metrics, self._health):
            listener.listen(hooks)
        self._workers = Workers(section.threads, section.requests_max, section.answer_s, hooks.report)
        receiving = Receiving(section.body_bytes_max, section.received_bytes_max, section.receive_s, hooks.report)
        self._desk = Desk(self._workers, receiving, self._health)
        app = build_app(
            self._desk,
            Checks(section.articles_max, hooks.report),
            self._metrics,
            Access(names=section.names),
            hooks,
        )
        self._server = Server(
            app, Connections(section.connections_max, section.receive_s, hooks.report), section.drain_s
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return url_of(self._listening)

    def run(self) -> None:
        """Answer requests until it is stopped; raise what keeps it from being loaded."""
        loading = threading.Thread(target=self._load, name="loading", daemon=True)
        loading.start()
        try:
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

    def _load(self) -> None:
        try:
            self._desk.open(self._loaded())
        except NotBegun:
            # It was asked to stop: nothing failed.
            return
        except Exception as error:  # noqa: BLE001  # raised again by run()
            self._error = error
            self._server.stop()

    def _loaded(self) -> Judging:
        lexicon = parts.lexicon_of(self._config)
        # What is wrong with the configuration itself is said at once, whether the store answers or not.
        parts.judge_settings(self._config, lexicon)
        config = self._when_reachable(partial(stores.completed_config, self._config))
        settings = parts.judge_settings(config, lexicon)
        chosen = parts.engine_choice(config, settings, lexicon)
        engine = parts.engine(config, settings, lexicon)
        # The first text takes longer: words are loaded.
        engine.fingerprint([""], [""])
        self._metrics.show_build(build_of(settings, chosen.name))
        self._resources.enter_context(traced(config.tracing, "", self._hooks))
        store = self._when_reachable(partial(self._opened, config, settings))
        detector = Detector(
            store,
            settings,
            now_ms,
            look_up_bytes_max=LOOK_UP_BYTES_MAX // config.service.threads,
            seen_ms=config.seen_s * MS_PER_S,
            common=common_hashes(config),
        )
        self._resources.enter_context(warming(store, detector.common))
        self._metrics.watch(detector.tally)
        self._resources.enter_context(StoreProbe(_probed(config, store), self._hooks))
        return Judging(
            store=store,
            store_url=config.store.url,
            settings=settings,
            lexicon=lexicon,
            limits=parts.decode_limits(config),
            body_format=parts.body_form(config),
            engine=engine if chosen.name == COMPILED else InTurns(engine),
            builder=parts.version_builder(settings),
            query=detector.query,
            clock=now_ms,
            is_remote=stores.is_remote(config),
        )

    def _when_reachable(self, work: Callable[[], _Result]) -> _Result:
        """Make a call to the store, again and again while it is out of reach, until the service is stopped."""
        return UntilStoreReachable(self._starting.proceed, self._hooks).call(partial(self._starting.call, work))

    def _opened(self, config: Config, settings: JudgeSettings) -> Store:
        answer_s = config.service.store_s if stores.is_remote(config) else None
        with ExitStack() as opened:
            store = opened.enter_context(
                stores.opened_store(config, report=self._hooks.report, quiet=True, answer_s=answer_s)
            )
            stores.bind(store, settings)
            self._resources.push(opened.pop_all())
        return store


@contextmanager
def prepared_service(config: Config, hooks: Hooks, stopping: Stopping) -> Iterator[Service]:
    """Listen where the configuration says, and release everything afterwards. Raises ``ConfigError``."""
    with ExitStack() as resources:
        resources.enter_context(trimming())
        yield Service(config, hooks, stopping, resources)


def _probed(config: Config, store: Store) -> Callable[[], AbstractContextManager[Store]]:
    """Return what opens the store for a probe: a connection of its own, or the store itself where it has none."""
    if stores.is_remote(config):
        return partial(stores.opened_store, config, readonly=True, quiet=True, answer_s=ANSWER_S)
    return lambda: nullcontext(store)
