"""Requests that store, retract and release articles, and their answers.

A request is answered once the store and the sink have the result. A request that times out may still take effect.
Sending it again has no further effect, and returns the same verdicts.
"""

import asyncio
import logging
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, cast

import msgspec
from starlette.requests import Request

from consumer.config.sections.service import ServiceSection
from consumer.decode.article import check_id
from consumer.decode.json_value import check_values, parse_json
from consumer.judge.versions import retraction_reference
from consumer.model.errors import Abandoned, BadRecord, ConfigError, InboxFull, SinkError, Unanswered
from consumer.model.limits import KEY_CHARS_MAX, DecodeLimits
from consumer.model.submission import RecordVerdict, Reply, RequestOrigin, Retraction, Submission
from consumer.model.verdict import VerdictEvent
from consumer.service.context import LoadedService, ServiceContext
from consumer.service.inbox import Inbox
from consumer.service.messages import FailedArticle, ReleaseRequest
from consumer.service.problems import (
    INVALID_REQUEST,
    NOT_FLAGGED,
    UNKNOWN_ARTICLE,
    check_some_valid,
    fault_of,
    invalid_id,
    no_articles,
    outcome_unknown,
    too_many_articles,
    unreadable_body,
)
from consumer.store_tools.releases import Attribution, NotFlagged
from consumer.web.audit_log import AuditLog, ChangeRecord
from consumer.web.problems import BUSY, ArticleFault, Limit, ProblemError, retry_later
from consumer.web.request_threads import RETRY_S
from consumer.web.requests import LimitName
from consumer.web.token import Caller
from storage.clock import now_ms
from storage.interface import Store
from storage.records import Tombstone, id_hash

NO_OWNER: Final = "this machine"
"""The owner recorded for a caller without a token: some program on this machine."""

Action = Literal[
    "articles.add", "articles.retract", "articles.release", "banks.create", "banks.add", "banks.change", "banks.remove"
]

log = logging.getLogger("dupwatch")

KEY_HEADER: Final = "Idempotency-Key"
_KEY_NAME: Final = b"key:%b"
_OWNED_KEY_NAME: Final = b"owned-key\0%b\0%b"
"""Unambiguous, because owners and keys contain no NUL. Only callers without a token have an empty owner."""
_RELEASE_DECODER: Final = msgspec.json.Decoder(ReleaseRequest)


class ChangeOutcome(NamedTuple):
    """A change for the audit log: an article with its outcome, or a bank or an item with its new state."""

    action: Action
    id: str
    outcome: str


def owner_of(caller: Caller | None) -> str:
    """Return the owner to record with a change."""
    return NO_OWNER if caller is None else caller.owner


async def record(audit_log: AuditLog | None, request: Request, changes: Sequence[ChangeOutcome]) -> None:
    """Append the changes of a request to the audit log, if there is one. Called after storing and before answering.

    Raises ``ProblemError`` if they cannot be recorded; its text tells the client to send the request again.
    """
    if audit_log is None or not changes:
        return
    caller: Caller | None = request.state.caller
    lines = [
        ChangeRecord(
            at_ms=now_ms(),
            token=None if caller is None else caller.name,
            owner=owner_of(caller),
            address=None if request.client is None else request.client.host,
            action=changed.action,
            id=changed.id,
            result=changed.outcome,
            request_id=request.state.request_id,
        )
        for changed in changes
    ]
    try:
        await asyncio.to_thread(audit_log.append, lines)
    except SinkError as error:
        log.error("Changes were made but are not in the audit log: %s", error)  # noqa: TRY400  # expected, so no traceback
        raise outcome_unknown("The change cannot be recorded in the audit log.") from error


class PendingArticles(NamedTuple):
    """The articles of a request that are being judged, and the limits that their faults name."""

    submission: Submission
    limits: DecodeLimits


class _Articles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    articles: list[msgspec.Raw]


_BODY_DECODER: Final = msgspec.json.Decoder(_Articles)


