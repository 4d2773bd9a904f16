"""Reads and changes banks for requests in a thread of its own, so that unreachable banks delay no other requests."""

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from starlette.requests import Request

from consumer.banks.bank import BankError, Banks, BanksUnreachable, ChangeUnknown
from consumer.banks.bank_log import BankLog
from consumer.banks.current_banks import BankChange, ChangeRefused, CurrentBanks
from consumer.config.sections.service import ServiceSection
from consumer.service.problems import BANKS, INVALID_REQUEST, NO_BANKS, outcome_unknown
from consumer.web.problems import STORE, Limit, ProblemError, retry_later
from consumer.web.request_threads import Workers

log = logging.getLogger("dupwatch")

RETRY_S: Final = 5
"""After how many seconds a client should retry while the banks are unreachable."""
REFUSAL_S: Final = 5.0
"""How long requests are refused at once after the banks were unreachable. Otherwise each would wait half a minute."""

_Answer = TypeVar("_Answer")


class ServiceBanks:
    """The banks that requests read and change, one request at a time. ``banks`` is None if none are configured."""

    def __init__(self, banks: BankLog | None, section: ServiceSection) -> None:
        self._banks = None if banks is None else CurrentBanks(banks)
        self._workers = Workers(1, section.requests_max, section.answer_s)
        self._answer_s = section.answer_s
        self._fault: str | None = None
        self._unreachable_at_s: float | None = None

    async def read(self, request: Request, answer: Callable[[Banks], _Answer]) -> _Answer:
        """Return the result of ``answer`` for the current banks. Raises ``ProblemError``."""
        banks = self._require_banks()
        try:
            return await self._call(request, lambda: answer(banks.read()))
        except ProblemError as error:
            if error.kind is not STORE:
                raise
            limit = Limit("answer_s", self._answer_s)
            raise retry_later(BANKS, f"The banks were not read within {self._answer_s:g} s.", RETRY_S, limit) from error

    async def change(self, request: Request, prepare: Callable[[], BankChange[_Answer]]) -> _Answer:
        """Make the change that ``prepare`` returns, and return the answer of that change. Raises ``ProblemError``.

        ``prepare`` runs in the thread of the banks, before they are locked.
        """
        banks = self._require_banks()
        try:
            return await self._call(request, lambda: banks.change(prepare()))
        except ProblemError as error:
            if error.kind is not STORE:
                raise
            # The thread continues after the timeout, so the change may still be made.
            raise outcome_unknown(
                f"The banks were not changed within {self._answer_s:g} s.", Limit("answer_s", self._answer_s)
            ) from error

    def check_configured(self) -> None:
        """Raise ``ProblemError`` if no banks are configured."""
        self._require_banks()

    def close(self) -> None:
        """Accept no further requests, cancel the waiting ones, and wait for the current one."""
        self._workers.close()

    def _require_banks(self) -> CurrentBanks:
        if self._banks is None:
            raise ProblemError(
                NO_BANKS, "This service has no banks. Set banks.url in its configuration, and restart it."
            )
        return self._banks

    async def _call(self, request: Request, work: Callable[[], _Answer]) -> _Answer:
        # Keeps the connection from being closed in favour of a new one while the request is being worked on.
        request.state.connection_is_needed = True
        return await self._workers.call(lambda: self._run(work))

    def _run(self, work: Callable[[], _Answer]) -> _Answer:
        if self._unreachable_at_s is not None and time.monotonic() - self._unreachable_at_s < REFUSAL_S:
            raise _banks_unavailable()
        try:
            answer = work()
        except ChangeRefused as error:
            raise ProblemError(INVALID_REQUEST, f"{error}.") from error
        except BankError as error:
            self._note(str(error))
            self._unreachable_at_s = time.monotonic() if isinstance(error, BanksUnreachable) else None
            if isinstance(error, ChangeUnknown):
                raise outcome_unknown("The banks may have been changed in part.") from error
            raise _banks_unavailable() from error
        self._note(None)
        self._unreachable_at_s = None
        return answer

    def _note(self, fault: str | None) -> None:
        """Log a fault of the banks, and its end, once each."""
        if fault is not None and fault != self._fault:
            log.warning("The banks do not answer: %s", fault)
        elif fault is None and self._fault is not None:
            log.warning("The banks answer again.")
        self._fault = fault


def _banks_unavailable() -> ProblemError:
    return retry_later(
        BANKS,
        "The banks cannot be read or changed; the service's log says why. Try again after the seconds in Retry-After.",
        RETRY_S,
    )
