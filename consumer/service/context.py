"""The context of requests: the loaded service, which is missing at first, and whose store may be out of reach."""

import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

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
from consumer.web.problems import STORE, ProblemError, retry_later
from consumer.web.request_threads import RETRY_S, JointCalls, Workers
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Version

log = logging.getLogger("dupwatch")

STORE_RETRY_S = 5
"""After how many seconds a client should retry while the store is out of reach."""
CHECK_BYTES_MAX: Final = 1 << 20
"""The maximum size of the bodies of checks that are answered together, unless a single one is larger."""

_STORE_ERRORS: Final = (StoreError, StoreMismatch)
_Answer = TypeVar("_Answer")
CheckAnswers = Callable[["LoadedService", Sequence[bytes]], Sequence[bytes | BaseException]]
"""Returns the answer to each of these bodies of checks, or the error to raise."""


@dataclass(frozen=True, slots=True)
class LoadedService:
    """The store, the judge and the engine, for any thread. ``clock`` returns milliseconds since 1970.

    ``release`` undoes the flag of an article, in the given version or the latest, and returns the event once the sink
    has it. It raises ``NotFlagged`` if there is no flag to undo, ``ConfigError`` if there is no such article or
    version, ``SinkError`` or ``Abandoned`` if the event may be missing, and the store's errors.
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
    """The state that all routes share: the loaded service, its threads, the receiver of bodies, and its health."""

    def __init__(self, workers: Workers, receiving: BodyReceiver, health: Health) -> None:
        self.receiving = receiving
        self._workers = workers
        self._health = health
        self._service: LoadedService | None = None
        self._lock = threading.Lock()
        self._is_away = False

    def open(self, service: LoadedService) -> None:
        """Start answering requests with this service."""
        self._service = service

    def unready_reasons(self) -> list[str]:
        """Return the reasons why requests cannot be answered; an empty list if they can."""
        starting = ["run: starting"] if self._service is None else []
        return starting + self._health.unready_reasons()

    def check_ready(self) -> None:
        """Raise ``ProblemError`` if the loaded service cannot store now. Requests would only wait and take up room."""
        if self._service is not None and self._health.unready_reasons():
            raise retry_later(
                NOT_READY,
                "The store or the sink does not answer, or the service is stopping; /readyz says which. Try again "
                "after the seconds in Retry-After.",
                STORE_RETRY_S,
            )

    async def ask(self, request: Request, work: Callable[[LoadedService], _Answer]) -> _Answer:
        """Run ``work`` in a thread and return its result.

        Raises ``ProblemError`` if the service is not loaded or is busy, its store does not answer, or the result comes
        too late. Other errors of ``work`` propagate.
        """
        service = self._begin(request)
        return await self._workers.call(lambda: self._run(service, work))

    def joint_checks(self, answers: CheckAnswers) -> Callable[[Request, bytes], Awaitable[bytes]]:
        """Return a function that answers a check, given its body, together with all checks that wait for a thread.

        It raises the errors in ``answers``; apart from that it behaves like ``ask``.
        """

        def work(bodies: Sequence[bytes]) -> list[bytes | BaseException]:
            assert self._service is not None  # noqa: S101  # calls are made only while it is loaded
            return self._note_answers(answers(self._service, bodies))

        calls = JointCalls(self._workers, work, len, CHECK_BYTES_MAX)

        async def ask(request: Request, body: bytes) -> bytes:
            self._begin(request)
            return await calls.call(body)

        return ask

    def _begin(self, request: Request) -> LoadedService:
        """Return the service, for a request that a thread will work on. Raises ``ProblemError`` if it is not loaded."""
        service = self._service
        if service is None:
            raise retry_later(
                STARTING, "The service is still loading. Try again after the seconds in Retry-After.", RETRY_S
            )
        # Keeps the connection from being closed in favour of a new one while the request is being worked on.
        request.state.connection_is_needed = True
        return service

    def _run(self, service: LoadedService, work: Callable[[LoadedService], _Answer]) -> _Answer:
        try:
            answer = work(service)
        except _STORE_ERRORS as error:
            self._note(str(error))
            raise _store_problem() from error
        self._note(None)
        return answer

    def _note_answers(self, answers: Sequence[bytes | BaseException]) -> list[bytes | BaseException]:
        """Note whether the store answered, and return the answers with a problem for each error of the store."""
        faults = [answer for answer in answers if isinstance(answer, _STORE_ERRORS)]
        self._note(str(faults[0]) if faults else None)
        return [_store_problem() if isinstance(answer, _STORE_ERRORS) else answer for answer in answers]

    def _note(self, why: str | None) -> None:
        """Log when the store stops answering, and when it answers again. A probe reports the same to ``Health``."""
        with self._lock:
            is_change = self._is_away != (why is not None)
            self._is_away = why is not None
            if is_change and why is not None:
                log.warning("The store does not answer: %s", why)
            elif is_change:
                log.warning("The store answers again.")


def _store_problem() -> ProblemError:
    return retry_later(STORE, "The store does not answer. Try again after the seconds in Retry-After.", STORE_RETRY_S)
