"""Answers check requests: which articles would texts repeat if they arrived now? Checks store nothing."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple, cast

import msgspec

from consumer.decode.article import decode, field_at
from consumer.decode.json_value import parse_json
from consumer.fingerprint import TextKind
from consumer.judge import events
from consumer.judge.decision import Neighbour
from consumer.judge.judge import QueryResult
from consumer.model.article import Article, Reason
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.model.verdict import MATCHES_MAX
from consumer.service.context import LoadedService
from consumer.service.messages import (
    CheckAnswer,
    CheckMatch,
    CheckResult,
    DuplicateCheck,
    FailedCheck,
    UniqueCheck,
)
from consumer.service.problems import (
    ARTICLES,
    check_some_valid,
    fault_of,
    no_articles,
    too_many_articles,
    unreadable_body,
)
from consumer.store_tools.text_query import unstored_versions
from consumer.text.timestamps import rfc3339
from consumer.web.problems import ArticleFault, Fault
from consumer.web.requests import CheckOutcome, TextsChecked
from storage.errors import StoreUnavailable
from storage.records import Record

BATCH_ARTICLES: Final = 256
"""The number of articles that are looked up together, as in a run."""

Report = Callable[[object], None]
_Checked = tuple[Record, QueryResult]


class _Request(NamedTuple):
    """A check: the id that the client sent with each article, and the decoded article or its fault."""

    ids: tuple[str | None, ...]
    decoded: tuple[Article | Fault, ...]

    @property
    def valid(self) -> list[Article]:
        """The articles that can be checked."""
        return [each for each in self.decoded if isinstance(each, Article)]


class CheckHandler:
    """A handler of check requests. Any number of threads may call ``answer`` at the same time."""

    def __init__(self, articles_max: int, report: Report) -> None:
        self._articles_max = articles_max
        self._report = report

    def answer(self, service: LoadedService, bodies: Sequence[bytes]) -> list[bytes | BaseException]:
        """Return the answers to requests with these bodies as JSON, looking up all articles together.

        An answer is an error if the request or all of its articles are invalid (``ProblemError``), if the store fails,
        or if there is a defect. No request affects the answer to another.
        """
        requests = [self._read(service, body) for body in bodies]
        valid = [request.valid if isinstance(request, _Request) else [] for request in requests]
        return [
            self._encode(request, found) if isinstance(request, _Request) else request
            for request, found in zip(requests, _check_all(service, valid), strict=True)
        ]

    def _read(self, service: LoadedService, body: bytes) -> _Request | BaseException:
        """Return the articles of a body, or the error to raise."""
        try:
            articles = self._articles(body, service.limits)
            decoded = tuple(_decode_or_fault(article, service) for article in articles)
            faults = [ArticleFault(place, each) for place, each in enumerate(decoded) if isinstance(each, Fault)]
            if len(faults) == len(decoded):
                self._report(TextsChecked("error", len(faults)))
            check_some_valid(faults, len(decoded), self._report)
        except BaseException as error:  # noqa: BLE001  # raised again by the request
            return error
        return _Request(tuple(_id_of(article, service) for article in articles), decoded)

    def _encode(self, request: _Request, found: Sequence[_Checked] | BaseException) -> bytes | BaseException:
        if isinstance(found, BaseException):
            return found
        checked = iter(found)
        results = tuple(
            FailedCheck(article_id, each) if isinstance(each, Fault) else _result(article_id, *next(checked))
            for article_id, each in zip(*request, strict=True)
        )
        for outcome, count in Counter(map(_outcome, results)).items():
            self._report(TextsChecked(outcome, count))
        return msgspec.json.encode(CheckAnswer(results))

    def _articles(self, body: bytes, limits: DecodeLimits) -> list[object]:
        try:
            request = parse_json(body, limits.values_max)
        except BadRecord as error:
            raise unreadable_body(error, limits) from error
        articles = request.get(ARTICLES) if isinstance(request, dict) else None
        if not isinstance(articles, list) or not articles or len(cast("dict[str, Any]", request)) > 1:
            raise no_articles()
        if len(articles) > self._articles_max:
            raise too_many_articles(len(articles), self._articles_max)
        return articles


def _decode_or_fault(item: object, service: LoadedService) -> Article | Fault:
    """Decode an article, or return its fault."""
    try:
        return _article(item, service)
    except BadRecord as error:
        return fault_of(error.reason, error.detail, error.limit, service.limits)


def _article(item: object, service: LoadedService) -> Article:
    """Decode an article like a feed's record, with the same fields, limits and reasons, but without requiring an id."""
    fields, key = service.fields, None
    if isinstance(item, dict):
        if field_at(item, fields.body) is None:
            raise BadRecord(Reason.MISSING_BODY, f"the article has no {fields.body}")
        key = uuid.uuid4().hex if field_at(item, fields.id) is None else None
    return decode(b"", fields, service.limits, service.body_form, key, lambda _: item)