class Writes:
    """The requests that store, retract or release articles. Used by one event loop."""

    def __init__(
        self,
        context: ServiceContext,
        inbox: Inbox,
        section: ServiceSection,
        audit_log: AuditLog | None,
        report: Callable[[object], None],
    ) -> None:
        self._context = context
        self._inbox = inbox
        self._articles_max = section.articles_max
        self._answer_s = section.answer_s
        self._audit_log = audit_log
        self._report = report

    async def put(self, request: Request, body: bytes) -> PendingArticles:
        """Put the articles of a body into the inbox. Raises ``ProblemError``."""
        keys = request.headers.getlist(KEY_HEADER)
        origin = RequestOrigin(_owner(request.state.caller), _key(keys)) if keys else None
        self._context.check_ready()
        return await self._context.ask(request, lambda service: self._put_articles(service, body, origin))

    async def answer(self, request: Request, pending: PendingArticles) -> bytes:
        """Wait for the verdicts, and return the answer as JSON. Raises ``ProblemError``."""
        replies = await self._replies(pending.submission)
        events = [reply.event for reply in replies if isinstance(reply, RecordVerdict)]
        await record(self._audit_log, request, [_change_outcome("articles.add", event) for event in events])
        return self._encode(replies, pending.limits)

    async def retract(self, request: Request, article_id: str) -> bytes:
        """Retract an article, and return the event. Raises ``ProblemError``."""
        keys = request.headers.getlist(KEY_HEADER)
        if not keys:
            raise _missing_key_error()
        origin = RequestOrigin(_owner(request.state.caller), _key(keys))
        self._context.check_ready()
        submission = await self._context.ask(request, lambda service: self._put_retraction(service, article_id, origin))
        (reply,) = await self._replies(submission)
        assert isinstance(reply, RecordVerdict)  # noqa: S101  # the id was checked before
        await record(self._audit_log, request, [_change_outcome("articles.retract", reply.event)])
        return reply.event.encoded

    async def release(self, request: Request, article_id: str, body: bytes) -> bytes:
        """Undo the flag of an article as the body says, and return the event. Raises ``ProblemError``."""
        release_request = _release_request(body)
        self._context.check_ready()
        event = await self._context.ask(request, lambda service: _release(service, article_id, release_request))
        await record(self._audit_log, request, [_change_outcome("articles.release", event)])
        return event.encoded

    def _put_articles(self, service: LoadedService, body: bytes, origin: RequestOrigin | None) -> PendingArticles:
        articles = _split_articles(body, service.limits, self._articles_max)
        return PendingArticles(self._put_or_refuse(lambda: self._inbox.put(articles, origin)), service.limits)

    def _put_retraction(self, service: LoadedService, article_id: str, origin: RequestOrigin) -> Submission:
        try:
            check_id(article_id, "the id in the path", service.limits.id_bytes_max)
        except BadRecord as error:
            raise invalid_id(error, service.limits) from error
        retraction = Retraction(article_id, retraction_name(service.store, article_id, origin))
        return self._put_or_refuse(lambda: self._inbox.put_retraction(retraction, origin))

    def _put_or_refuse(self, put: Callable[[], Submission]) -> Submission:
        try:
            return put()
        except InboxFull as full:
            raise retry_later(
                BUSY,
                "Too many articles are waiting to be judged. Try again after the seconds in Retry-After.",
                RETRY_S,
                Limit(cast("LimitName", full.limit), full.maximum),
            ) from full

    async def _replies(self, submission: Submission) -> Sequence[Reply]:
        """Wait for the replies. Raises ``ProblemError`` if they do not come in time, or the service stops."""
        try:
            return await asyncio.wait_for(asyncio.wrap_future(submission.replies), self._answer_s)
        except TimeoutError as error:
            raise outcome_unknown(
                f"There is no verdict after {self._answer_s:g} s.", Limit("answer_s", self._answer_s)
            ) from error
        except Unanswered as error:
            raise outcome_unknown("The service is stopping.") from error

    def _encode(self, replies: Sequence[Reply], limits: DecodeLimits) -> bytes:
        results = [
            msgspec.Raw(reply.event.encoded)
            if isinstance(reply, RecordVerdict)
            else FailedArticle(fault_of(*reply, limits))
            for reply in replies
        ]
        faults = [
            ArticleFault(place, result.problem)
            for place, result in enumerate(results)
            if isinstance(result, FailedArticle)
        ]
        check_some_valid(faults, len(results), self._report)
        # Outside the events, whose bytes must stay as they are in the store.
        kinds = [reply.text_kind if isinstance(reply, RecordVerdict) else None for reply in replies]
        return msgspec.json.encode({"results": results, "text_kinds": kinds})


