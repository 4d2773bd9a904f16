"""Answers check requests: which articles would texts repeat if they arrived now? Checks store nothing."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

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
from storage.records import Record

BATCH_ARTICLES: Final = 256
"""The number of articles that are looked up together, as in a run."""

Report = Callable[[object], None]


class CheckHandler:
    """A handler of check requests. Any number of threads may call ``answer`` at the same time."""

    def __init__(self, articles_max: int, report: Report) -> None:
        self._articles_max = articles_max
        self._report = report

    def answer(self, service: LoadedService, body: bytes) -> bytes:
        """Return the answer to a request with this body, as JSON.

        Raises the store's errors, and ``ProblemError`` if the request or all of its articles are invalid.
        """
        articles = self._articles(body, service.limits)
        decoded = [_decode_or_fault(article, service) for article in articles]
        faults = [ArticleFault(place, each) for place, each in enumerate(decoded) if isinstance(each, Fault)]
        if len(faults) == len(decoded):
            self._report(TextsChecked("error", len(faults)))
        check_some_valid(faults, len(decoded), self._report)
        valid = [each for each in decoded if isinstance(each, Article)]
        checked = iter([result for batch in _batches(valid) for result in _check(service, batch)])
        results = tuple(
            FailedCheck(article_id, each) if isinstance(each, Fault) else _result(article_id, *next(checked))
            for article_id, each in zip([_id_of(article, service) for article in articles], decoded, strict=True)
        )
        for outcome, count in Counter(_outcome(result) for result in results).items():
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


def _check(service: LoadedService, articles: Sequence[Article]) -> Iterator[tuple[Record, QueryResult]]:
    versions = unstored_versions(service.engine, service.builder, articles, service.clock())
    results = service.query(versions)
    return zip((version.record for version in versions), results, strict=True)


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


def _batches(articles: Sequence[Article]) -> Iterator[Sequence[Article]]:
    return (articles[start : start + BATCH_ARTICLES] for start in range(0, len(articles), BATCH_ARTICLES))