def _check_all(
    service: LoadedService, requests: Sequence[Sequence[Article]]
) -> Sequence[Sequence[_Checked] | BaseException]:
    """Return the results for the articles of each request, or its error."""
    try:
        checked = iter(_check(service, list(chain.from_iterable(requests))))
        return [list(islice(checked, len(articles))) for articles in requests]
    except StoreUnavailable as error:
        return [error] * len(requests)
    except BaseException as error:  # noqa: BLE001  # raised again by the request; a panic of Rust is not an Exception
        if len(requests) == 1:
            return [error]
        # One article, or damage to a record near it, may be the cause.
        return [found for articles in requests for found in _check_all(service, [articles])]


def _check(service: LoadedService, articles: Sequence[Article]) -> Iterator[_Checked]:
    for start in range(0, len(articles), BATCH_ARTICLES):
        batch = articles[start : start + BATCH_ARTICLES]
        versions = unstored_versions(service.engine, service.builder, batch, service.clock())
        results = service.query(versions)
        yield from zip((version.record for version in versions), results, strict=True)


def _result(article_id: str | None, record: Record, found: QueryResult) -> CheckResult:
    text_kind = TextKind(record.kind).label
    if not found.matches:
        return UniqueCheck(
            id=article_id,
            text_kind=text_kind,
            truncated=found.truncated,
            pending=found.pending,
            seen_before=found.seen_before,
            parts=found.parts,
            ended_before=found.ended_before,
            banks=found.banks,
        )
    return DuplicateCheck(
        id=article_id,
        text_kind=text_kind,
        truncated=found.truncated,
        pending=found.pending,
        seen_before=found.seen_before,
        parts=found.parts,
        banks=found.banks,
        matches=tuple(_match(record, match) for match in found.matches[:MATCHES_MAX]),
        matches_found=len(found.matches),
    )


def _match(record: Record, match: Neighbour) -> CheckMatch:
    other = match.record
    return CheckMatch(
        id=other.id,
        version=events.version_name(other.reference),
        title=other.title,
        url=other.url,
        arrived_at=rfc3339(other.time_ms),
        distance=match.distance,
        similarity=events.rounded(match.similarity),
        shared_keywords=events.shared_keywords(record, other),
        # Only kept versions match, and a kept version represents its own cluster.
        cluster=other.id,
    )


def _id_of(item: object, service: LoadedService) -> str | None:
    """Return the id that the client sent, as a string; None if it is missing, or neither a string nor an integer."""
    article_id = field_at(item, service.fields.id) if isinstance(item, dict) else None
    if isinstance(article_id, int) and not isinstance(article_id, bool):
        return str(article_id)
    return article_id if isinstance(article_id, str) else None


def _outcome(result: CheckResult) -> CheckOutcome:
    if isinstance(result, FailedCheck):
        return "error"
    return "duplicate" if isinstance(result, DuplicateCheck) else "unique"
