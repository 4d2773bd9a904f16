"""Where requests get what they are answered with: nothing before the service is loaded, or while the store is away."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request

from consumer.decode.article import FieldMap
from consumer.fingerprint import Engine, Lexicon
from consumer.judge.judge import QueryResult
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from consumer.model.article import BodyForm
from consumer.model.errors import StoreMismatch
from consumer.model.limits import DecodeLimits
from consumer.model.verdict import VerdictEvent
from consumer.service.problems import NOT_READY, STARTING
from consumer.service.receiving import BodyReceiver
from consumer.store_tools.releases import Attribution
from consumer.telemetry.health import Health
from consumer.web.problems import STORE, retry_later
from consumer.web.request_threads import RETRY_S, Workers
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Version

log = logging.getLogger("dupwatch")

STORE_RETRY_S = 5
"""When a client should try again while the store is away."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class LoadedService:
    """All of it. Any thread may use it; ``clock`` gives milliseconds since 1970.

    ``release`` undoes the flag of an article, in the version that is named or the latest, and returns the event once
    the sink has it. It raises ``ConfigError`` where it cannot, and ``SinkError``.
    """

    store: Store
    settings: JudgeSettings
    lexicon: Lexicon
    fields: FieldMap
    limits: DecodeLimits
    body_form: BodyForm
    engine: Engine
    builder: VersionBuilder
    query: Callable[[Sequence[Version]], list[QueryResult]]
    release: Callable[[str, str | None, Attribution], VerdictEvent]
    clock: Callable[[], int]
    is_remote: bool


class ServiceContext:
    """What all routes share: the loaded service, its threads, the bodies that arrive, and its health."""

    def __init__(self, workers: Workers, receiving: BodyReceiver, health: Health) -> None:
        self.receiving = receiving
        self._workers = workers
        self._health = health
        self._judging: LoadedService | None = None
        self._lock = threading.Lock()
        self._is_away = False

    def open(self, judging: LoadedService) -> None:
        """Answer from now on with this."""
        self._judging = judging

    def why_not_ready(self) -> list[str]:
        """Return why requests cannot be answered; nothing if they can."""
        starting = ["run: starting"] if self._judging is None else []
        return starting + self._health.why_not_ready()

    def check_ready(self) -> None:
        """Raise ``ProblemError`` where nothing can be stored now: it would wait, and keep room from others."""
        if self._judging is not None and self._health.why_not_ready():
            raise retry_later(
                NOT_READY,
                "Store or sink do not answer, or the service ends; /readyz says which. Try again after the seconds in "
                "Retry-After.",
                STORE_RETRY_S,
            )

    async def ask(self, request: Request, work: Callable[[LoadedService], _Answer]) -> _Answer:
        """Run ``work`` in a thread and return its result.

        Raises ``ProblemError`` where the service is not loaded, has no thread, or its store does not answer.
        """
        judging = self._judging
        if judging is None:
            raise retry_later(
                STARTING, "Dictionary and store are being opened. Try again after the seconds in Retry-After.", RETRY_S
            )
        # While it is worked on, its connection is not closed in favour of another one.
        request.state.connection_is_needed = True
        return await self._workers.call(lambda: self._answered(judging, work))

    def _answered(self, judging: LoadedService, work: Callable[[LoadedService], _Answer]) -> _Answer:
        try:
            answer = work(judging)
        except (StoreError, StoreMismatch) as error:
            self._note(str(error))
            raise retry_later(
                STORE, "The store does not answer. Try again after the seconds in Retry-After.", STORE_RETRY_S
            ) from error
        self._note(None)
        return answer

    def _note(self, why: str | None) -> None:
        """Log where it changes whether the store answers. What asks it all the time says so to ``Health``."""
        with self._lock:
            changes = self._is_away != (why is not None)
            self._is_away = why is not None
            if changes and why is not None:
                log.warning("The store does not answer: %s", why)
            elif changes:
                log.warning("The store answers again.")
