"""Loads what the HTTP service answers with: words, engine and store. It waits for a store that is out of reach."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from typing import NamedTuple, TypeVar

from consumer.config.config import Config
from consumer.judge.detector import Detector
from consumer.judge.search import LOOK_UP_BYTES_MAX
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.lifecycle.retry import UntilStoreReachable
from consumer.lifecycle.starting import Starting
from consumer.model.hooks import Hooks
from consumer.service.judging import Judging
from consumer.telemetry.metrics import Build
from consumer.telemetry.store_probe import ANSWER_S, StoreProbe
from consumer.telemetry.tracing import traced
from consumer.wiring import parts, stores
from consumer.wiring.common_hashes import common_hashes, warming
from consumer.wiring.page_server import build_of
from consumer.workers.engines import COMPILED, InTurns
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store

_Result = TypeVar("_Result")


class Loaded(NamedTuple):
    """What the service answers with, and what its metrics show of it."""

    judging: Judging
    build: Build
    tally: Tally


class Loading:
    """Loads it once. What is opened is released with ``resources``."""

    def __init__(self, config: Config, hooks: Hooks, starting: Starting, resources: ExitStack) -> None:
        self._config = config
        self._hooks = hooks
        self._starting = starting
        self._resources = resources

    def loaded(self) -> Loaded:
        """Load it. Raises ``NotBegun`` where the service is stopped meanwhile, ``Fatal`` and the store's errors."""
        lexicon = parts.lexicon_of(self._config)
        # What is wrong with the configuration itself is said at once, whether the store answers or not.
        parts.judge_settings(self._config, lexicon)
        config = self._when_reachable(partial(stores.completed_config, self._config))
        settings = parts.judge_settings(config, lexicon)
        chosen = parts.engine_choice(config, settings, lexicon)
        engine = parts.engine(config, settings, lexicon)
        # The first text takes longer: words are loaded.
        engine.fingerprint([""], [""])
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
        self._resources.enter_context(StoreProbe(_probed(config, store), self._hooks))
        judging = Judging(
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
        return Loaded(judging, build_of(settings, chosen.name), detector.tally)

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


def _probed(config: Config, store: Store) -> Callable[[], AbstractContextManager[Store]]:
    """Return what opens the store for a probe: a connection of its own, or the store itself where it has none."""
    if stores.is_remote(config):
        return partial(stores.opened_store, config, readonly=True, quiet=True, answer_s=ANSWER_S)
    return lambda: nullcontext(store)
