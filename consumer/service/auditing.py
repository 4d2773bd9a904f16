"""The port of the audit log: who has changed what."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from starlette.requests import Request
from typing_extensions import override

from consumer.model.errors import SinkError
from consumer.service.problems import outcome_unknown
from consumer.web.audit_log import AuditLog, Change
from consumer.web.token import Caller

log = logging.getLogger("dupwatch")

NO_OWNER: Final = "this machine"
"""The owner where no token is needed: some program of this machine."""

Action = Literal["articles.add", "articles.retract", "articles.release"]


class Changed(NamedTuple):
    """What was done to an article, and the outcome of its verdict."""

    action: Action
    id: str
    outcome: str


class Audit(Protocol):
    """Keeps the changes of state that clients have asked for."""

    async def record(self, request: Request, changes: Sequence[Changed]) -> None:
        """Keep these changes, which one request has made.

        Called by the event loop, once the changes are stored and before they are answered; what blocks is done in a
        thread. Raises ``SinkError`` where they cannot be kept: then the client is told to send the request again.
        """
        ...


async def record(audit: Audit, request: Request, changes: Sequence[Changed]) -> None:
    """Record changes, if there are any. Raises ``ProblemError`` where they cannot be recorded."""
    if not changes:
        return
    try:
        await audit.record(request, changes)
    except SinkError as error:
        log.error("Changes were made that are not in the audit log: %s", error)  # noqa: TRY400  # no defect
        raise outcome_unknown("The change cannot be recorded in the audit log.") from error


class AuditTrail(Audit):
    """Keeps changes in the audit log. ``clock`` gives milliseconds since 1970."""

    def __init__(self, audit_log: AuditLog, clock: Callable[[], int]) -> None:
        self._log = audit_log
        self._clock = clock

    @override
    async def record(self, request: Request, changes: Sequence[Changed]) -> None:
        caller: Caller | None = request.state.caller
        lines = [
            Change(
                at_ms=self._clock(),
                token=None if caller is None else caller.name,
                owner=NO_OWNER if caller is None else caller.owner,
                address=None if request.client is None else request.client.host,
                action=changed.action,
                id=changed.id,
                result=changed.outcome,
                request_id=request.state.request_id,
            )
            for changed in changes
        ]
        await asyncio.to_thread(self._log.append, lines)


class NoAudit(Audit):
    """Keeps nothing."""

    @override
    async def record(self, request: Request, changes: Sequence[Changed]) -> None: ...