def _split_articles(body: bytes, limits: DecodeLimits, articles_max: int) -> list[bytes]:
    """Return the JSON of each article as the client wrote it, for the decoder of feeds. Raises ``ProblemError``."""
    try:
        check_values(body, limits.values_max)
        articles = _BODY_DECODER.decode(body.removeprefix(BOM_UTF8)).articles
    except BadRecord as error:
        raise unreadable_body(error, limits) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable_error(body, limits) from error
    if not articles:
        raise no_articles()
    if len(articles) > articles_max:
        raise too_many_articles(len(articles), articles_max)
    return [bytes(article) for article in articles]


def _unreadable_error(body: bytes, limits: DecodeLimits) -> Exception:
    """Return the problem of a body that is not JSON, or not an object with a list of articles."""
    try:
        parse_json(body, limits.values_max)
    except BadRecord as error:
        return unreadable_body(error, limits)
    return no_articles()


def _missing_key_error() -> ProblemError:
    return ProblemError(
        INVALID_REQUEST,
        f"Send one header {KEY_HEADER} with a key that you choose for this retraction. Repeating it with the same key "
        "does not retract articles that arrived in between.",
    )


def _owner(caller: Caller | None) -> str:
    """Return the owner of a key; empty without a token."""
    return "" if caller is None else caller.owner


def _key(keys: Sequence[str]) -> str:
    """Return the client's key for a request. Raises ``ProblemError`` unless there is exactly one valid key."""
    key = keys[0] if len(keys) == 1 else ""
    if not key:
        raise ProblemError(
            INVALID_REQUEST,
            f"Send exactly one header {KEY_HEADER}, with a key that you choose; it must not be empty.",
        )
    if len(key) > KEY_CHARS_MAX:
        limit = Limit("key_chars_max", KEY_CHARS_MAX)
        detail = f"{KEY_HEADER} has more than {KEY_CHARS_MAX} characters. Send a shorter key."
        raise ProblemError(INVALID_REQUEST, detail, limit=limit)
    return key


def _change_outcome(action: Action, event: VerdictEvent) -> ChangeOutcome:
    return ChangeOutcome(action, event.verdict.id, event.verdict.outcome)


def retraction_name(store: Store, article_id: str, origin: RequestOrigin) -> bytes:
    """Return the name of a retraction. The same name means the same retraction.

    Keys belong to their owners, so two owners may use the same key. All callers without a token are one owner.
    Earlier versions of dupwatch named tombstones by the key alone, so their owners are unknown. Until the window of
    such a tombstone has ended, it answers any caller that sends its key. Raises the store's errors.
    """
    earlier = _KEY_NAME % origin.key.encode()
    if _has_tombstone(store, article_id, earlier):
        return earlier
    return _OWNED_KEY_NAME % (origin.owner.encode(), origin.key.encode())


def _has_tombstone(store: Store, article_id: str, name: bytes) -> bool:
    reference = retraction_reference(article_id, name)
    history = store.history(id_hash(article_id))
    return any(isinstance(entry, Tombstone) and entry.reference == reference for entry in history)


def _release_request(body: bytes) -> ReleaseRequest:
    try:
        return _RELEASE_DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(INVALID_REQUEST, f"The body cannot be read: {error}.") from error


def _release(service: LoadedService, article_id: str, request: ReleaseRequest) -> VerdictEvent:
    try:
        return service.release(article_id, request.version, Attribution(request.by, request.reason))
    except NotFlagged as error:
        raise ProblemError(NOT_FLAGGED, f"{error}.") from error
    except ConfigError as error:
        raise ProblemError(UNKNOWN_ARTICLE, f"{error}.") from error
    except (SinkError, Abandoned) as error:
        log.error("%r was released, but the sink does not have the event: %s", article_id, error)  # noqa: TRY400  # expected, so no traceback
        raise outcome_unknown("The sink does not have the event.") from error
