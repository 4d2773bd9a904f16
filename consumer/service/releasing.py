"""Releases: a person undoes a flag."""

import logging
from typing import Final

import msgspec
from starlette.requests import Request

from consumer.model.errors import Abandoned, ConfigError, SinkError
from consumer.model.verdict import decode_verdict
from consumer.service.auditing import Audit, Changed, record
from consumer.service.desk import Desk
from consumer.service.judging import Judging
from consumer.service.messages import ReleaseRequest
from consumer.service.problems import INVALID_REQUEST, NOT_FLAGGED, UNKNOWN_ARTICLE, outcome_unknown
from consumer.store_tools.releases import Attribution, NotFlagged
from consumer.web.problems import ProblemError

log = logging.getLogger("dupwatch")

_DECODER: Final = msgspec.json.Decoder(ReleaseRequest)


class Releases:
    """Undoes flags. Released again, an article gets the same answer."""

    def __init__(self, desk: Desk, audit: Audit) -> None:
        self._desk = desk
        self._audit = audit

    async def release(self, request: Request, article_id: str, body: bytes) -> bytes:
        """Undo the flag of an article as the body says; return the event. Raises ``ProblemError``."""
        asked = _asked(body)
        self._desk.check_ready()
        event = await self._desk.ask(request, lambda judging: _released(judging, article_id, asked))
        outcome = decode_verdict(event).outcome
        await record(self._audit, request, [Changed("articles.release", article_id, outcome)])
        return event


def _asked(body: bytes) -> ReleaseRequest:
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(INVALID_REQUEST, f"The body cannot be read: {error}.") from error


def _released(judging: Judging, article_id: str, asked: ReleaseRequest) -> bytes:
    try:
        return judging.release(article_id, asked.version, Attribution(asked.by, asked.reason))
    except NotFlagged as error:
        raise ProblemError(NOT_FLAGGED, f"{error}.") from error
    except ConfigError as error:
        raise ProblemError(UNKNOWN_ARTICLE, f"{error}.") from error
    except (SinkError, Abandoned) as error:
        log.error("%r was released, but the sink does not have the event: %s", article_id, error)  # noqa: TRY400  # no defect
        raise outcome_unknown("The sink does not have the event.") from error
